"""The second derivative of a launch: its adjoint is a kernel and is checked like one.

The adjoint of y = f(x) is the kernel g = J(x)' w of x and of the cotangents w of y. Reverse
mode of it (reverse over reverse) must agree with differences of it, and with forward over
reverse where these two do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.launch.compare import CompareOptions, compare
from engine.autograd.launch.derived import derived
from engine.autograd.launch.evaluation import Evaluations, evaluations
from engine.autograd.launch.recorded_arguments import Argument
from engine.autograd.results import PairResult
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir import nodes as n
from engine.lang.types import ArrayType

_SAVED = (n.Push, n.Pop, n.Reserve)


class NoSecondDerivative(Exception):
    """Why a launch has no second derivative."""


def adjoint_kernel(variants: Variants, wrt: frozenset[str], journaled: frozenset[str]) -> Variants:
    """The adjoint as a kernel of its own. Raises NoSecondDerivative where it is none."""
    made = variants.expanded_adjoint(wrt, journaled)
    if made.sites:
        raise NoSecondDerivative(
            "it overwrites values that its adjoint reads, and the adjoint reads copies of them"
        )
    if any(isinstance(s, _SAVED) for s in n.walk(made.fn.body)):
        raise NoSecondDerivative("its adjoint saves values of loops, which has no derivative")
    # Its own adjoint undoes it from the last thread to the first: it must run upwards.
    found = derived(
        variants, ("adjoint", wrt, journaled),
        lambda: Variants(replace(made.fn, adjoints=())),
    )  # fmt: skip
    assert found is not None
    return found


def check_second(
    first: Evaluations, tolerance: Tolerance, rng: np.random.Generator
) -> tuple[PairResult, ...]:
    """Compares the derivatives of a launch's gradient. Raises NoSecondDerivative where it has none.

    The pairs name gradients `adj_<array>`. Inputs are the launch's own and the cotangents of
    its outputs.
    """
    own, args = first.own, first.own.launch.arguments
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
    second = replace(own.launch, variants=variants, arguments=(*args, *more))
    try:
        with evaluations(second) as evaluated:
            found = compare(evaluated, CompareOptions(tolerance, every_entry=True), rng)
    except (TypeError, AssertionError, EngineError) as why:
        raise NoSecondDerivative(f"its adjoint cannot be differentiated: {why}") from None
    wanted = {adjoint_of[a] for a in first.inputs}
    return tuple(c.result(a, b) for (a, b), c in found.pairs.items() if b in wanted)
