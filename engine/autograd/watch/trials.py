"""Adjoints of recorded launches that are tried out: what comes of them, and all stays as it was."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir import nodes as n
from engine.runtime.array import array
from engine.tape.records import LaunchRecord
from engine.tape.restoration import NumpyArray


def gradients(record: LaunchRecord) -> list[array]:
    """The gradients that a record's backward pass changes, each memory once."""
    wrt = record._now().wrt
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

    seeded: from the gradients that are there; else all are one.
    """
    own = gradients(record)
    grads = [*own, *exposed(record)]
    before = [g._host().copy() for g in grads]
    start = [x if seeded or k >= len(own) else np.ones_like(x) for k, x in enumerate(before)]
    results = []
    try:
        for go in (one, other):
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
    a, b = results
    return tuple(k for k in a if not _equal(a[k], b[k]))


def _equal(x: NumpyArray, y: NumpyArray) -> bool:
    """Whether two gradients are equal; NaN is what NaN is."""
    other = x != y
    return not other.any() or bool(np.isnan(x[other]).all() and np.isnan(y[other]).all())


def _named(record: LaunchRecord) -> dict[str, NumpyArray]:
    """Copies of the gradients, by the parameters that the user knows."""
    wrt = record._now().wrt
    out = {}
    for p in record.plan.floats:
        if p.name in wrt:
            g = record.values[p.index].grad
            if g is not None:
                out[p.name] = np.array(g._host())
    return out
