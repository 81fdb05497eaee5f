"""A recorded launch as data: its kernel, and its arguments at that time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.compile.pipeline import Variants
from engine.lang.types import ArrayType, Type, is_float, scalar_of
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.kernel import Kernel
from engine.tape.records import LaunchRecord


class NotRepeatable(Exception):
    """Why a launch cannot be run again."""


class Overlapping(NotRepeatable):
    """Two of its arguments share some of their elements, not all."""


@dataclass(frozen=True)
class Argument:
    """One kernel argument at record time.

    value: for arrays the contents (shape + component shape), else a scalar or a
    component array. requires_grad: the array takes part in differentiation.
    alias: the name of an earlier argument that is the same memory, or empty.
    """

    name: str
    value: Any
    requires_grad: bool = False
    alias: str = ""


@dataclass(frozen=True)
class RecordedLaunch:
    """A kernel over a grid, at the values that its arguments had. One argument a parameter.

    variants: what runs of the kernel, or of one that was derived from it.
    """

    kernel: Kernel
    variants: Variants
    dim: tuple[int, ...]
    arguments: tuple[Argument, ...]


def shape_key(record: LaunchRecord) -> tuple[Any, ...]:
    """Equal for launches of one kernel over equal grids, with arguments of equal shapes.

    Also equal: which arrays have gradients, and which are the same memory.
    """
    owners: dict[Any, int] = {}
    arrays: list[Any] = []
    for p, a in zip(record.plan.params, record.args, strict=True):
        if p.array_kind is None:
            continue
        if a is None:
            arrays.append(None)
            continue
        key = (a.ptr, tuple(a.shape), tuple(a.strides))
        first = owners.setdefault(key, p.index) if a.size else p.index
        arrays.append((key[1], bool(a.requires_grad), first))
    return (record.plan.variants, tuple(record.dim), tuple(arrays))


def recorded_launch(record: LaunchRecord) -> RecordedLaunch:
    """The launch behind a record. Raises NotRepeatable where its arguments are not known."""
    out: list[Argument] = []
    owners: dict[Any, str] = {}
    contents = record.inputs_at_record()
    variants = record.plan.variants
    written = variants.written
    views: list[tuple[array, str, bool]] = []
    params = zip(variants.ir.params, contents, record.args, strict=True)
    for position, (p, value, now) in enumerate(params):
        if not isinstance(p.type, ArrayType):
            out.append(Argument(p.name, as_passed(p.type, value)))
            continue
        if now is None:
            out.append(Argument(p.name, np.zeros((0,) * p.type.ndim)))
            continue
        if value is None:
            why = record.lost.get(p.name, "")
            raise NotRepeatable(
                f"the contents of argument {p.name!r} at launch time are lost"
                + (f": {why}" if why else "")
            )
        key = (now.ptr, tuple(now.shape), tuple(now.strides))
        owner, mine = owners.get(key), p.name in written
        for other_view, other, changed in views:
            if (mine or changed) and owner != other and _overlap(now, other_view):
                raise Overlapping(f"arguments {other!r} and {p.name!r} overlap in memory")
        alias = owner or "" if now.size else ""
        if not alias:
            owners[key] = p.name
            views.append((now, p.name, mine))
        elif p.name in variants.read:  # the one that is read has the contents at launch
            out = [replace(x, value=value) if x.name == alias else x for x in out]
        grad = bool(now.requires_grad) and is_float(p.type)
        if is_float(p.type) and position not in record.plan.inputs:
            # What was there before does not matter, and is not known: it may be NaN.
            value = np.where(np.isfinite(value), value, 0)
        out.append(Argument(p.name, value, grad, alias))
    return RecordedLaunch(record.plan.kernel, variants, tuple(record.dim), tuple(out))


def as_passed(kind: Type, value: Any) -> Any:
    """The value of an argument that is no array, as the kernel got it: rounded to its type."""
    if not is_float(kind):
        return value
    with np.errstate(over="ignore"):
        return np.asarray(value, scalar_of(kind).numpy)[()]


def overlaps(record: LaunchRecord) -> bool:
    """Whether a launch cannot be run again because its arguments overlap."""
    try:
        recorded_launch(record)
    except Overlapping:
        return True
    except NotRepeatable:
        pass
    return False


def _overlap(a: array, b: array) -> bool:
    """Whether two views share an element; where that is hard to tell, they do."""
    if not may_meet(a, b):
        return False
    share: Any = np.shares_memory
    places = [getattr(x._parts, "lies", x._parts) for x in (a, b)]  # of a GPU, or the host
    try:
        return bool(share(*places, max_work=100_000))
    except Exception:  # too hard to tell
        return True
