"""The gradient of a rule of JAX as a function: its own derivative is the second one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.draws import default_rng
from engine.foreign.operation import Array, Cotangents, Gradients, Operation, OperationFailed, Value

if TYPE_CHECKING:
    from engine.foreign.jax_rules import RuleOperation


class RuleGradient(Operation):
    """The gradients of a call as a function of its inputs and of the cotangents of its outputs."""

    framework = "JAX"

    def __init__(self, call: RuleOperation) -> None:
        self.first = call
        self.name, self.what, self.gradient = call.name, call.what, call.gradient
        self.span, self.site = call.span, call.site
        self.iterated = call.iterated
        rng = default_rng(0x2D)
        extra = [
            Value(f"adj_{v.name}", v.rounded(rng.standard_normal(v.value.shape)), v.dtype)
            for v in call.outputs
        ]
        self.inputs = [*call.inputs, *extra]
        self.outputs = []
        found = self.primal([v.value for v in self.inputs], False)
        self.outputs = [
            Value(f"adj_{v.name}", g, v.dtype) for v, g in zip(call.inputs, found, strict=True)
        ]

    @staticmethod
    def of(call: RuleOperation) -> RuleGradient | None:
        """That of a call; None where JAX cannot differentiate the rule."""
        try:
            found = RuleGradient(call)
            found.vjp([v.value for v in found.inputs], [v.value for v in found.outputs], False)
        except OperationFailed:
            return None
        return found

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        """The gradients."""
        x, w = self._halves(inputs)
        found = self.first.vjp(x, w, lifted)
        pairs = zip(found, self.first.inputs, strict=True)
        return [np.zeros(v.value.shape) if g is None else g for g, v in pairs]

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        """Their derivative, by inputs and by cotangents."""
        x, w = self._halves(inputs)
        return self.first.second_vjp(x, w, cotangents, lifted)

    def _halves(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        count = len(self.first.inputs)
        return list(inputs[:count]), list(inputs[count:])
