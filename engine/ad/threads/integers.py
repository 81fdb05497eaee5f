"""Integer operations on affine sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.ad.threads.affine import Between, Form, Need, Part, Poly, Trips, Value
from engine.lang.types import ScalarType


def result(
    op: str, t: ScalarType, args: Sequence[Value | None], fresh: Callable[[], int]
) -> Value | None:
    """What an operation makes of integers; None where nothing is known. fresh: new numbers."""
    if op in ("select", "where_int"):
        args = args[1:]
    if not args or any(a is None for a in args):
        return None
    some: list[Value] = [a for a in args if a is not None]
    needs = frozenset[Need]().union(*(a.needs for a in some))
    forms = [a.form for a in some]
    exact = _exact(op, forms)
    if exact is not None:
        return Value(exact, needs | {_range(t, exact)})
    if op == "wrap_index":
        return Value(forms[0], needs | {Need(forms[0], 0, 1 << 62)})
    if op in ("floordiv", "mod", "div") and forms[1].uniform:
        positive = {Need(forms[0], 0, 1 << 62), Need(forms[1], 1, 1 << 62)}
        part = Part("rem" if op == "mod" else "quot", forms[0], forms[1].constant)
        return Value(Form.along(part), needs | positive)
    if op == "trips":
        if all(f.uniform for f in forms):
            count = Trips(tuple(f.constant for f in forms))
            return Value(Form(Poly.symbol(count)), needs)
        return Value(Form.along(Between("trips", tuple(forms))), needs)
    if op in ("min", "max"):
        return Value(Form.along(Between(op, tuple(forms))), needs)
    if op in ("select", "where_int"):
        return Value(Form.along(Between("either", tuple(forms), fresh())), needs)
    return None


def _exact(op: str, forms: Sequence[Form]) -> Form | None:
    if op == "add":
        return forms[0] + forms[1]
    if op == "sub":
        return forms[0] - forms[1]
    if op == "neg":
        return -forms[0]
    if op == "cast":
        return forms[0]
    if op == "mul" and forms[1].uniform:
        return forms[0].times(forms[1].constant)
    if op == "mul" and forms[0].uniform:
        return forms[1].times(forms[0].constant)
    return None


def _range(t: ScalarType, f: Form) -> Need:
    if t.kind == "u":
        return Need(f, 0, (1 << t.bits) - 1)
    return Need(f, -(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1)
