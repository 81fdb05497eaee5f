"""Memory that launches on a tape have read, for `config.verify_autograd_array_access`."""

from __future__ import annotations

from engine.lang import strided
from engine.logger import log_warning
from engine.runtime.base import ArrayBase, elements_of

_WARNED_OF = "This may corrupt gradient computation in the backward pass."


def is_read(a: ArrayBase) -> bool:
    """Whether an element of an array is marked as read."""
    marks = a.storage.reads
    return bool(marks) and any(strided.may_meet(elements_of(a), m) for m in (marks or {}).values())


def mark_read(a: ArrayBase) -> None:
    """Marks the elements of an array as read."""
    marks, key = a.storage.reads, (a._packed, a._info.size)
    if marks is None:
        marks = a.storage.reads = {}
    if key not in marks:
        marks[key] = elements_of(a)


def unmark(a: ArrayBase) -> None:
    """Takes all marks from the memory of an array."""
    a.storage.reads = None


def warn(a: ArrayBase, who: str) -> None:
    """Warns that an array is written after it was read. who: by whom, to be put into the text."""
    log_warning(
        f"Array {a} {who} but has already been read from in a previous launch. {_WARNED_OF}"
    )


def warn_within(parameter: str, kernel: str, place: str) -> None:
    """Warns of a kernel that writes an array after it read it."""
    log_warning(
        f"Array passed to argument {parameter} in kernel {kernel} at {place} is being written to "
        f"after it has been read from within the same kernel. {_WARNED_OF}"
    )
