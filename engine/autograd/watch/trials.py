"""Tries adjoints of recorded launches, and restores all memory afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir import nodes as n
from engine.lang.numbers import epsilon
from engine.runtime.array import array
from engine.tape.records import LaunchRecord
from engine.tape.restoration import NumpyArray

Gradients = dict[str, NumpyArray]
# What is not told from rounding: times what the order of terms was seen to change, and units of the
# type's precision, of the largest number.
_NOISE, _UNITS = 8.0, 16.0


def gradients(record: LaunchRecord) -> list[array]:
    """The gradients that a record's backward pass changes, each memory once."""
    wrt = record._selection_now().wrt
    found = [record.values[p.index].grad for p in record.plan.floats if p.name in wrt]
    return list({(g.ptr, g.shape, g.strides): g for g in found if g is not None}.values())


def exposed(record: LaunchRecord) -> list[array]:
    """The arrays that an adjoint may write to beside gradients: a handwritten one may."""
    if not _calls(record.plan.variants):
        return []
    found = [record.values[p.index] for p in record.plan.array_params]
    return [a for a in found if a is not None and a.storage.writable]


@lru_cache(256)
def _calls(variants: Variants) -> bool:
    return any(isinstance(s, n.Call) for s in n.walk(variants.prepared.body))


def tried(
    record: LaunchRecord, one: Callable[[], None], other: Callable[[], None], seeded: bool
) -> tuple[str, ...]:
    """The parameters whose gradients differ after one or the other; all stays as it is.

    seeded: from the gradients that are there; else all are one. Where threads have no order, sums
    of floats are others each time: both are run again then, to see by how much.
    """
    own, ordered = gradients(record), record.plan.backend.on_host
    grads = [*own, *exposed(record)]
    before = [g._host().copy() for g in grads]
    start = [x if seeded or k >= len(own) else np.ones_like(x) for k, x in enumerate(before)]
    results: list[Gradients] = []
    try:
        for go in (one, other, other, one):
            if len(results) == 2 and (ordered or not _changed(*results)):
                break
            for g, x in zip(grads, start, strict=True):
                g._put(x)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                go()
            results.append(_named(record))
    except EngineError:
        return ()
    finally:
        for g, was in zip(grads, before, strict=True):
            g._put(was)
    return _changed(*results)


def _changed(
    a: Gradients, b: Gradients, b_again: Gradients | None = None, a_again: Gradients | None = None
) -> tuple[str, ...]:
    """The parameters whose gradients differ by more than those that are computed again do."""
    if a_again is None or b_again is None:
        return tuple(k for k in a if not _equal(a[k], b[k]))
    return tuple(k for k in a if not _near(a[k], b[k], b_again[k], a_again[k]))


def _near(x: NumpyArray, y: NumpyArray, y_again: NumpyArray, x_again: NumpyArray) -> bool:
    """Whether two gradients are equal but for the order in which their terms are added."""
    every = (x, y, y_again, x_again)
    if x.dtype.names:
        return all(_near(*(z[k] for z in every)) for k in x.dtype.names)
    finite = np.isfinite(x) & np.isfinite(y)
    if not _equal(x[~finite], y[~finite]):
        return False
    a, b, c, d = (np.where(finite, z, 0).astype(np.float64) for z in every)
    noise = max(_largest(a - d), _largest(b - c))
    allowed = max(_NOISE * noise, _UNITS * epsilon(x.dtype) * _largest(a))
    return _largest(a - b) <= allowed


def _largest(x: NumpyArray) -> float:
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


def _equal(x: NumpyArray, y: NumpyArray) -> bool:
    """Whether two gradients are equal; NaN is what NaN is."""
    other = x != y
    return not other.any() or bool(np.isnan(x[other]).all() and np.isnan(y[other]).all())


def _named(record: LaunchRecord) -> Gradients:
    """Copies of the gradients, by the parameters that the user knows."""
    wrt = record._selection_now().wrt
    out = {}
    for p in record.plan.floats:
        if p.name in wrt:
            g = record.values[p.index].grad
            if g is not None:
                out[p.name] = np.array(g._host())
    return out
