"""Finds rules that iterate to a tolerance, and the accuracy that their gradient can have.

An implicit layer, or a solver, stops where its iterates are close to each other. What it returns
is off by about that much, and so are the differences of it and the gradient by its rule.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.autograd.comparison.tolerance import left_by_iteration
from engine.foreign.operation import Array

if TYPE_CHECKING:
    from engine.foreign.jax_runner import Runner

ORDERED = ("lt", "le", "gt", "ge")


def left_by_loops(runner: Runner, values: Sequence[Any], base: Sequence[Array]) -> float:
    """The relative error that iterations leave in the gradient by a rule; 0 if there are none."""
    import jax

    def run(leaves: Sequence[Any]) -> Any:
        plain = runner.function(leaves)
        moving = [leaves[i] for i in runner.moving]
        out, pull = jax.vjp(runner.of_moving(leaves), *moving)
        return jax.tree_util.tree_leaves(plain), pull([jax.numpy.ones_like(y) for y in out])

    # What cannot be traced has no loops of JAX that run until a tolerance.
    with contextlib.suppress(Exception):
        return max(_tolerances(runner.traced(run, values, base)), default=0.0)
    return 0.0


def _tolerances(jaxpr: Any) -> Iterator[float]:
    """For each loop that ends by comparing floats, the error that it leaves."""
    for equation in _equations(jaxpr):
        if equation.primitive.name == "while":
            cond, body = (equation.params[k].jaxpr for k in ("cond_jaxpr", "body_jaxpr"))
            reads_flag = any(str(v.aval.dtype) == "bool" for v in cond.invars)
            if _compares_floats(cond):
                yield _left(cond)
            elif reads_flag and _compares_floats(body):
                yield _left(body)


def _equations(jaxpr: Any) -> Iterator[Any]:
    """Those of a program, and of the programs inside of it."""
    from jax.extend import core

    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, core.ClosedJaxpr):
                    yield from _equations(inner.jaxpr)
                elif isinstance(inner, core.Jaxpr):
                    yield from _equations(inner)


def _compares_floats(jaxpr: Any) -> bool:
    return any(
        e.primitive.name in ORDERED and np.issubdtype(e.invars[0].aval.dtype, np.floating)
        for e in _equations(jaxpr)
    )


def _left(jaxpr: Any) -> float:
    """The error that a loop leaves, by the constants that the program reads."""
    found = []
    for equation in _equations(jaxpr):
        for value in (getattr(x, "val", None) for x in equation.invars):
            if isinstance(value, float | np.floating | np.ndarray) and np.size(value) == 1:
                found.append(float(np.asarray(value).reshape(-1)[0]))
    return left_by_iteration(found)
