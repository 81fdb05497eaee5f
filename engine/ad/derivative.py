"""Writes the bodies of derivative functions: what `grad(f)` calls inside a kernel.

The derivative of a function without loops is its adjoint with a cotangent of one: code
like any other, that can be differentiated again. The adjoint of a loop would have to
save values on a stack, which has no derivative of its own; there the function's tangent
is called instead, once for each component of its inputs.
"""

from __future__ import annotations

from dataclasses import replace

from engine.ad import tangent_rules as rules
from engine.ad.activity import active
from engine.ad.cleanup import propagate, remove_dead
from engine.ad.components import places
from engine.ad.prepare import inline
from engine.ad.reverse import backward_code
from engine.ad.silence import silent
from engine.ad.structure import structure
from engine.ad.tangent import tangent
from engine.ad.unit_cotangents import NonlinearGradient, nonlinear_gradients
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import Rewriter, names_in
from engine.lang.types import ArrayType, Type, VectorType, is_float, scalar_of, shape_of


def derivatives(fn: n.Function) -> n.Function:
    """The function with the bodies of all derivatives that it calls; itself if it calls none."""
    return _Writer().function(fn)


class _Writer(Rewriter):
    """Writes each derivative once."""

    def change(self, fn: n.Function) -> n.Function:
        if fn.derivative_of is not None:
            return _derivative(fn, silent(self.function(fn.derivative_of)))
        return super().change(fn)


def _loops(body: n.Block) -> bool:
    return any(isinstance(s, (n.For, n.While)) for s in n.walk(body))


def nonlinear_derivatives(fn: n.Function) -> tuple[NonlinearGradient, ...]:
    """The user's own gradients that derivatives of loops, which are by tangents, ask at ones.

    fn: before its derivatives are written. See `nonlinear_gradients`.
    """
    found: dict[NonlinearGradient, None] = {}
    todo = [fn]
    for f in todo:
        for g in n.callees(f):
            if g.derivative_of is None or g.derivative_of in todo:
                continue
            todo.append(of := g.derivative_of)
            names = Names(names_in(of))
            if _loops(inline(structure(of, names)[0], names)):
                for p in _inputs(of):
                    found |= dict.fromkeys(nonlinear_gradients(of, frozenset({p.name})))
    return tuple(found)


def _inputs(f: n.Function) -> list[n.Var]:
    return [p for p in f.params if not isinstance(p.type, ArrayType) and is_float(p.type)]


def _derivative(fn: n.Function, f: n.Function) -> n.Function:
    """`fn`, whose body is to be the derivative of `f`."""
    if f.grad is not None or f.native is not None or f.replay is not None:
        dsts = tuple(n.Var(f"result_{k}", t) for k, t in enumerate(f.results))
        call = n.Call(dsts, f, f.params, f.span)
        f = replace(
            f,
            body=(call, n.Return(dsts, f.span)),
            native=None,
            grad=None,
            replay=None,
        )
    names = Names(names_in(f))
    body, results = structure(f, names)
    body = inline(body, names)
    if _loops(body):
        body = _by_tangents(f)
    else:
        body = _by_adjoint(f, body, results, names)
    return replace(fn, params=f.params, body=body, derivative_of=None, mirrored=True)


def _by_adjoint(f: n.Function, body: n.Block, results: tuple[n.Var, ...], names: Names) -> n.Block:
    inputs = _inputs(f)
    straight = replace(f, body=body, results=())
    moving = active(straight, frozenset(), inputs, results)
    seeds = [(r, const(1, r.type)) for r in results if r in moving]  # type: ignore[arg-type]
    code, adjoints = backward_code(straight, names, moving, seeds)
    found = tuple(adjoints.get(p, rules.zero(p.type)) for p in inputs)
    last = n.Return(found, f.span)
    return remove_dead(propagate(replace(straight, body=(*code, last)))).body


def _by_tangents(f: n.Function) -> n.Block:
    b = Builder(Names([p.name for p in f.params]), f.span)
    found: list[n.Atom] = []
    for p in _inputs(f):
        moved = tangent(f, frozenset({p.name}))
        if len(moved.results) == len(f.results):  # nothing depends on it
            found.append(rules.zero(p.type))
            continue
        one = const(1, scalar_of(p.type))
        parts: list[n.Atom] = []
        for at in places(p.type):
            unit = b.op("insert", rules.zero(p.type), *at, one) if at else one
            dsts = tuple(b.temp(t) for t in moved.results)
            b.add(n.Call(dsts, moved, (*f.params, unit), f.span))
            parts.append(_total(b, dsts[len(f.results) :], one.type))
        shape = shape_of(p.type)  # type: ignore[arg-type]
        found.append(b.op("construct", *parts, result=p.type) if shape else parts[0])
    b.add(n.Return(tuple(found), f.span))
    return b.block()


def _total(b: Builder, moved: tuple[n.Var, ...], scalar: Type) -> n.Atom:
    """The sum of all components of tangents, in one precision."""
    total: n.Atom | None = None
    for t in moved:
        part: n.Atom = t
        if shape_of(t.type):  # type: ignore[arg-type]
            ones = const(1, t.type)  # type: ignore[arg-type]
            part = b.op("dot" if isinstance(t.type, VectorType) else "ddot", t, ones)
        if part.type != scalar:
            part = b.op("cast", part, result=scalar)
        total = part if total is None else b.op("add", total, part)
    assert total is not None
    return total
