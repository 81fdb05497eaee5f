"""Summarises the accuracy of the pairs and tapes of a run in a few numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from adtool.accuracy.entries import Entry, Expected, rank, size
from adtool.report import EndToEnd, Launch, Pair, Report
from engine.classes import dataclass

# Of the largest derivative by the launches of a kernel, what a smaller one is measured by: at the
# end of a fit derivatives vanish, and all that is left of them is noise.
_PART = 1e-2
_NAMED = 8  # kernels of a tape


@dataclass(frozen=True, slots=True)
class Measured:
    """An entry, and the launch that it is worst in: launch -1 of a tape for that as a whole.

    pair: of that launch. label: the kernel's own name, without what tells it from a namesake.
    """

    entry: Entry
    tape: int
    launch: int
    label: str
    pair: Pair | None = None


def measured(
    launches: Sequence[Launch], wholes: Sequence[EndToEnd], script: str, folder: str,
    part: bool = False,
) -> tuple[Measured, ...]:  # fmt: skip
    """Entries of a run, each once, sorted. script, folder: see `Expected`.

    part: whether only a part of what the script records was asked for, so that a tape that was
    left out says nothing.
    """
    names = names_of(launches, folder)
    groups: dict[tuple[str, str, str], list[tuple[Launch, Pair]]] = {}
    for x in launches:
        for p in x.pairs:
            key = (names[x.kernel, x.file], p.input, p.output)
            groups.setdefault(key, []).append((x, p))
    found = [_pair(script, *key, group) for key, group in groups.items()]
    kinds: dict[str, list[EndToEnd]] = {}
    for whole in wholes:
        if part and rank(whole.verdict) == rank("skipped"):
            continue
        on_it = dict.fromkeys(names[x.kernel, x.file] for x in launches if x.tape == whole.tape)
        kinds.setdefault(_listed(sorted(on_it)), []).append(whole)
    found += [_tape(script, kernels, group) for kernels, group in kinds.items()]
    return tuple(sorted(found, key=lambda m: m.entry.key))


def measured_report(report: Report, script: str, folder: str) -> tuple[Measured, ...]:
    """The same of a report."""
    return measured(report.launches, report.end_to_end, script, folder, report.partial)


def names_of(launches: Sequence[Launch], folder: str) -> dict[tuple[str, str], str]:
    """Names of kernels, by their own names and files: with the file where others share the name."""
    files: dict[str, dict[str, None]] = {}
    for x in launches:
        files.setdefault(x.kernel, {})[x.file] = None
    return {
        (kernel, file): kernel if len(among) == 1 else f"{kernel}@{relative(file, folder)}"
        for kernel, among in files.items()
        for file in among
    }


def relative(file: str, folder: str) -> str:
    """A file as seen from a folder; of one elsewhere the last part alone, as places differ."""
    try:
        path = os.path.relpath(file, folder)
    except ValueError:  # another drive
        path = os.path.basename(file)
    if path.startswith(os.pardir + os.sep):
        path = os.path.basename(file)
    return path.replace(os.sep, "/")


def script_name(name: str, folder: str) -> str:
    """A target's name in the baseline: a path from its folder, or `-m MODULE`."""
    if name.startswith("-m "):
        return name
    try:
        path = os.path.relpath(name, folder)
    except ValueError:
        path = os.path.basename(name)
    return path.replace(os.sep, "/")


def expected_of(
    name: str, folder: str, entries: Sequence[Entry], known: Sequence[object], factor: float
) -> Expected:
    """What of a baseline is about a target, by its name."""
    script = script_name(name, folder)
    return Expected(
        script, folder, tuple(e for e in entries if e.script == script),
        tuple(k for k in known if k.script == script), factor,  # type: ignore[attr-defined,misc]
    )  # fmt: skip


def errors_of(p: Pair, largest: float) -> tuple[float | None, float | None]:
    """Error and rounding of a pair, as parts of its derivative's size.

    largest: the size of that derivative in other launches of the kernel. The error is the smaller
    one of that of the worst entry relative to itself, and to the largest: an entry that is next to
    nothing has no digits to be right in. Of a wrong derivative it is the first alone: how large the
    right one is, its adjoint does not tell.
    """
    if p.checked + p.directional == 0 or p.max_abs_error is None:
        return None, None
    scale = max(p.scale or 0.0, _PART * largest)
    whole = p.max_abs_error / scale if scale > 0.0 else None
    if p.max_rel_error is None:  # nothing is large enough to be relative to
        error = 0.0 if p.verdict in ("pass", "kink") else whole
    elif p.verdict == "fail" or whole is None or size(p.max_rel_error) < size(whole):
        error = p.max_rel_error
    else:
        error = whole
    if p.forward_error is not None and p.verdict in ("pass", "rounding"):
        error = min(size(error), p.forward_error)  # differences are right to fewer digits
    return error, (p.off or 0.0) / scale if scale > 0.0 else None


def judged(p: Pair, largest: float) -> Pair:
    """The pair, passed where its rounding is nothing beside what other launches have (G011)."""
    if p.verdict == "rounding" and 0.0 < (p.off or 0.0) <= _PART * largest:
        return replace(p, verdict="pass")
    return p


def _pair(
    script: str, kernel: str, input: str, output: str, group: Sequence[tuple[Launch, Pair]]
) -> Measured:
    largest = max(p.scale or 0.0 for _, p in group)
    worst = None
    errors, roundings = [], []
    for x, p in group:
        p = judged(p, largest)
        # Of a kink, the adjoint is one of several right values; else there is no reference.
        unknown = p.verdict == "kink" or rank(p.verdict) == rank("skipped")
        error, rounding = (None, None) if unknown else errors_of(p, largest)
        if error is not None:
            errors.append(error)
        if rounding is not None:
            roundings.append(rounding)
        place = (rank(p.verdict), max(size(error), size(rounding)))
        if worst is None or place > worst[0]:
            worst = (place, x, p)
    assert worst is not None
    _, x, p = worst
    entry = Entry(
        script, kernel, input, output, p.verdict,
        max(errors, key=size) if errors else None, max(roundings, key=size) if roundings else None,
    )  # fmt: skip
    return Measured(entry, x.tape, x.index, x.kernel, p)


def _tape(script: str, kernels: str, group: Sequence[EndToEnd]) -> Measured:
    worst = max(group, key=lambda e: (rank(e.verdict), size(e.rel_error)))
    errors = [
        e.rel_error for e in group
        if e.rel_error is not None and rank(e.verdict) != rank("skipped")
    ]  # fmt: skip
    error = max(errors, key=size) if errors else None
    roundings = [e.rounding for e in group if e.rounding is not None]
    rounding = max(roundings, key=size) if roundings else None
    return Measured(
        Entry(script, kernels, "", "", worst.verdict, error, rounding, True), worst.tape, -1, ""
    )


def _listed(kernels: Sequence[str]) -> str:
    more = f" and {len(kernels) - _NAMED} more" if len(kernels) > _NAMED else ""
    return ", ".join(kernels[:_NAMED]) + more
