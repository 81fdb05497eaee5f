"""Arguments of calls in JAX: their origin, their types, and the caller."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.diagnostics import Site
from engine.diagnostics.site import call_site
from engine.foreign.jax_functions import is_own_file
from engine.foreign.jax_notes import Held, Lost, Slot, Source


def source(x: Any) -> Source:
    """Where a value comes from."""
    from jax._src import core

    lanes: list[int | None] = []
    while isinstance(x, core.Tracer):
        if hasattr(x, "batch_dim"):
            if not isinstance(x.batch_dim, int | None):
                return Lost()
            lanes.append(x.batch_dim)
            x = x.val
        elif hasattr(x, "primal"):
            x = x.primal
        elif type(x).__name__ == "DynamicJaxprTracer":
            atom: Any = x.val
            if isinstance(atom, core.Literal):
                x = atom.val
                break
            known = x._trace.frame.constvar_to_val.get(atom)
            if known is None or isinstance(known, core.Tracer):
                return Slot(atom, tuple(lanes))
            x = getattr(known, "canonical", known)
            break
        else:
            return Lost()
    return Held(x, tuple(lanes))


def x64_enabled() -> bool:
    """Whether JAX has numbers of 64 bits here."""
    import jax

    return bool(jax.config.jax_enable_x64)


def caller() -> Site | None:
    """The nearest call in the user's program."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and not is_own_file(frame.f_code.co_filename):
        depth, frame = depth + 1, frame.f_back
    return call_site(depth + 1) if is_own_file(frame.f_code.co_filename) else None


def nbytes_of(sources: Sequence[Source], types: Sequence[Any]) -> int:
    """Memory that a call keeps."""
    held = [t for s, t in zip(sources, types, strict=True) if isinstance(s, Held)]
    return sum(int(np.prod(shape)) * getattr(dtype, "itemsize", 8) for shape, dtype, _ in held)


def leaf_type(x: Any) -> tuple[tuple[int, ...], Any, bool]:
    """The shape and type of an argument, and whether the type is weak."""
    from jax._src import core

    aval = core.typeof(x)
    return tuple(aval.shape), aval.dtype, bool(getattr(aval, "weak_type", False))


def copied(source: Held, lent: bool = False) -> Held:
    """What stays as it is: arrays of JAX do, unless they are given away."""
    value = source.value
    if isinstance(value, np.ndarray) or (lent and hasattr(value, "__array__")):
        return Held(np.array(value, copy=True), source.lanes)
    return source
