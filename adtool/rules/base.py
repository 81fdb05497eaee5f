"""The interface of rules, and their shared code: walking results, grouping, wording."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from adtool.counts import counted
from adtool.report import Finding, Fix, Severity
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.session import Session
    from engine.autograd import Entry, LaunchResult, PairResult
    from engine.diagnostics import Span

H = TypeVar("H")


@dataclass(frozen=True, slots=True)
class Manual:
    """A rule's manual page, as indented text. `todo`: what to do about a finding."""

    what: str
    why: str
    example: str
    todo: str

    @property
    def complete(self) -> bool:
        """Whether every part is written."""
        return all(part.strip() for part in astuple(self))


class Rule(ABC):
    """One kind of finding: looks at a session's results and says what is wrong there.

    severity: of a finding that sets none. otherwise: the severities that some findings set, and
    when, as `error if ...`; empty where none does.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    severity: ClassVar[Severity]
    otherwise: ClassVar[str] = ""
    manual: ClassVar[Manual]

    @abstractmethod
    def check(self, session: Session) -> Iterator[Finding]:
        """The findings of this kind, in recorded order of their first places."""

    def finding(
        self,
        message: str,
        help: str,
        *,
        span: Span | None,
        tape: int,
        launch: int,
        kernel: str = "",
        count: int = 1,
        notes: tuple[str, ...] = (),
        severity: Severity | None = None,
        arrays: tuple[str, ...] = (),
        near: tuple[Span | None, ...] = (),
        fix: Fix | None = None,
        follows: str = "",
        idle: bool = False,
    ) -> Finding:
        """A finding of this rule at `span`. severity: the rule's own where left out.

        arrays, near: what it is about on the tape, see `Finding`; where it is no launch of that.
        fix: a mechanical cure, see `adtool.fixes`. follows: the `mark_of` its cause; idle: whether
        nothing needs to be done.
        """
        place: dict[str, Any] = {"file": None, "line": None, "column": None}
        if span is not None:
            place = {
                "file": span.file, "line": span.line, "column": span.col,
                "end_line": span.end_line, "end_column": span.end_col,
            }  # fmt: skip
        return Finding(
            self.code, self.name, severity or self.severity, message, help, kernel, tape, launch,
            count=count, notes=notes, arrays=arrays,
            near=tuple((s.file, s.line) for s in near if s is not None), fix=fix, follows=follows,
            idle=idle, **place,
        )  # fmt: skip

    @property
    def severities(self) -> str:
        """All severities in words, the usual one first: `warning; error if ...`."""
        return f"{self.severity}; {self.otherwise}" if self.otherwise else self.severity

    def page(self) -> str:
        """The manual page as plain text."""
        m = self.manual
        title = _fill(f"{self.code} {self.name} ({self.severities})")
        parts = [title, "=" * max(map(len, title.splitlines()))]
        for head, text in (("What it is", m.what), ("Why it matters", m.why)):
            parts += ["", head, "", _fill(text)]
        example = textwrap.indent(textwrap.dedent(m.example).strip("\n"), "    ")
        parts += ["", "Example", "", example, "", "What to do", "", _fill(m.todo)]
        return "\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class Hit:
    """A pair of a launch of a tape that a rule is about."""

    tape: int
    launch: LaunchResult
    pair: PairResult

    @property
    def where(self) -> tuple[int, int]:
        """Tape and launch."""
        return self.tape, self.launch.index


def mark_of(code: str, tape: int, launch: int) -> str:
    """What stands for a finding in `follows` until it has a fingerprint."""
    return f"{code} {tape}:{launch}"


def hits(session: Session, verdict: str) -> Iterator[Hit]:
    """Every pair with this verdict, in recorded order.

    A kernel that leaves its arrays, or whose threads race, has no derivative to be judged: that is
    G008 and G009, and said once, unless these are suppressed. What is not finite is told of racing
    threads, too.
    """
    unjudged: set[str] = set()
    if verdict in ("fail", "inconclusive", "nondeterministic"):
        unjudged = faulty(session, "outside", "race")
    elif verdict == "nan":
        unjudged = faulty(session, "outside")
    for tape in session.tapes:
        for launch in tape.launches:
            if launch.kernel in unjudged:
                continue
            for pair in launch.pairs:
                if pair.verdict == verdict:
                    yield Hit(tape.tape, launch, pair)


def faulty(session: Session, *kinds: str) -> set[str]:
    """Kernels that were seen to do something of these kinds: see `session.faults`."""
    return {s.fault.kernel for s in session.faults if s.fault.kind in kinds} - session.forgiven


def fed_by_nan(session: Session) -> list[Hit]:
    """Pairs that nothing can be said of, because their launch was given NaN or Inf."""
    return [h for h in hits(session, "inconclusive") if "holds NaN or Inf" in h.pair.reason]


def grouped(items: Iterable[H], key: Callable[[H], Hashable]) -> list[list[H]]:
    """The items with equal keys together, groups and items in first-seen order."""
    groups: dict[Hashable, list[H]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return list(groups.values())


def launches(group: list[Hit]) -> int:
    """How many different launches a group stands for."""
    return len({h.where for h in group})


def worst_of_first(group: list[Hit]) -> Hit:
    """The worst pair of the first launch in the group."""
    first = [h for h in group if h.where == group[0].where]
    return max(first, key=lambda h: _size(h.pair))


def _size(pair: PairResult) -> float:
    size = pair.max_rel_error
    return size if size == size else float("inf")


def named(launch: LaunchResult) -> str:
    """What was launched, or called, by its name."""
    what = "kernel" if launch.by_hand is None else launch.by_hand.what
    return f"{what} `{launch.kernel}`"


def seen_of(hit: Hit, count: int) -> str:
    """Says where a hit is, the first of so many launches, or calls of a framework's function."""
    what = "launch" if hit.launch.by_hand is None else "call"
    return seen(count, *hit.where, what)


def seen(count: int, tape: int, index: int, what: str = "launch") -> str:
    """Says where: the first launch (or record), and how many there are."""
    if count == 1:
        return f"in {what} {index} of tape {tape}"
    return f"in {counted(count, what)}, first in {what} {index} of tape {tape}"


def derivative(pair: PairResult, entry: Entry | None) -> str:
    """Names the derivative that an entry is."""
    if entry is None or entry.row < 0 or entry.col < 0:
        along = " along a random direction" if entry is not None else ""
        return f"`d {pair.output} / d {pair.input}`{along}"
    row = entry.row_name or f"{pair.output}[{entry.row}]"
    return f"`d {row} / d {entry.col_name or f'{pair.input}[{entry.col}]'}`"


def values(entry: Entry | None) -> str:
    """The adjoint's value and the reference's, to be put behind the derivative's name."""
    if entry is None:
        return ""
    return f": adjoint {number(entry.ad)}, reference {number(entry.oracle)}"


def number(value: float) -> str:
    """A number for a sentence, with the digits that float32 holds."""
    return f"{value:.7g}"


def other_pairs(group: list[Hit], shown: Hit, limit: int = 6) -> tuple[str, ...]:
    """A note that names the pairs of the group which the message does not name."""
    names = dict.fromkeys((h.pair.input, h.pair.output) for h in group)
    names.pop((shown.pair.input, shown.pair.output))
    if not names:
        return ()
    listed = [f"`d {o} / d {i}`" for i, o in list(names)[:limit]]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (f"also in {', '.join(listed)}{more}",)


def remedy(reason: str) -> str:
    """What to do about something that was not checked for a reason; empty where nothing helps."""
    if "C++ code of the capture" in reason:
        return (
            "--trust compiles it too: use it only for captures from people whose programs you "
            "would run"
        )
    if "torch.compile compiled" in reason:
        return (
            "run the script without torch.compile: set TORCH_COMPILE_DISABLE=1, or "
            "torch._dynamo.config.disable = True"
        )
    if "iterates until a tolerance" in reason:
        return "--rtol sets another tolerance; a smaller one of the iteration allows less by itself"
    if "random values between" in reason:
        return "to check it at its own values, run it on one device, and compile nothing ahead"
    if "an object of Warp" in reason:
        return "run the program on the engine with --alias warp: the engine has its own"
    if "snapshot_limit_bytes" not in reason:
        return ""
    return "raise the limit with --memory GIB, or check fewer kernels at once with --kernel PATTERN"


def _fill(text: str) -> str:
    paragraphs = textwrap.dedent(text).strip().split("\n\n")
    return "\n\n".join(textwrap.fill(p, 78) for p in paragraphs)
