"""Forward mode of functions whose gradient, of arrays, is the user's own: the gradient's transpose.

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
from engine.ad.linear import nonlinear
from engine.ad.mute import Muted
from engine.ad.prepare import inline
from engine.ad.reverse import backward_code
from engine.ad.silence import silent
from engine.ad.structure import structure
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
    assert fn.grad is not None
    grad = silent(fn.grad)
    count, first = len(fn.params), len(grad.params) - len(grad.gradients)
    own = dict(zip(grad.gradients, grad.params[first:], strict=True))
    grad = Muted().function(grad, frozenset(p.name for k, p in own.items() if k not in there))
    grad = _OwnCode().function(grad)
    names = Names(names_in(grad))
    body, results = structure(grad, names)
    straight = replace(grad, body=inline(body, names), results=())
    straight = propagate(straight)
    given = [p for k, p in own.items() if k in there]
    straight = _live(straight, results)
    cotangents = [p for p in grad.params[count:first] if is_float(p.type)]
    arrays = frozenset(p.name for p in given)
    _linear(fn, straight, arrays, cotangents, results)

    tangents = {p.name: n.Var(names.fresh(f"tan_{p.name}"), p.type) for p in given}
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


def _linear(
    fn: n.Function, grad: n.Function, arrays: frozenset[str], cotangents: Sequence[n.Var],
    results: Sequence[n.Var],
) -> None:  # fmt: skip
    kink = nonlinear(grad, arrays, cotangents, results)
    if kink is not None:
        raise KernelError(
            Diagnostic(
                "E110",
                f"`{fn.name}` has no derivative in forward mode: its gradient `{grad.name}` is not "
                f"linear in a cotangent, but {kink.what}",
                kink.span,
                "make it a sum of cotangents, each times what does not depend on them, or use "
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
