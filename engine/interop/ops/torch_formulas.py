"""The derivatives of a program and of its adjoint, in PyTorch's form.

The derivative of the adjoint g = J(x)' c along v is found by the program of the tangents, J(x) v:
that itself with respect to c, and the gradient of c . J(x) v with respect to x. So it can be
differentiated again as often as programs of tangents are made for: `order`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.interop.ops.tensors import array_of
from engine.lang.types import is_float

if TYPE_CHECKING:
    from engine.interop.ops.torch_ops import Operators


class Formula(ABC):
    """The derivatives of an operator."""

    def __init__(self, of: Operators) -> None:
        self.of = of

    @abstractmethod
    def call(self, *args: Any) -> Any:
        """The operator itself, in whatever mode of derivatives."""

    @abstractmethod
    def setup_context(self, ctx: Any, inputs: Any, output: Any) -> None:
        """Saves what the derivatives read."""

    @abstractmethod
    def backward(self, ctx: Any, *grads: Any) -> Any:
        """Gradients of all arguments, None for those that have none."""

    @abstractmethod
    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        """Tangents of all results."""


class Forward(Formula):
    """Those of a program."""

    def call(self, *args: Any) -> Any:
        return self.of.forward(*args)

    def setup_context(self, ctx: Any, inputs: Any, output: Any) -> None:
        tensors, rest = inputs[: self.of.count], inputs[self.of.count :]
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.rest = rest
        made = output if isinstance(output, tuple) else (output,)
        whole = [t for t, p in zip(made, self.of.program.results, strict=True)
                 if not is_float(p.kind)]  # fmt: skip
        if whole:
            ctx.mark_non_differentiable(*whole)

    def backward(self, ctx: Any, *grads: Any) -> Any:
        of = self.of
        cotangents = [grads[k] for k in of.float_results]
        wanted = [bool(ctx.needs_input_grad[k]) for k in of.float_inputs]
        out: list[Any] = [None] * (of.count + len(ctx.rest))
        if any(wanted) and any(c is not None for c in cotangents):
            found = of.adjoint(*ctx.saved_tensors, *ctx.rest, *cotangents, wanted)
            found = found if isinstance(found, tuple) else (found,)
            for k, want, g in zip(of.float_inputs, wanted, found, strict=True):
                if want:
                    out[k] = g
        return tuple(out)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        of = self.of
        moved = [tangents[k] for k in of.float_inputs]
        pushed = _pushed(of, ctx.saved_tensors, ctx.rest, moved)
        out: list[Any] = [None] * len(of.program.results)
        for k, t in zip(of.float_results, pushed, strict=True):
            out[k] = t
        return out[0] if len(out) == 1 else tuple(out)


class Backward(Formula):
    """Those of the adjoint."""

    def call(self, *args: Any) -> Any:
        return self.of.adjoint(*args)

    def setup_context(self, ctx: Any, inputs: Any, output: Any) -> None:
        del output
        count = len(self.of.program.float_results)
        cotangents = inputs[-1 - count : -1]
        saved = (*inputs[: self.of.count], *cotangents)
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)
        ctx.rest, ctx.wanted = inputs[self.of.count : -1 - count], inputs[-1]

    def _saved(self, ctx: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        saved = ctx.saved_tensors
        return saved[: self.of.count], saved[self.of.count :]

    def _second(self) -> None:
        if self.of.order < 2:
            key, whole = self.of.program.key, self.of.whole
            often = {1: "once", 2: "twice"}.get(whole, f"{whole} times")
            raise TapeError(
                Diagnostic("E401", f"the operator of kernel {key!r} can be differentiated {often}, "
                           "and a further derivative was requested", call_span(),
                           f"make it with `torch_kernel(..., order={whole + 1})`")
            )  # fmt: skip

    def backward(self, ctx: Any, *grads: Any) -> Any:
        of = self.of
        self._second()
        inputs, cotangents = self._saved(ctx)
        moved = [g if want else None for g, want in zip(grads, ctx.wanted, strict=True)]
        out: list[Any] = [None] * (of.count + len(ctx.rest) + len(cotangents) + 1)
        if all(v is None for v in moved):
            return tuple(out)
        needs = ctx.needs_input_grad
        wanted = [bool(needs[k]) for k in of.float_inputs]
        if any(wanted) and any(c is not None for c in cotangents):
            for k, g in zip(of.float_inputs, self._curved(inputs, ctx.rest, moved, cotangents,
                                                           wanted), strict=True):  # fmt: skip
                out[k] = g
        first = of.count + len(ctx.rest)
        if any(needs[first : first + len(cotangents)]):
            pushed = _pushed(of, inputs, ctx.rest, moved)
            for k, (c, t) in enumerate(zip(cotangents, pushed, strict=True)):
                if c is not None and needs[first + k]:
                    out[first + k] = t
        return tuple(out)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        of = self.of
        self._second()
        inputs, cotangents = self._saved(ctx)
        moved = [tangents[k] for k in of.float_inputs]
        first = of.count + len(ctx.rest)
        turned = list(tangents[first : first + len(cotangents)])
        out: list[Any] = [None] * len(of.float_inputs)
        if any(t is not None for t in turned):
            found = of.adjoint(*inputs, *ctx.rest, *turned, ctx.wanted)
            out = list(found) if isinstance(found, tuple) else [found]
        if any(v is not None for v in moved) and any(c is not None for c in cotangents):
            # Second derivatives are symmetric: the same as in reverse.
            curved = self._curved(inputs, ctx.rest, moved, cotangents, ctx.wanted)
            out = [a if b is None else b if a is None else a + b
                   for a, b in zip(out, curved, strict=True)]  # fmt: skip
        # `torch.func` knows no result without a tangent.
        out = [self._still(inputs[k], want) if t is None else t
               for k, want, t in zip(of.float_inputs, ctx.wanted, out, strict=True)]  # fmt: skip
        return out[0] if len(out) == 1 else tuple(out)

    @staticmethod
    def _still(of: Any, wanted: bool) -> Any:
        """The tangent of a gradient that does not change; one not asked for has no elements."""
        import torch

        return torch.zeros_like(of) if wanted else of.new_zeros(0)

    def _curved(
        self, inputs: Sequence[Any], rest: Any, moved: Sequence[Any], cotangents: Sequence[Any],
        wanted: Sequence[bool],
    ) -> list[Any]:  # fmt: skip
        """The gradient of c . J(x) v with respect to float inputs; None for those not wanted."""
        of = self.of
        over, args = _moving(of, inputs, rest, moved)
        of_results = {p.name: c for p, c in zip(of.program.float_results, cotangents, strict=True)}
        back = {tan: name for name, tan in of.program.tangent_names.items()}
        given = [of_results.get(back.get(p.name, "")) for p in over.program.float_results]
        names = {p.name for p, w in zip(of.program.float_inputs, wanted, strict=True) if w}
        asked = [p.name in names for p in over.program.float_inputs]
        found = over.adjoint(*args, *given, asked)
        found = found if isinstance(found, tuple) else (found,)
        named = {p.name: g for p, g in zip(over.program.float_inputs, found, strict=True)}
        return [named[p.name] if p.name in names else None for p in of.program.float_inputs]


def _moving(
    of: Operators, inputs: Sequence[Any], rest: Any, moved: Sequence[Any]
) -> tuple[Operators, list[Any]]:
    """The program of tangents, and its arguments. moved: tangents of float inputs."""
    import torch

    over, names = of.tangents, of.program.tangent_names
    of.program.warn_of_tangent()
    named = {p.name: t for p, t in zip(of.program.inputs, inputs, strict=True)}
    for p, v in zip(of.program.float_inputs, moved, strict=True):
        named[names[p.name]] = torch.zeros_like(named[p.name]) if v is None else v
    numbers, dim, shapes = rest[:-2], rest[-2], rest[-1]
    sizes = dict(zip((p.name for p in of.program.outputs), of.split(shapes), strict=True))
    sizes |= {names[k]: v for k, v in sizes.items() if k in names}
    flat = [k for p in over.program.outputs for k in sizes[p.name][: array_of(p).ndim]]
    return over, [*(named[p.name] for p in over.program.inputs), *numbers, dim, flat]


def _pushed(of: Operators, inputs: Any, rest: Any, moved: Sequence[Any]) -> list[Any]:
    """J(x) v: the tangents of float results."""
    over, args = _moving(of, inputs, rest, moved)
    made = over.forward(*args)
    made = made if isinstance(made, tuple) else (made,)
    named = {p.name: t for p, t in zip(over.program.results, made, strict=True)}
    return [named[of.program.tangent_names[p.name]] for p in of.program.float_results]
