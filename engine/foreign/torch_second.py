"""The backward of a PyTorch function as a function: its own derivative is the second one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.draws import default_rng
from engine.foreign.operation import (
    Array,
    Cotangents,
    GradientRaised,
    Gradients,
    Operation,
    OperationFailed,
    Value,
)
from engine.foreign.torch_call import TorchCall
from engine.foreign.torch_running import undisturbed
from engine.foreign.torch_tensors import numbers, tensor_of

ONCE = "once_differentiable"


class TorchGradient(Operation):
    """The gradients of a call as a function of its inputs and of the cotangents of its outputs."""

    framework = "PyTorch"

    def __init__(self, call: TorchCall, gradients: Sequence[Array | None]) -> None:
        self.first = call
        self.name, self.what, self.gradient = call.name, call.what, call.gradient
        self.span, self.site = call.span, call.site
        rng = default_rng(0x2D)
        self.inputs = [
            *call.inputs,
            *(
                Value(f"adj_{v.name}", v.rounded(rng.standard_normal(v.value.shape)), v.dtype)
                for v in call.outputs
            ),
        ]
        self.given = [k for k, g in enumerate(gradients) if g is not None]
        x, w = self._halves([v.value for v in self.inputs])
        first = call.vjp(x, w, False)
        self.outputs = []
        for k in self.given:
            g, v = first[k], call.inputs[k]
            assert g is not None
            self.outputs.append(Value(f"adj_{v.name}", g, v.dtype))

    @staticmethod
    def of(call: TorchCall) -> TorchGradient | None:
        """That of a call; None where its backward says that it has no derivative."""
        x = [v.value for v in call.inputs]
        ones: Cotangents = [np.ones(v.value.shape) for v in call.outputs]
        try:
            found = TorchGradient(call, call.vjp(x, ones, False))
            found.vjp([v.value for v in found.inputs], [v.value for v in found.outputs], False)
        except GradientRaised as why:
            return None if ONCE in str(why) else found
        except OperationFailed:
            return None
        return found if found.outputs else None

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        x, w = self._halves(inputs)
        found = self.first.vjp(x, w, lifted)
        shapes = [v.value.shape for v in self.first.inputs]
        return [_or_zeros(found[k], shapes[k]) for k in self.given]

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        import torch

        x, w = self._halves(inputs)
        first = self.first
        with first.placed(x, lifted), undisturbed(first.state, lifted, first.small):
            leaves = [
                tensor_of(a, first.args[k], lifted) for k, a in zip(first.wanted, x, strict=True)
            ]
            outputs, leaves = first.graph(leaves, lifted, first.wanted)
            given = [
                tensor_of(b, y, False).requires_grad_() for y, b in zip(outputs, w, strict=True)
            ]
            try:
                found = torch.autograd.grad(
                    outputs, leaves, given, create_graph=True, allow_unused=True
                )
                pairs = [
                    (found[k], c) for k, c in zip(self.given, cotangents, strict=True)
                    if c is not None and found[k] is not None and found[k].requires_grad
                ]  # fmt: skip
                if not pairs:
                    return [None] * len(self.inputs)
                second = torch.autograd.grad(
                    [g for g, _ in pairs], [*leaves, *given],
                    [tensor_of(c, g, False) for g, c in pairs], allow_unused=True,
                )  # fmt: skip
            except Exception as error:
                text = " ".join(str(error).split())
                raise GradientRaised(
                    f"the derivative of its backward raises {type(error).__name__}: {text:.200}"
                ) from None
            return [None if g is None else numbers(g) for g in second]

    def _halves(self, inputs: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        count = len(self.first.inputs)
        return list(inputs[:count]), list(inputs[count:])


def _or_zeros(g: Any, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape) if g is None else np.asarray(g)
