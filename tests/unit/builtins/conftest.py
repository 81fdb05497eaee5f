"""Evaluates operations and their derivative rules through the Builder and the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

import engine.builtins  # noqa: F401
from engine.builtins.rules import scalar_jvp, scalar_vjp
from engine.ir.builder import Builder, E, Names, const
from engine.ir.interp import evaluate
from engine.ir.nodes import Atom, Const, Function, Return, Var
from engine.ir.ops import OPS, NoDerivative, Op, Vjp
from engine.ir.verify import verify
from engine.lang.types import Type, is_float

Build = Callable[[Builder, list[E], list[E]], list[E]]


def _params(types: Sequence[Type], base: str) -> list[Var]:
    return [Var(f"{base}{'abcdefghijklmnopqrstuvwxyz'[k]}", t) for k, t in enumerate(types)]


def _function(args: Sequence[Any], extra: Sequence[Any], types: Any, build: Build) -> Any:
    """Builds, verifies and runs a function of `args` (those that are Atoms stand as such)."""
    arg_types, extra_types = types
    own = _params(arg_types, "x")
    more = _params(extra_types, "g")
    atoms: list[Atom] = [a if isinstance(a, Const) else v for a, v in zip(args, own, strict=True)]
    params = [v for a, v in zip(args, own, strict=True) if not isinstance(a, Const)]
    b = Builder(Names([v.name for v in (*own, *more)]))
    out = build(b, [b.e(a) for a in atoms], [b.e(v) for v in more])
    b.add(Return(tuple(e.atom for e in out)))
    fn = Function("f", (*params, *more), tuple(e.type for e in out), b.block())  # type: ignore[misc]
    verify(fn)
    return evaluate(fn, [a for a in args if not isinstance(a, Const)] + list(extra))


def _out(b: Builder, op: Op, args: list[E], result: Type) -> E:
    return b.e(b.op(op.name, *(a.atom for a in args), result=result))


def pull(name: str, types: Sequence[Type], result: Type, args: Any, g: Any) -> list[Any]:
    """The adjoints of the arguments for cotangent g; None where the rule gives none."""
    op = OPS[name]
    missing: list[bool] = []

    def build(b: Builder, x: list[E], extra: list[E]) -> list[E]:
        assert not isinstance(op.derivative, NoDerivative)
        got = scalar_vjp(op.derivative, extra[0], x, _out(b, op, x, result))
        assert len(got) == len(x), "one adjoint for each argument"
        missing.extend(p is None for p in got)
        for p, a in zip(got, x, strict=True):
            assert p is None or p.type == a.type
        return [p for p in got if p is not None]

    found = iter(_function(args, [g], (types, [result]), build))
    return [None if m else next(found) for m in missing]


def push(name: str, types: Sequence[Type], result: Type, args: Any, tangents: Any) -> Any:
    """The tangent of the result; `tangents` has None for arguments that do not move."""
    op = OPS[name]

    def build(b: Builder, x: list[E], extra: list[E]) -> list[E]:
        rest = iter(extra)
        moves = [None if t is None else next(rest) for t in tangents]
        out = tangent(b, op, moves, x, _out(b, op, x, result))
        return [] if out is None else [out]

    moving = [t for t, v in zip(types, tangents, strict=True) if v is not None]
    got = _function(args, [t for t in tangents if t is not None], (types, moving), build)
    return got[0] if got else None


def tangent(b: Builder, op: Op, moves: list[E | None], x: list[E], out: E) -> E | None:
    """Forward mode as the table describes it."""
    d = op.derivative
    assert not isinstance(d, NoDerivative)
    if not isinstance(d, Vjp) or d.jvp is not None:
        return scalar_jvp(d, moves, x, out)
    floats = [k for k, a in enumerate(x) if is_float(a.type)]
    if d.kind == "linear":
        filled = [
            (b.e(const(0, a.type)) if moves[k] is None else moves[k]) if k in floats else a  # type: ignore[arg-type]
            for k, a in enumerate(x)
        ]
        return _out(b, op, filled, out.type)  # type: ignore[arg-type]
    total = None
    for k, t in enumerate(moves):
        if t is not None:
            term = _out(b, op, [*x[:k], t, *x[k + 1 :]], out.type)
            total = term if total is None else total + term
    return total


@pytest.fixture(name="pull")
def _pull() -> Any:
    return pull


@pytest.fixture(name="push")
def _push() -> Any:
    return push
