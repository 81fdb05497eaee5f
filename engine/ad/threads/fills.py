"""Tells whether a launch certainly stores every element of an array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from engine.ad.threads.affine import Axis, Given, Poly, Value
from engine.ad.threads.bounds import Bounds
from engine.ad.threads.collect import Access, Collected, Touch
from engine.ir import nodes as n


def fills(
    fn: n.Function, kernel: Collected, array: str, shape: Sequence[int],
    dim: Sequence[int], given: Mapping[Given, int], kind: Touch = "store",
) -> bool:  # fmt: skip
    """Whether every thread stores an element of its own, whole, and threads reach them all.

    kernel: what `fn` touches. given: integer arguments and extents of arrays. kind: `take` for
    what is read there and cleared.
    """
    if not kernel.known or kernel.stops or 0 in dim:
        return False
    spans = {
        s.span for s in _by_every_thread(fn.body)
        if isinstance(s, n.Store) and s.array.name == array and not s.path
    }  # fmt: skip
    bounds = Bounds(dim, given)
    for span in spans:
        # A place in the code may be several stores.
        here = [a for a in kernel.accesses if a.kind == kind and a.span == span]
        if here and all(a.array == array and _each(a, shape, dim, bounds) for a in here):
            return True
    return False


def _by_every_thread(block: n.Block) -> Iterator[n.Stmt]:
    for s in block:
        if any(x.LEAVES for x in n.walk((s,))):
            return
        yield s


def _each(a: Access, shape: Sequence[int], dim: Sequence[int], bounds: Bounds) -> bool:
    """Whether the index is the thread's own coordinates, one for each dimension."""
    axes = [_axis(v, bounds) for v in a.index]
    return (
        not a.facts
        and None not in axes
        and len(set(axes)) == len(axes)
        and all(d is not None and dim[d] >= count for d, count in zip(axes, shape, strict=True))
    )


def _axis(v: Value | None, bounds: Bounds) -> int | None:
    if v is None or not bounds.holds(v) or v.form.constant != Poly() or len(v.form.terms) != 1:
        return None
    ((axis, factor),) = v.form.terms
    return axis.dim if isinstance(axis, Axis) and factor == Poly.of(1) else None
