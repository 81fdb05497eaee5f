"""An adjoint by central differences for native functions, whose C++ has no derivative."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.lang.numbers import epsilon
from engine.lang.types import INT32, ArrayType, ScalarType, is_float, scalar_of, shape_of


def with_differenced_adjoint(fn: n.Function) -> n.Function | None:
    """The function with differences of its own code as its adjoint.

    The step is the cube root of the precision, relative to an operand and at least a
    thousandth of that: the error is about its square. None for functions of arrays, and
    for those whose adjoint is not of the usual form.
    """
    grad = fn.grad
    if grad is None or grad.gradients or not fn.results:
        return None
    if any(isinstance(p.type, ArrayType) for p in fn.params):
        return None
    names = Names([p.name for p in grad.params])
    b = Builder(names, grad.span)
    values, cotangents = grad.params[: len(fn.params)], grad.params[len(fn.params) :]
    if len(cotangents) != len(fn.results):
        return None
    adjoints = [
        _adjoint(b, fn, values, cotangents, k)
        for k, p in enumerate(fn.params)
        if not isinstance(p.type, ArrayType) and is_float(p.type)
    ]
    b.add(n.Return(tuple(adjoints), grad.span))
    return replace(fn, grad=replace(grad, native=None, body=b.block()))


def _adjoint(
    b: Builder, fn: n.Function, values: tuple[n.Var, ...], cotangents: tuple[n.Var, ...], k: int
) -> n.Atom:
    """What operand k gets: a number for each of its components."""
    x = values[k]
    assert not isinstance(x.type, ArrayType)
    scalar = scalar_of(x.type)
    step = epsilon(scalar.numpy) ** (1 / 3)
    if isinstance(x.type, ScalarType):
        return _slope(b, fn, values, cotangents, k, (), step)
    out: n.Atom = const(0.0, x.type)
    for at in np.ndindex(*shape_of(x.type)):
        index = tuple(const(i, INT32) for i in at)
        slope = _slope(b, fn, values, cotangents, k, index, step)
        out = b.op("insert", out, *index, slope)
    return out


def _slope(
    b: Builder, fn: n.Function, values: tuple[n.Var, ...], cotangents: tuple[n.Var, ...], k: int,
    index: tuple[n.Atom, ...], step: float,
) -> n.Atom:  # fmt: skip
    x: n.Atom = values[k]
    here = b.op("extract", x, *index) if index else x
    scalar = here.type
    assert isinstance(scalar, ScalarType)
    size = b.op("max", b.op("abs", here), const(1e-3, scalar))
    h = b.op("mul", size, const(step, scalar))
    sides = []
    for name in ("add", "sub"):
        moved = b.op(name, here, h)
        given = list[n.Atom](values)
        given[k] = b.op("insert", x, *index, moved) if index else moved
        dsts = tuple(b.temp(t) for t in fn.results)
        b.add(n.Call(dsts, replace(fn, grad=None), tuple(given), b.span))
        sides.append((moved, dsts))
    total: n.Atom = const(0.0, scalar)
    for r, ct in enumerate(cotangents):
        if not is_float(ct.type):
            continue
        change = b.op("sub", sides[0][1][r], sides[1][1][r])
        kind = "mul" if isinstance(ct.type, ScalarType) else (
            "dot" if len(shape_of(ct.type)) == 1 else "ddot"  # type: ignore[arg-type]
        )  # fmt: skip
        total = b.op("add", total, b.op(kind, change, ct))
    return b.op("div", total, b.op("sub", sides[0][0], sides[1][0]))
