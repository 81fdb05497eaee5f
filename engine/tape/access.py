"""Warns immediately of writes to arrays that the tape has read: see `engine.config`."""

from __future__ import annotations

from functools import lru_cache

from engine.compile.pipeline import Variants
from engine.diagnostics import Span
from engine.runtime import reads
from engine.runtime.array import array
from engine.tape.records import LaunchRecord
from engine.tape.records.record import Record


def launched(record: LaunchRecord) -> None:
    """A launch was recorded."""
    plan, values = record.plan, record.values
    for name, span in _within(plan.variants):
        reads.warn_within(name, plan.kernel.key, f"{span.file}:{span.line}")
    for i in plan.writes:
        a = values[i]
        if a is not None and a.storage.reads and reads.is_read(a):
            at = plan.variants.ir.span
            reads.warn(
                a._whole or a, f"passed to argument {plan.params[i].name} in kernel "
                f"{plan.kernel.key} at {at.file}:{at.line} is being written to",
            )  # fmt: skip
    for i in plan.reads:
        a = values[i]
        if a is not None:
            marks = a.storage.reads
            if marks is None or (a._packed, a._info.size) not in marks:
                reads.mark_read(a)


def written(dest: array, name: str, src: array | None = None) -> None:
    """Something but a launch is about to write, on a tape. src: what it reads."""
    if reads.is_read(dest):
        from engine.diagnostics.site import call_span

        span = call_span()
        at = "" if span is None else f" at {span.file}:{span.line}"
        operation = name if src is None else f"an array {name}"
        reads.warn(dest, f"is being written to by {operation}{at}")
    if src is not None:
        reads.mark_read(src)


def forget(records: list[Record]) -> None:
    """What a tape read has been used, or is forgotten."""
    for r in records:
        for a in r.arrays:
            if isinstance(a, array):
                reads.unmark(a)


@lru_cache(maxsize=512)
def _within(variants: Variants) -> tuple[tuple[str, Span], ...]:
    """Array parameters that a kernel stores to after it has loaded from them, in the text."""
    from engine.ir import nodes as n

    loaded: set[str] = set()
    out: dict[str, Span] = {}
    for s in n.walk(variants.prepared.body):
        if isinstance(s, n.Load):
            loaded.add(s.array.name)
        elif isinstance(s, n.Store) and s.array.name in loaded:
            out.setdefault(s.array.name, s.span)
    return tuple(out.items())
