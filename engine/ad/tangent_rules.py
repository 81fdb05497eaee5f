"""The tangent of each single operation, from the derivatives of the operation table."""

from __future__ import annotations

from collections.abc import Sequence

from engine.ad.components import places
from engine.ad.extremum import replaced
from engine.ad.mute import Muted
from engine.ad.silence import silent
from engine.ir import nodes as n
from engine.ir.builder import Builder, E, const
from engine.ir.ops import OPS, Elementwise, NoDerivative, Op
from engine.lang.types import ArrayType, Type, VectorType, is_float, scalar_of, shape_of

Maybe = n.Atom | None  # a tangent; None is zero


def operation(b: Builder, s: n.Let, tangents: Sequence[Maybe]) -> Maybe:
    """The tangent of `s.dst`, which `b` has defined already."""
    op = OPS[s.op]
    rule = op.derivative
    if isinstance(rule, NoDerivative) or all(t is None for t in tangents):
        return None
    moves = [None if t is None else b.e(t) for t in tangents]
    args = [b.e(a) for a in s.args]
    out = b.e(s.dst)
    if isinstance(rule, Elementwise):
        parts = rule.partials(args, out)
        terms = [t * p for t, p in zip(moves, parts, strict=True) if t is not None and p]
        got = _sum(terms)
    elif rule.jvp is not None:
        got = rule.jvp(moves, args, out)
    elif rule.kind == "linear":
        got = _linear(b, op, s, moves, args)
    else:
        got = _sum([
            _apply(b, op, [*args[:k], t, *args[k + 1 :]], s.dst.type)
            for k, t in enumerate(moves)
            if t is not None
        ])  # fmt: skip
    return None if got is None else held(b, got.atom)


def held(b: Builder, a: n.Atom) -> n.Atom:
    """The atom's present value, as something that does not change."""
    return b.op("copy", a) if isinstance(a, n.Var) and a.mutable else a


def _sum(terms: Sequence[E]) -> E | None:
    out: E | None = None
    for t in terms:
        out = t if out is None else out + t
    return out


def _apply(b: Builder, op: Op, args: Sequence[E], result: Type) -> E:
    return b.e(b.op(op.name, *(a.atom for a in args), result=result if op.explicit else None))


def _linear(b: Builder, op: Op, s: n.Let, moves: list[E | None], args: list[E]) -> E:
    """The operation on tangents. A zero that only adds nothing is left out."""
    if op.name in ("add", "sub") and None in moves:
        left, right = moves
        if left is not None:
            return left
        assert right is not None
        return right if op.name == "add" else -right
    filled = []
    for a, t in zip(args, moves, strict=True):
        if t is None:
            t = b.e(zero(a.type)) if is_float(a.type) else a
        filled.append(t)
    return _apply(b, op, filled, s.dst.type)


def zero(t: Type) -> n.Const:
    """The constant zero of a value type."""
    assert not isinstance(t, ArrayType)
    return const(0, t)


def inner(b: Builder, x: n.Atom, y: n.Atom) -> n.Var:
    """The sum of products of all components."""
    if not shape_of(x.type):  # type: ignore[arg-type]
        return b.op("mul", x, y)
    if isinstance(x.type, VectorType) and x.type.tag == "transform":  # has no `dot` of its own
        first, *rest = (
            b.op("mul", b.op("extract", x, *at), b.op("extract", y, *at)) for at in places(x.type)
        )
        for term in rest:
            first = b.op("add", first, term)
        return first
    return b.op("dot" if isinstance(x.type, VectorType) else "ddot", x, y)


def extremum(b: Builder, s: n.Atomic, tan: n.Var, moved: Maybe) -> None:
    """The update by an atomic min or max `s` (its `dst` is set): where the value replaced the
    element, its tangent replaces that of the element. Vectors count by component.

    A tie keeps the element, and with it its tangent, as in reverse mode.
    """
    assert s.dst is not None
    part = scalar_of(s.value.type)
    for at in places(s.value.type):
        value = b.op("extract", s.value, *at) if at else s.value
        before = b.op("extract", s.dst, *at) if at else s.dst
        took = replaced(b, s, value, before)
        then = b.child()
        t: n.Atom = zero(part)
        if moved is not None:
            t = then.op("extract", moved, *at) if at else moved
        then.add(n.Store(tan, s.index, t, (*s.path, *at), b.span))
        b.add(n.If(took, then.block(), (), b.span))


def exchange(b: Builder, s: n.Atomic, tan: n.Var, moved: Maybe) -> None:
    """An atomic exchange, or a compare and swap `s` (its `dst` is set): a store, if it happens."""
    assert s.dst is not None
    t = zero(s.value.type) if moved is None else moved
    store = n.Store(tan, s.index, t, s.path, b.span)
    if s.compare is None:
        b.add(store)
    else:
        b.add(n.If(b.op("eq", s.dst, s.compare), (store,), (), b.span))


def is_value(p: n.Var) -> bool:
    """Whether a parameter is a float that is no array."""
    return not isinstance(p.type, ArrayType) and is_float(p.type)


def custom(b: Builder, s: n.Call, tangents: Sequence[Maybe]) -> list[Maybe]:
    """Tangents of the results of a function whose derivative is the user's own VJP.

    One row of the Jacobian for each scalar of the results: the VJP of a unit cotangent,
    times the tangents of the inputs. So forward mode is the transpose of reverse mode,
    whatever the user wrote, as long as it is linear in the cotangents: see `unit_cotangents`.
    """
    assert s.func.grad is not None
    grad = silent(s.func.grad)
    inputs = [t for p, t in zip(s.func.params, tangents, strict=True) if is_value(p)]
    out: list[Maybe] = []
    for k, d in enumerate(s.dsts):
        if not is_float(d.type) or all(t is None for t in inputs):
            out.append(None)
            continue
        rows = [_row(b, s, grad, k, at, inputs) for at in places(d.type)]
        whole = b.op("construct", *rows, result=d.type) if shape_of(d.type) else rows[0]  # type: ignore[arg-type]
        out.append(whole)
    return out


def _row(
    b: Builder, s: n.Call, grad: n.Function, k: int, at: tuple[n.Const, ...],
    inputs: Sequence[Maybe],
) -> n.Atom:  # fmt: skip
    """The tangent of one component `at` of result `k`."""
    cts: list[n.Atom] = [zero(d.type) for d in s.dsts]
    one = const(1, scalar_of(s.dsts[k].type))
    cts[k] = b.op("insert", cts[k], *at, one) if at else one
    dsts = tuple(b.temp(t, "adj") for t in grad.results)
    # No array moves here: one in the place of each gradient, for its shape, will do.
    given = dict(zip((p.name for p in s.func.params), s.args, strict=True))
    own = grad.params[len(grad.params) - len(grad.gradients) :]
    muted = Muted().function(grad, frozenset(p.name for p in own))
    last = [given[name] for name in grad.gradients]
    b.add(n.Call(dsts, muted, (*s.args, *cts, *last), b.span))
    total: n.Atom | None = None
    for adj, t in zip(dsts, inputs, strict=True):
        if t is not None:
            term = inner(b, adj, t)
            total = term if total is None else b.op("add", total, term)
    assert total is not None
    return total
