"""Arithmetic between literals gives what Python gives, wherever a float is wanted, or is refused.

Programs are drawn: an expression of literals and captured constants, and a place that wants a
float. The oracle is Python, which evaluates the same text.
"""

from __future__ import annotations

import linecache
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import engine as wp
from engine.frontend import lower_kernel
from engine.ir.interp import evaluate

# Each is a kernel's body that comes down to one number: E, seen as a float.
PLACES = {
    "element": "y[0] = E",
    "sum": "y[0] = (x + E) - x",
    "product": "y[0] = E * x / x",
    "exponent": "y[0] = wp.log(x ** E) / wp.log(x)",
    "maximum": "y[0] = wp.max(wp.max(-10000.0 * x, E), -20000.0)",
    "python's minimum": "y[0] = min(10000.0 * x, E, 20000.0)",
    "function of floats": "y[0] = wp.degrees(wp.radians(E))",
    "library": "y[0] = wp.lerp(0.0 * x, E, 1.0)",
    "vector": "v = wp.vec3(x, E, x)\n    y[0] = v[1]",
    "made vector": "v = wp.vector(x, E)\n    y[0] = v[1]",
    "component": "v = wp.vec2()\n    v[1] = E\n    y[0] = v[1]",
    "where": "y[0] = wp.where(x > 0.0, E, x)",
    "choice": "y[0] = E if x > 0.0 else x",
    "cast": "y[0] = float(E)",
    "wide cast": "y[0] = float(wp.float64(E))",
    "argument": "y[0] = same(E)",
    "named argument": "y[0] = same(value=E)",
    "result": "y[0] = given(x)",
    "annotated": "z: float = E\n    y[0] = z",
    "variable of a float": "z = 0.0 * x\n    z = E\n    y[0] = z",
    "update": "y[0] += E",
    "atomic": "wp.atomic_add(y, 0, E)",
    "field": "s = S()\n    s.value = E\n    y[0] = s.value",
    "made struct": "s = S(E)\n    y[0] = s.value",
    "local array": "a = wp.zeros(shape=(2,), dtype=float)\n    a[1] = E\n    y[0] = a[1]",
    "other literal": "y[0] = (E + 0.5) - 0.5",
    "comparison": "y[0] = wp.where(x * E < x * 0.0, -1.0, 1.0) * wp.abs(1.0 * (E))",
    "bound": "y[0] = wp.clamp(x - 10000.0, E, 10000.0)",
}
NAMES = {"ONE": 1, "TWO": 2, "THREE": 3}


@wp.struct
class S:
    value: float


@wp.func
def same(value: float):
    return value


class Literals:
    """Expressions of integers: what Python says they are, and whether a quotient had a rest."""

    leaf = st.one_of(
        st.integers(0, 9).map(str),
        st.sampled_from(list(NAMES)),
        st.sampled_from(["wp.static(ONE)", "wp.static(2 * TWO)"]),
    )

    @staticmethod
    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "/", "//"]), inner)
        return st.one_of(pair.map(lambda p: f"({p[0]} {p[1]} {p[2]})"), inner.map("(-{})".format))

    every = st.recursive(leaf, grown, max_leaves=5)


def evaluated(text: str) -> tuple[Fraction, bool] | None:
    """The exact value, and whether some quotient is no integer; None where Python refuses."""
    lost = False

    def integer(n: int) -> Any:
        return Number(Fraction(n))

    class Number:
        def __init__(self, value: Fraction) -> None:
            self.value = value

        def __add__(self, other: Any) -> Any:
            return Number(self.value + other.value)

        def __sub__(self, other: Any) -> Any:
            return Number(self.value - other.value)

        def __mul__(self, other: Any) -> Any:
            return Number(self.value * other.value)

        def __floordiv__(self, other: Any) -> Any:
            return Number(Fraction(self.value // other.value))

        def __truediv__(self, other: Any) -> Any:
            nonlocal lost
            out = self.value / other.value
            lost |= out.denominator != 1
            return Number(out)

        def __neg__(self) -> Any:
            return Number(-self.value)

    import re

    program = re.sub(r"wp\.static\(([^()]*)\)", r"(\1)", text)
    program = re.sub(r"\b(\d+)\b", r"integer(\1)", program)
    try:
        got = eval(program, {"integer": integer, **{k: integer(v) for k, v in NAMES.items()}})
    except ZeroDivisionError:
        return None
    return got.value, lost


def run(place: str, text: str, _count: list[int] = [0]) -> float:  # noqa: B006
    _count[0] += 1
    body = PLACES[place].replace("E", text)
    source = (
        f"@wp.func\ndef given(x: float) -> float:\n    return {text}\n\n"
        "@wp.kernel\ndef k(y: wp.array(dtype=float), x: float):\n"
        f"    {body}\n"
    )
    name = f"<literals {_count[0]}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space: dict[str, Any] = {"wp": wp, "same": same, "S": S, **NAMES}
    exec(compile(source, name, "exec", dont_inherit=True), space)
    y = np.zeros(1, dtype=np.float32)
    with np.errstate(all="ignore"):
        evaluate(lower_kernel(space["k"].func), (y, 2.0))
    del linecache.cache[name]
    return float(y[0])


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=40, deadline=None, database=None)
@given(Literals.every)
def test_a_literal_where_a_float_is_wanted(place: str, text: str) -> None:
    expected = evaluated(text)
    if expected is None:
        return
    value, lost = expected
    if place == "exponent" and abs(value) > 120:
        return  # a power that float32 does not have
    if lost:
        with pytest.raises(wp.KernelError) as caught:
            run(place, text)
        assert all(d.code in ("E104", "E105") for d in caught.value.diagnostics)
    else:
        assert run(place, text) == pytest.approx(float(value), rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("text", ["(1/2)", "(-(1/2))", "(ONE/TWO)", "(1/2 + 1)", "(3*(1/2))"])
@pytest.mark.parametrize("place", PLACES)
def test_quotients_with_a_rest_are_refused_everywhere(place: str, text: str) -> None:
    with pytest.raises(wp.KernelError) as caught:
        run(place, text)
    assert any("1.0 / 2.0" in d.help for d in caught.value.diagnostics)


def test_where_integers_are_wanted_a_quotient_is_one() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=int), n: int):
        a[7 / 2] = 9 / 2
        a[0] = n + 5 / 2
        m = 7 / 2
        a[1] = m
        a[2] = int(9 / 2)

    a = wp.zeros(4, dtype=int)
    wp.launch(k, dim=1, inputs=[a, 10])
    assert a.numpy().tolist() == [12, 3, 4, 4]
