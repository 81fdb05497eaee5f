"""Kernels that a program calls through `jax_kernel`: launched and checked as on a tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.autograd.results import LaunchResult
from engine.autograd.tape.options import Options
from engine.classes import dataclass
from engine.diagnostics import Span
from engine.foreign.jax_notes import Call
from engine.foreign.launched import checked_launch, kernel_place
from engine.foreign.operation import Array, Cotangents, Gradients, Operation, OperationFailed
from engine.lang.types import ArrayType
from engine.runtime.array import array
from engine.runtime.creation import zeros
from engine.runtime.device import HOST


@dataclass(frozen=True)
class Launched:
    """What a call of a kernel was made of. outputs: names and shapes, components last."""

    kernel: Any
    dim: tuple[int, ...]
    outputs: tuple[tuple[str, tuple[int, ...]], ...]


class KernelCall(Operation):
    """A call of a kernel, with the values of its arguments; JAX has it on the CPU."""

    framework = "JAX"
    what = "jax_kernel"
    gradient = "adjoint"

    def __init__(self, call: Call, launched: Launched, values: Sequence[Any]) -> None:
        self.launched = launched
        self.name = launched.kernel.key
        self.span: Span = kernel_place(launched.kernel)
        self.site = call.place
        self.inputs, self.outputs = (), ()
        given = iter(values)
        count = len(call.leaves) + len(call.static)
        self._args = [call.static[i] if i in call.static else next(given) for i in range(count)]

    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        """It has a check of its own."""
        raise OperationFailed

    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        """It has a check of its own."""
        raise OperationFailed

    def own_check(self, options: Options) -> LaunchResult | None:
        """The check of a launch at these arguments."""
        made = self.launched
        return checked_launch(made.kernel, made.dim, self._arguments(), self.site, options)

    def _arguments(self) -> list[Any]:
        """The arguments of the launch, in the kernel's order."""
        outputs = dict(self.launched.outputs)
        out: list[Any] = []
        for k, (name, kind) in enumerate(self.launched.kernel.signature.types.items()):
            x = self._args[k] if k < len(self._args) else None
            if isinstance(kind, ArrayType):
                if x is None:
                    made = zeros(outputs[name][: kind.ndim], kind.element, HOST, True)
                else:
                    made = array(np.array(x), kind.element, device=HOST, requires_grad=True)
                out.append(made)
            else:
                out.append(np.asarray(x).tolist() if hasattr(x, "dtype") else x)
        return out
