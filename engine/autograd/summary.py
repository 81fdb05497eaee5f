"""The result of a check as a plain text table."""

from __future__ import annotations

from engine.autograd.results import PairResult, TapeResult

HEADS = ("Launch", "Kernel", "Input", "Output", "Max Abs Error", "Max Rel Error", "Result")


def summary(result: TapeResult) -> str:
    """One line for each pair, then one for each launch or function that was not checked."""
    rows = [HEADS]
    for launch in result.launches:
        rows += [
            ("-" if launch.index < 0 else str(launch.index), launch.kernel, *_cells(p))
            for p in launch.pairs
        ]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEADS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    lines.insert(1, "  ".join("-" * w for w in widths))
    if len(rows) == 1:
        lines = []
    for u in result.unchecked:
        lines.append(f"not checked: {u.what} ({u.reason})")
    if result.whole is not None:
        note = f" ({result.whole.reason})" if result.whole.reason else ""
        lines.append(f"the tape as a whole: {result.whole.verdict.upper()}{note}")
    if result.checked == 0:
        lines.append("Nothing was checked.")
    else:
        lines.append(f"Gradient check {'passed' if result.passed else 'failed'}.")
    return "\n".join(lines) + "\n"


def _cells(p: PairResult) -> tuple[str, str, str, str, str]:
    errors = ("-", "-") if p.verdict in ("skipped", "nan") else (
        f"{p.max_abs_error:.3e}", f"{p.max_rel_error:.3e}",
    )  # fmt: skip
    note = f" ({p.reason})" if p.reason else ""
    return p.input, p.output, *errors, p.verdict.upper() + note
