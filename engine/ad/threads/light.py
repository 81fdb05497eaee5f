"""Finds kernels that compilers vectorise well: a thread takes less than a nanosecond."""

from __future__ import annotations

from collections.abc import Iterable

from engine.ad.threads.affine import Axis, Poly, Value
from engine.ir import nodes as n
from engine.lang.types import ScalarType

LIGHT = 0.3  # of what an operation is counted as
_ONE = Poly.of(1)
_WORD = 4  # bytes


def is_light(
    fn: n.Function, indices: Iterable[tuple[Value | None, ...]], slow: frozenset[str]
) -> bool:
    """Whether threads do simple arithmetic in a row, with numbers that lie side by side.

    indices: of all elements that they touch. slow: operations that take longer.
    """
    last = -1
    for s in fn.body:
        if isinstance(s, n.Let):
            t = s.dst.type
            if s.op in slow or not isinstance(t, ScalarType) or t.size > _WORD:
                return False
            if s.op == "tid" and isinstance(axis := s.args[0], n.Const):
                assert isinstance(axis.value, int)
                last = max(last, axis.value)
        elif isinstance(s, n.Atomic):
            if s.kind not in ("add", "sub"):
                return False
        elif not isinstance(s, (n.Load, n.Store)):
            return False
        if isinstance(s, (n.Load, n.Store, n.Atomic)) and (
            s.path or not isinstance(element := s.array.type.element, ScalarType)  # type: ignore[union-attr]
            or element.size > _WORD
        ):  # fmt: skip
            return False
    return all(_side_by_side(i, last) for i in indices)


def _side_by_side(index: tuple[Value | None, ...], last: int) -> bool:
    """Whether threads in a row touch elements in a row, or one."""
    for k, value in enumerate(index):
        if value is None:
            return False
        for c, by in value.form.terms:
            inner = isinstance(c, Axis) and c.dim == last
            if not isinstance(c, Axis) or by != _ONE or (inner and k < len(index) - 1):
                return False
    return True
