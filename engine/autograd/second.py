"""The second derivative of a launch: its adjoint is a kernel, and is checked like one.

The adjoint of y = f(x) is the kernel g = J(x)' w of x and of the cotangents w of y. Reverse
mode of it (reverse over reverse) must agree with differences of it, and with forward over
reverse where these two do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.autograd.launch_check import LaunchCheck
from engine.autograd.problem import Argument, Problem, lifted
from engine.autograd.results import PairResult
from engine.autograd.tolerance import Tolerance
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir import nodes as n
from engine.lang.types import ArrayType

_SAVED = (n.Push, n.Pop, n.Reserve)
_known: dict[tuple[int, frozenset[str], frozenset[str]], tuple[Variants, Variants]] = {}


class NoSecond(Exception):
    """Why a launch has no second derivative."""


def adjoint_kernel(variants: Variants, wrt: frozenset[str], journaled: frozenset[str]) -> Variants:
    """The adjoint as a kernel of its own. Raises NoSecond where it is none."""
    key = (id(variants), wrt, journaled)
    found = _known.get(key)
    if found is None or found[0] is not variants:
        made = variants.adjoint_ir(wrt, journaled)
        if made.sites:
            raise NoSecond("it overwrites what its adjoint reads, and the adjoint reads copies")
        if any(isinstance(s, _SAVED) for s in n.walk(made.fn.body)):
            raise NoSecond("its adjoint saves values of loops, which has no derivative")
        # Its own adjoint undoes it from the last thread to the first: it must run upwards.
        found = _known[key] = (variants, Variants(replace(made.fn, adjoints=frozenset())))
    return found[1]


def check_second(
    first: Problem, args: Sequence[Argument], tolerance: Tolerance, rng: np.random.Generator
) -> tuple[PairResult, ...]:
    """Compares the derivatives of a launch's gradient. Raises NoSecond where it has none.

    The pairs name gradients `adj_<array>`. Inputs are the launch's own and the cotangents of
    its outputs.
    """
    own = first.own
    variants = adjoint_kernel(own.variants, own.wrt, own.journaled)
    more = []
    names = [p.name for p in variants.ir.params[len(args) :]]
    arrays = [a for a, p in zip(args, own.params, strict=True)
              if isinstance(p.type, ArrayType) and a.name in own.wrt]  # fmt: skip
    adjoint_of = {a.name: name for a, name in zip(arrays, names, strict=True)}
    for a, name in zip(arrays, names, strict=True):
        alias = adjoint_of.get(a.alias, "") if a.alias else ""
        shape = own.initial[own.owner[a.name]].shape
        value = np.zeros(shape)
        if own.owner[a.name] in first.outputs:
            value = rng.standard_normal(shape)
        more.append(Argument(name, value, True, alias))
    problem = None
    try:
        problem = Problem(variants, lifted(variants), [*args, *more], own.dim)
        found = LaunchCheck(problem, tolerance, rng).run(True)
    except (TypeError, AssertionError, EngineError) as why:
        raise NoSecond(f"its adjoint cannot be differentiated: {why}") from None
    finally:
        if problem is not None:
            problem.close()
    wanted = {adjoint_of[a] for a in first.inputs}
    return tuple(p for p in found if p.output in wanted)
