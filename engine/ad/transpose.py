"""Forward mode of functions with a custom gradient over arrays: the transpose of the gradient.

A gradient takes cotangents to cotangents, and is linear in them. Its transpose takes tangents to
tangents: it is the reverse pass of the gradient itself, with the tangents of arrays in the place of
their gradients. What the gradient adds to an element the transpose reads from the element's
tangent, what it reads it adds to, and what it zeroes it zeroes. So forward mode is exactly the
transpose of reverse mode, whatever the user wrote; what is not linear has none, and is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.ad.activity import active
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.linear import Kink, nonlinear
from engine.ad.mute import Muted
from engine.ad.prepare import inline
from engine.ad.reverse import backward_code
from engine.ad.silence import silent
from engine.ad.structure import structure
from engine.ad.versions import versions
from engine.classes import dataclass
from engine.diagnostics import Diagnostic, KernelError
from engine.ir import nodes as n
from engine.ir.builder import Names, const
from engine.ir.rewrite import Rewriter, map_block, names_in
from engine.lang.types import ArrayType, is_float


def transpose(fn: n.Function, moving: Sequence[bool], there: frozenset[str]) -> n.Function:
    """The tangents of what a function returns, and of arrays that its gradient has to do with.

    fn: with a gradient in the kernel language. moving: for each float parameter that is no array,
    whether it has a tangent. there: array parameters that have tangents. The result takes the
    parameters of `fn`, the tangents of those that move, then those of the arrays `there`, in the
    order of `grad.gradients`; it returns the tangents of the float results.
    Raises KernelError (E110) where the gradient is not linear in its cotangents.
    """
    own = _code(fn, there)
    grad, straight, results, cotangents = own.grad, own.body, own.results, own.cotangents
    count, names = len(fn.params), own.names
    arrays = frozenset(p.name for p in own.arrays)
    _linear(fn, own)

    tangents = {p.name: n.Var(names.fresh(f"tan_{p.name}"), p.type) for p in own.arrays}
    inputs = [
        n.Var(names.fresh(f"tan_{r.name}"), r.type) if m else None
        for r, m in zip(results, moving, strict=True)
    ]
    useful = active(straight, arrays, cotangents, results)
    seeds = [(r, t) for r, t in zip(results, inputs, strict=True) if t is not None and r in useful]
    code, adjoints = backward_code(straight, names, useful, seeds, arrays=tangents)
    found = tuple(adjoints.get(p, const(0, p.type)) for p in cotangents)  # type: ignore[arg-type]
    out = n.Function(
        name=f"{fn.name}_transpose",
        params=(*grad.params[:count], *filter(None, inputs), *tangents.values()),
        results=tuple(p.type for p in cotangents),  # type: ignore[misc]
        body=_extents((*code, n.Return(found, fn.span)), tangents),
        span=grad.span,
        mirrored=True,
    )
    return remove_dead(propagate(out))


def nonlinear_by_values(fn: n.Function) -> Kink | None:
    """Why the gradient of a function is not linear in its cotangents, where no array moves.

    None where it is, and for a gradient in C++, of which nothing is known.
    """
    assert fn.grad is not None
    return _kink(_code(fn, frozenset())) if fn.grad.native is None else None


@dataclass(frozen=True, slots=True)
class _Code:
    """A gradient that is to be looked at.

    grad: without messages. body: its code without jumps and calls; it ends with `results` set.
    cotangents: parameters, floats. arrays: parameters that hold the gradients that are there.
    names: those that are taken.
    """

    grad: n.Function
    body: n.Function
    results: tuple[n.Var, ...]
    cotangents: tuple[n.Var, ...]
    arrays: tuple[n.Var, ...]
    names: Names


def _code(fn: n.Function, there: frozenset[str]) -> _Code:
    """The gradient of a function without effect on gradients of arrays that are not `there`."""
    assert fn.grad is not None
    grad = silent(fn.grad)
    first = len(grad.params) - len(grad.gradients)
    own = dict(zip(grad.gradients, grad.params[first:], strict=True))
    grad = Muted().function(grad, frozenset(p.name for k, p in own.items() if k not in there))
    grad = _OwnCode().function(grad)
    names = Names(names_in(grad))
    body, results = structure(grad, names)
    body = versions(inline(body, names), names, results)
    straight = propagate(replace(grad, body=body, results=()))
    return _Code(
        grad, _live(straight, results), results,
        tuple(p for p in grad.params[len(fn.params) : first] if is_float(p.type)),
        tuple(p for k, p in own.items() if k in there), names,
    )  # fmt: skip


def _kink(code: _Code) -> Kink | None:
    arrays = frozenset(p.name for p in code.arrays)
    return nonlinear(code.body, arrays, code.cotangents, code.results)


class _OwnCode(Rewriter):
    """Functions by their own code, which is linear where the gradient that calls them is."""

    custom = False

    def change(self, fn: n.Function) -> n.Function:
        out = super().change(fn)
        return out if out.grad is out.replay is None else replace(out, grad=None, replay=None)


def _live(fn: n.Function, results: Sequence[n.Var]) -> n.Function:
    """The body without what neither its results nor memory need."""
    ended = replace(fn, body=(*fn.body, n.Return(tuple(results), fn.span)))
    return replace(fn, body=remove_dead(ended).body[:-1])


def _linear(fn: n.Function, code: _Code) -> None:
    kink = _kink(code)
    if kink is not None:
        raise KernelError(
            Diagnostic(
                "E110",
                f"`{fn.name}` has no derivative in forward mode: its gradient `{code.grad.name}` "
                f"is not linear in a cotangent, but {kink.what}",
                kink.span,
                "make it a sum of cotangents, each times a factor independent of them, or use "
                "reverse mode",
            )
        )


def _extents(block: n.Block, tangents: dict[str, n.Var]) -> n.Block:
    """The shape of a gradient is that of the tangents in its place."""

    def known(a: n.Atom) -> n.Atom:
        if isinstance(a, n.Var) and isinstance(a.type, ArrayType):
            return tangents.get(a.name, a)
        return a

    return map_block(block, known)
