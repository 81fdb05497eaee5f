"""Which launch `adtool jacobian` looks at where no kernel is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from adtool.job import JacobianOptions
from adtool.outcome import Outcome
from adtool.pair_errors import known_errors
from engine import EngineError
from engine.autograd import PairResult, check_recorded

_CHECKED = 32  # launches of one kernel that are checked, to see whether it fails
_SHAPES = 4  # different sizes that are listed of a kernel

Launch = tuple[int, int, Any]  # the numbers of tape and launch, and the record


def chosen(
    launches: Sequence[Launch], options: JacobianOptions
) -> tuple[JacobianOptions, str] | Outcome:
    """The options with a kernel, and why it is that one; or a list of the kernels.

    It is the only kernel, the kernel of the launch that was asked for, or the only kernel whose
    gradient a check finds wrong, at the first launch where it does.
    """
    kernels = list(dict.fromkeys(r.kernel.key for _, _, r in launches))
    if options.launch is not None:
        for tape, index, record in launches:
            if (tape, index) == options.launch:
                return replace(options, kernel=record.kernel.key), ""
        wanted = ":".join(map(str, options.launch))
        return Outcome(
            "target", f"the launch {wanted} does not exist",
            "choose one of these kernels with --kernel", _listed(kernels, launches, {}),
        )  # fmt: skip
    if len(kernels) == 1:
        return replace(options, kernel=kernels[0]), "the only kernel"
    found = {k: wrong for k in kernels if (wrong := _failing(k, launches)) is not None}
    failing = {k: at for k, (at, _) in found.items()}
    if len(found) == 1:
        (kernel, (at, error)), = found.items()  # fmt: skip
        return (
            replace(options, kernel=kernel, launch=at),
            f"the only kernel that fails a check: {error}",
        )
    what = f"{len(failing)} of them fail a check" if failing else "none of them fails a check"
    name = next(iter(failing or kernels))
    return Outcome(
        "target", f"no kernel was chosen: {len(kernels)} were launched, and {what}",
        f"choose one with --kernel, like --kernel {name}, or a launch with --launch TAPE:LAUNCH",
        _listed(kernels, launches, failing),
    )  # fmt: skip


def _failing(kernel: str, launches: Sequence[Launch]) -> tuple[tuple[int, int], str] | None:
    """The numbers of the first launch of a kernel whose check fails, and how wrong it is."""
    mine = [x for x in launches if x[2].kernel.key == kernel and hasattr(x[2], "plan")]
    for tape, index, record in mine[:_CHECKED]:
        try:
            pairs = check_recorded(record).launches[0].pairs
        except EngineError:  # it has no gradient, or cannot be run again
            continue
        wrong = [p for p in pairs if p.verdict in ("fail", "nan")]
        if wrong:
            return (tape, index), _error(
                max(wrong, key=lambda p: (p.verdict == "nan", p.max_rel_error))
            )
    return None


def _error(pair: PairResult) -> str:
    """The verdict of a check of a pair, with its largest error."""
    absolute, relative = known_errors(pair)
    size = ""
    if relative is not None:
        size = f", relative error {relative:.3g}"
    elif absolute is not None:
        size = f", error {absolute:.3g}"
    return f"`d {pair.output} / d {pair.input}`: {pair.verdict}{size}"


def _listed(
    kernels: Sequence[str], launches: Sequence[Launch], failing: dict[str, tuple[int, int]]
) -> str:
    """A row for each kernel: how often it was launched, with how many threads, on what arrays."""
    rows = [("kernel", "launches", "first", "threads and shapes of arrays")]
    for kernel in kernels:
        mine = [x for x in launches if x[2].kernel.key == kernel]
        sizes = list(dict.fromkeys(_size(record) for _, _, record in mine))
        more = len(sizes) - _SHAPES
        text = "; ".join(sizes[:_SHAPES]) + (f"; and {more} more" if more > 0 else "")
        at = failing.get(kernel, mine[0][:2])
        wrong = "fails a check" if kernel in failing else ""
        rows.append((kernel, str(len(mine)), f"{at[0]}:{at[1]}", f"{text}  {wrong}".rstrip()))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    return "\n".join(
        "  ".join((*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]))
        for row in rows
    )


def _size(record: Any) -> str:
    """How many threads a launch had, and the shapes of its arrays."""
    threads = " x ".join(map(str, record.dim))
    values = [] if record.launch is None else list(record.launch.values)
    names = list(getattr(getattr(record.kernel, "signature", None), "types", ()))
    if len(names) != len(values):
        names = ["" for _ in values]
    shapes = [
        f"{n} {' x '.join(map(str, v.shape))}".strip()
        for n, v in zip(names, values, strict=True) if isinstance(getattr(v, "shape", None), tuple)
    ]  # fmt: skip
    return f"{threads} ({', '.join(shapes)})" if shapes else threads
