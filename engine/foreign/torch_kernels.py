"""Operators that `torch_kernel` made: their calls are checked as launches of the kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.autograd.results import LaunchResult
from engine.autograd.tape.options import Options
from engine.diagnostics import Span
from engine.foreign.launched import checked_launch
from engine.interop.ops.torch_formulas import Formula, Forward
from engine.interop.torch import from_torch
from engine.runtime.creation import zeros
from engine.runtime.device import HOST


def formula_of(backward: Any) -> Formula | None:
    """The engine's own derivative of an operator; None for one that a user wrote."""
    owner = getattr(backward, "__self__", None)
    return owner if isinstance(owner, Formula) else None


def is_derived(formula: Formula) -> bool:
    """Whether it is of an adjoint, or of a program of tangents: the engine made these of a kernel,
    whose check compares them.
    """
    program = formula.of.program
    names = [p.name for p in program.plan.params]
    return not isinstance(formula, Forward) or names != list(program.plan.kernel.signature.types)


def checked_call(
    formula: Formula, args: Sequence[Any], wanted: Sequence[int], site: Span | None,
    options: Options,
) -> LaunchResult:  # fmt: skip
    """The check of a call of an operator. args: its own; wanted: which of them ask for a gradient.

    It is that of a launch of the kernel.
    """
    program = formula.of.program
    dim = tuple(args[formula.of.count + len(program.numbers)])
    given = _given(formula, args, wanted)
    named = [given[p.name] for p in program.plan.params]
    return checked_launch(program.plan.kernel, dim, named, site, options)


def _given(formula: Formula, args: Sequence[Any], wanted: Sequence[int]) -> Mapping[str, Any]:
    """The arguments of the launch by name."""
    of, program = formula.of, formula.of.program
    out: dict[str, Any] = {}
    for k, (p, t) in enumerate(zip(program.inputs, args, strict=False)):
        assert p.array_kind is not None
        copy = t.detach().clone()
        out[p.name] = from_torch(copy, dtype=p.array_kind.element, requires_grad=k in wanted)
    numbers = args[of.count : of.count + len(program.numbers)]
    for p, value in zip(program.numbers, numbers, strict=True):
        out[p.name] = value
    for p, shape in zip(program.outputs, of.split(args[of.count + len(numbers) + 1]), strict=True):
        assert p.array_kind is not None
        kind = p.array_kind
        floats = p in program.float_results
        out[p.name] = zeros(shape[: kind.ndim], kind.element, HOST, floats)
    return out
