"""Rules of JAX with captured tracers: copies with values in their place."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence
from typing import Any

from engine.foreign.jax_functions import is_rule
from engine.foreign.jax_notes import Call


def with_cells(call: Call, cells: Sequence[Any]) -> tuple[Any, dict[int, Any]]:
    """The rule of a call, and its static arguments.

    With values in the place of traced variables that functions have captured.
    """
    if not call.cells:
        return call.rule, call.static
    values = {id(cell): x for (cell, _), x in zip(call.cells, cells, strict=True)}
    refilled = _Refilled(values)
    return refilled.rule(call.rule), {i: refilled.function(x) for i, x in call.static.items()}


class _Refilled:
    """Copies of functions and rules, with other values in some cells."""

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values
        self.rules: dict[int, Any] = {}
        self.cells: dict[int, types.CellType] = {}

    def rule(self, rule: Any) -> Any:
        """A copy of a rule."""
        import jax

        if id(rule) in self.rules:
            return self.rules[id(rule)]
        make: Any = jax.custom_vjp if hasattr(rule, "bwd") else jax.custom_jvp
        out = self.rules[id(rule)] = make(rule.fun, nondiff_argnums=rule.nondiff_argnums)
        out.fun = self.function(rule.fun)
        if hasattr(rule, "bwd"):
            out.defvjp(
                self.function(rule.fwd), self.function(rule.bwd),
                symbolic_zeros=rule.symbolic_zeros, optimize_remat=rule.optimize_remat,
            )  # fmt: skip
        else:
            out.defjvp(self.function(rule.jvp), symbolic_zeros=rule.symbolic_zeros)
        return out

    def function(self, f: Any) -> Any:
        """A copy of a function; what is no plain function stays."""
        if not isinstance(f, types.FunctionType) or not f.__closure__:
            return f
        inside = tuple(self._cell(cell) for cell in f.__closure__)
        g = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, inside)
        g.__kwdefaults__ = f.__kwdefaults__
        return g

    def _cell(self, cell: types.CellType) -> types.CellType:
        if id(cell) in self.cells:
            return self.cells[id(cell)]
        out = self.cells[id(cell)] = types.CellType()
        with contextlib.suppress(ValueError):  # an empty one
            held = self.values.get(id(cell), cell.cell_contents)
            out.cell_contents = self.rule(held) if is_rule(held) else self.function(held)
        return out
