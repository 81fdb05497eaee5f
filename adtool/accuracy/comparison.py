"""Compares a run with a baseline: which gradients got worse, better, are new, or are gone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from adtool.accuracy.entries import Entry, Expected, Known, rank, shown, size
from adtool.accuracy.measuring import Measured
from adtool.counts import counted
from adtool.report import Finding, at_gate
from engine.classes import dataclass

_STEADY = 2.0  # an entry is written anew only if its error moved by more than this factor
_SOME = 6
# True before it is done, and as it is done.
_ADDED = " (added by `adtool baseline compare --adopt`)"
_DROPPED = " (dropped by `adtool baseline write` and by `compare --adopt`)"


@dataclass(frozen=True, slots=True)
class Worse:
    """A pair or a tape that got worse. now: None where it is not checked any more.

    why: a sentence's part, with the numbers.
    """

    before: Entry
    now: Measured | None
    why: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a run is beside a baseline. better: with what was before. gone: of kernels that are."""

    worse: tuple[Worse, ...] = ()
    better: tuple[tuple[Entry, Entry], ...] = ()
    new: tuple[Entry, ...] = ()
    gone: tuple[Entry, ...] = ()


def compared(
    found: Sequence[Measured], kernels: Iterable[str], expected: Expected, whole: bool
) -> Comparison:
    """Compares a script's run with what is expected of it.

    kernels: names of all kernels that were launched, checked or not. whole: whether everything
    was checked that the script records, so that what is missing is missing.
    """
    now = {m.entry.key: m for m in found}
    before = {e.key: e for e in expected.entries}
    worse: list[Worse] = []
    better: list[tuple[Entry, Entry]] = []
    for key, entry in before.items():
        m = now.get(key) or _namesake(entry, found, before)
        if m is None:
            continue
        why = _worse(m.entry, entry, expected)
        if why:
            worse.append(Worse(entry, m, why))
        elif key in now and _is_better(m.entry, entry, expected.factor):
            better.append((entry, m.entry))
    new = tuple(m.entry for key, m in now.items() if key not in before)
    told = {w.before.key for w in worse}
    missing = [e for key, e in before.items() if key not in {*now, *told}] if whole else []
    present = set(kernels)
    gone: list[Entry] = []
    for kernel, group in _by_kernel(missing).items():
        renamed = sum((e.kernel, e.tape) == kernel for e in new)
        if kernel[0] not in present or kernel[1] or renamed >= len(group):
            gone += group
            continue
        names = {
            name for m in found if (m.entry.kernel, m.entry.tape) == kernel
            for name in (m.entry.input, m.entry.output)
        }  # fmt: skip
        for e in group:
            # Where both arrays have gradients still, the kernel does something else with them.
            if rank(e.verdict) < rank("skipped") and not {e.input, e.output} <= names:
                worse.append(Worse(e, None, "it was checked earlier and is not checked now"))
            else:
                gone.append(e)
    return Comparison(tuple(worse), tuple(better), new, tuple(gone))


def _namesake(
    old: Entry, found: Sequence[Measured], before: Mapping[Any, Entry]
) -> Measured | None:
    """What an entry is now that another kernel has its name, so that both have their files in it.

    Which of them it was is not known: the worst one counts, of those that are new.
    """
    if old.tape or "@" in old.kernel:
        return None
    same = [
        m for m in found
        if m.entry.key not in before and not m.entry.tape
        and m.entry.kernel.startswith(f"{old.kernel}@")
        and (m.entry.input, m.entry.output) == (old.input, old.output)
    ]  # fmt: skip
    return max(
        same,
        key=lambda m: (rank(m.entry.verdict), max(size(m.entry.error), size(m.entry.rounding))),
        default=None,
    )


def updated(
    found: Sequence[Measured], expected: Expected, whole: bool, comparison: Comparison | None = None
) -> tuple[Entry, ...]:
    """The entries of a script to be written.

    An entry stays as it is where the error is about the same, so that noise changes no line, and
    slow growth is measured from where it began. whole: entries that were not measured are
    dropped. comparison: of this run; with it, only what is new comes, and what is gone goes.
    """
    before = {e.key: e for e in expected.entries}
    if comparison is not None:
        gone = {e.key for e in comparison.gone}
        return (*(e for k, e in before.items() if k not in gone), *comparison.new)
    kept = {} if whole else dict(before)
    for m in found:
        old = before.get(m.entry.key)
        kept[m.entry.key] = m.entry if old is None or not _alike(old, m.entry) else old
    return tuple(kept.values())


def known_of(
    findings: Iterable[Finding], expected: Expected, gate: str, part: bool = False
) -> tuple[Known, ...]:
    """Findings that a baseline excuses: errors and warnings, and what else is at the gate.

    part: whether only a part was asked for, so that what was not checked (G012) says nothing.
    """
    from adtool.accuracy.measuring import relative

    return tuple(
        Known(expected.script, f.code, f.fingerprint, f.severity, f.kernel,
              "" if f.file is None else relative(f.file, expected.folder))
        for f in findings
        if not f.suppressed and f.code != "G015" and not (part and f.code == "G012")
        and (at_gate(f.severity, "warning") or at_gate(f.severity, gate))
    )  # fmt: skip


def excused(f: Finding, known: Iterable[Known]) -> bool:
    """Whether a baseline knows a finding: as this one, and no less severe."""
    return any(
        k.fingerprint == f.fingerprint and k.code == f.code and at_gate(k.severity, f.severity)
        for k in known
    )


def told(comparison: Comparison, expected: Expected, lost: Sequence[Known]) -> Iterator[str]:
    """What is to be said of a comparison besides what got worse. lost: findings that are gone."""
    where = f"`{expected.script}`"
    if comparison.better:
        said = [f"{_of(now)} {_change(now, old)}" for old, now in comparison.better]
        yield (f"baseline: more accurate than before: {_some(said)}; `adtool "
               "baseline write` stores that")  # fmt: skip
    if comparison.new:
        names = dict.fromkeys(_of(e) for e in comparison.new)
        if expected.entries:
            yield f"baseline: not yet in the file: {_some(list(names))}{_ADDED}"
        else:
            found = counted(len(comparison.new), "entry")
            yield f"baseline: no entries for {where} yet: {found}{_ADDED}"
    if comparison.gone:
        names = dict.fromkeys(_of(e) for e in comparison.gone)
        yield f"baseline: expired, no longer recorded: {_some(list(names))}{_DROPPED}"
    if lost:
        names = dict.fromkeys(f"{k.code} of `{k.kernel}`" if k.kernel else k.code for k in lost)
        yield f"baseline: expired, no longer found: {_some(list(names))}{_DROPPED}"


def _of(e: Entry) -> str:
    return e.name if e.tape else f"{e.name} of kernel `{e.kernel}`"


def _some(words: Sequence[str]) -> str:
    more = f" and {len(words) - _SOME} more" if len(words) > _SOME else ""
    return ", ".join(words[:_SOME]) + more


def _by_kernel(entries: Iterable[Entry]) -> dict[tuple[str, bool], list[Entry]]:
    groups: dict[tuple[str, bool], list[Entry]] = {}
    for e in entries:
        groups.setdefault((e.kernel, e.tape), []).append(e)
    return groups


def _worse(now: Entry, old: Entry, expected: Expected) -> str:
    """Why it is worse than before; empty where it is not."""
    if rank(now.verdict) > rank(old.verdict):
        # A wrong gradient is said by its own finding, unless that may be one that is known.
        if rank(now.verdict) == rank("fail") and not expected.known:
            return ""
        return f"its verdict was {old.verdict} and is now {now.verdict}"
    said = []
    for what, value, before, floor in (
        ("error", now.error, old.error, now.floor),
        ("rounding", now.rounding, old.rounding, now.floor_rounding),
    ):
        if value is None or before is None or rank(now.verdict) == rank("skipped"):
            continue
        base = max(size(before), floor)
        if size(value) > expected.factor * base:
            lost = math.log10(size(value) / base) if math.isfinite(size(value)) else math.inf
            digits = f", {lost:.1f} digits lost" if math.isfinite(lost) else ""
            said.append(f"{what} {shown(value, floor)}, was {shown(before, floor)}{digits}")
    return "; ".join(said)


def _is_better(now: Entry, old: Entry, factor: float) -> bool:
    if rank(now.verdict) != rank(old.verdict):
        return rank(now.verdict) < rank(old.verdict)
    return any(
        value is not None and before is not None
        and size(before) > factor * max(size(value), floor)
        for value, before, floor in (
            (now.error, old.error, now.floor), (now.rounding, old.rounding, now.floor_rounding),
        )
    )  # fmt: skip


def _change(now: Entry, old: Entry) -> str:
    if now.verdict != old.verdict:
        return f"({now.verdict}, was {old.verdict})"
    said = [
        f"{what} {shown(value, floor)}, was {shown(before, floor)}"
        for what, value, before, floor in (
            ("error", now.error, old.error, now.floor),
            ("rounding", now.rounding, old.rounding, now.floor_rounding),
        )
        if size(before) > max(size(value), floor)
    ]
    return f"({'; '.join(said)})"


def _alike(old: Entry, now: Entry) -> bool:
    if old.verdict != now.verdict:
        return False
    for a, b, floor in (
        (old.error, now.error, now.floor), (old.rounding, now.rounding, now.floor_rounding),
    ):  # fmt: skip
        if (a is None) != (b is None):
            return False
        if size(a) == size(b):
            continue
        small, large = sorted((max(size(a), floor), max(size(b), floor)))
        if large > _STEADY * small:
            return False
    return True
