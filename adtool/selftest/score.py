"""The score of a checker on the corpus: caught of total, false alarms of total."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adtool.selftest.run import Outcome
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """Counts of one kind. undecided: right kernels that were called neither right nor wrong."""

    name: str
    right: int
    alarms: int
    undecided: int
    mutants: int
    caught: int

    @property
    def perfect(self) -> bool:
        """All caught, no false alarm."""
        return self.caught == self.mutants and not self.alarms


def score(name: str, outcomes: Sequence[Outcome]) -> Score:
    """The counts of some outcomes."""
    right = [o for o in outcomes if not o.mutation]
    wrong = [o for o in outcomes if o.mutation]
    return Score(
        name,
        len(right),
        sum(o.wrong for o in right),
        sum(not o.wrong and not o.right for o in right),
        len(wrong),
        sum(o.wrong for o in wrong),
    )


def by(outcomes: Sequence[Outcome], key: Callable[[Outcome], str]) -> list[Score]:
    """Scores of the outcomes with equal keys, in first-seen order; an empty key is left out."""
    groups: dict[str, list[Outcome]] = {}
    for o in outcomes:
        if key(o):
            groups.setdefault(key(o), []).append(o)
    return [score(name, group) for name, group in groups.items()]


def report_lines(outcomes: Sequence[Outcome], seconds: float) -> list[str]:
    """The table as text: by kind of kernel, by mutation, and what went wrong."""
    kinds = [*by(outcomes, lambda o: o.kind), score("all", outcomes)]
    rows = [("kernels", "right", "false alarms", "undecided", "mutants", "caught")]
    rows += [
        (s.name, str(s.right), str(s.alarms), str(s.undecided), str(s.mutants), str(s.caught))
        for s in kinds
    ]
    out = _table(rows)
    rows2 = [("mutation", "mutants", "caught")]
    rows2 += [
        (s.name, str(s.mutants), str(s.caught)) for s in by(outcomes, lambda o: o.mutation)
    ]  # fmt: skip
    out += ["", *_table(rows2), ""]
    for o in outcomes:
        if not o.mutation and o.wrong:
            out.append(f"false alarm: {o.kernel} ({', '.join(o.verdicts)})")
        elif not o.mutation and not o.right:
            out.append(f"undecided: {o.kernel} ({'; '.join(o.reasons)})")
        elif o.mutation and not o.wrong:
            said = ", ".join(o.verdicts) + (f": {o.reasons[0]}" if o.reasons else "")
            out.append(f"missed: {o.kernel}, {o.mutation} ({said})")
    total = kinds[-1]
    out.append(
        f"caught {total.caught} of {total.mutants} wrong gradients, {total.alarms} false alarms "
        f"on {total.right} correct ones, in {seconds:.0f} s"
    )
    return out


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(r[k]) for r in rows) for k in range(len(rows[0]))]
    out = []
    for r in rows:
        cells = [r[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(r[1:], widths[1:], strict=True)]
        out.append("  ".join(cells).rstrip())
    out.insert(1, "  ".join("-" * w for w in widths))
    return out
