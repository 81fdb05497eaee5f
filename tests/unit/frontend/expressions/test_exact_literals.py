"""Literals that are chosen or computed: exact in every type that is asked of them.

Every expression stands in every place, in a kernel of each type. The oracle is Python, which
evaluates the text of the expression in double precision; what is computed of a table in float32,
which is its own type, is computed in that type.
"""

from __future__ import annotations

import linecache
import math
from typing import Any

import numpy as np
import pytest

import engine as wp

TABLE = (0.5, 1.3, -0.7)
OTHER = (0.1, 3.3)
COUNTS = (3, 7, 12)

# None of these numbers is one of float32.
EXPRESSIONS = {
    "item": "TABLE[j]",
    "item of integers": "COUNTS[j]",
    "item from the end": "TABLE[j - 3]",
    "item of a local tuple": "own[j]",
    "item of a tuple with a choice": "(0.7 if c else 0.1, 0.9)[k]",
    "choice": "(0.7 if c else 0.1)",
    "choice with an integer": "(0.7 if c else 2)",
    "choice in a choice": "(0.7 if not c else (0.1 if d else 0.3))",
    "choice that reads": "(0.7 if not c else (0.1 if n[1] > 5 else 0.3))",
    "choice of items": "(TABLE[j] if c else OTHER[k])",
    "one of two results": "(0.7, 0.1)[0 if c else 1]",
    "where": "wp.where(c, 0.7, 0.1)",
    "where of a number": "wp.where(n[0], 0.7, 0.1)",
    "where that is known": "wp.where(True, 0.7, 0.1)",
    "select": "wp.select(c, 0.1, 0.7)",
    "maximum": "wp.max(0.7, 0.1)",
    "python's minimum": "min(0.7, 0.9, 0.1)",
    "clamp": "wp.clamp(1.7, 0.1, 0.9)",
    "root": "wp.sqrt(2.0)",
    "root of an integer": "wp.sqrt(3)",
    "remainder": "7.3 % 2.1",
    "floor": "wp.floor(7.3) / 3.0",
    "sign": "-TABLE[j]",
    "sum": "(TABLE[j] + 0.1)",
    "product of two items": "TABLE[j] * OTHER[k]",
    "product of an item with itself": "TABLE[j] * TABLE[j]",
    "quotient": "COUNTS[j] / 7.0",
    "power": "COUNTS[j] ** 2",
    "choice of integers": "(3 if c else 5)",
    "sum of integers": "COUNTS[j] + (3 if d else 5) - 2",
    "quotient of integers": "COUNTS[j] // 5",
    "remainder of integers": "COUNTS[j] % 5",
    "remainder of constants": "17 % 5",
    "maximum of integers": "max(3, 7, COUNTS[j])",
    "bits of integers": "COUNTS[j] & 10",
    "function of an item": "wp.abs(TABLE[j])",
    "function of two items": "wp.max(TABLE[j], OTHER[k])",
    "comparison of items": "(0.3 if TABLE[j] > OTHER[k] else 0.9)",
    "comparison for equality": "(0.3 if TABLE[j] == 1.3 else 0.9)",
}  # fmt: skip
WHOLE = [
    name
    for name, text in EXPRESSIONS.items()
    if "." not in text and "TABLE" not in text and "own" not in text
]

# What becomes of E, which stands for the expression, in a kernel of type T.
PLACES = {
    "cast": "y[@] = T(E)",
    "element": "y[@] = E",
    "name": "v@ = E\n    y[@] = T(v@)",
    "factor": "y[@] = x[0] * E",
    "other factor": "y[@] = E * x[0]",
    "update": "y[@] += E",
    "atomic": "wp.atomic_add(y, @, E)",
    "argument": "y[@] = same(E)",
    "argument among two": "y[@] = wp.max(E, x[1])",
    "component": "y[@] = wp.vector(E, x[0])[0]",
    "typed component": "y[@] = wp.types.vector(2, T)(x[0], E)[1]",
    "choice": "y[@] = E if d else x[0]",
    "where": "y[@] = wp.where(d, E, x[0])",
    "annotated": "a@: T = E\n    y[@] = a@",
    "literal": "y[@] = T(1 * (E))",
    "equality": "y[@] = x[2] * T(1) if T(E) == E else x[1]\n    y[@] = T(E) if T(E) == E else x[1]",
}


def python_value(text: str, table_type: type) -> Any:
    """What Python makes of an expression; `table_type`: the type in which tables compute."""

    class Wp:
        where = staticmethod(lambda c, a, b: a if c else b)
        select = staticmethod(lambda c, a, b: b if c else a)
        max, min, abs = max, min, abs
        clamp = staticmethod(lambda v, low, high: min(max(v, low), high))
        sqrt = staticmethod(math.sqrt)
        floor = staticmethod(math.floor)

    names = {
        "TABLE": tuple(map(table_type, TABLE)), "OTHER": tuple(map(table_type, OTHER)),
        "own": tuple(map(table_type, (0.2, 0.6, 0.9))), "COUNTS": COUNTS,
        "n": [1, 7], "j": 2, "k": 1, "c": True, "d": True, "wp": Wp,
    }  # fmt: skip
    return eval(text, names)


def kernel_of(
    t: str, expressions: dict[str, str], places: dict[str, str]
) -> tuple[Any, list[tuple[str, str]]]:
    """A kernel with every expression in every place, and what its elements are."""
    lines, elements = [], []
    for name, text in expressions.items():
        for place, form in places.items():
            at = str(len(elements))
            lines.append("    " + form.replace("E", f"({text})").replace("@", at))
            elements.append((name, place))
    source = (
        f"import engine as wp\nT = wp.{t}\n"
        f"TABLE = {TABLE}\nOTHER = {OTHER}\nCOUNTS = {COUNTS}\n"
        "@wp.func\ndef same(value: T):\n    return value\n"
        "@wp.kernel\n"
        "def kernel(x: wp.array(dtype=T), n: wp.array(dtype=int), j: int, k: int,"
        " y: wp.array(dtype=T)):\n"
        "    c = n[0] > 0\n    d = n[1] > 0\n    own = (0.2, 0.6, 0.9)\n" + "\n".join(lines) + "\n"
    )
    file = f"<exact literals {t} {len(elements)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "exact_literals"}
    exec(compile(source, file, "exec"), names)
    return names["kernel"], elements


@pytest.mark.parametrize("t", ["float64", "float32", "float16", "int64", "uint8"])
def test_every_expression_is_exact_in_every_place(t: str) -> None:
    scalar = getattr(wp, t)
    whole = "int" in t
    chosen = {n: e for n, e in EXPRESSIONS.items() if not whole or n in WHOLE}
    made, elements = kernel_of(t, chosen, PLACES)
    x = wp.array([1, 0 if whole else -1000, 1], dtype=scalar)
    n = wp.array([1, 7], dtype=int)
    y = wp.zeros(len(elements), dtype=scalar)
    wp.launch(made, dim=1, inputs=[x, n, 2, 1, y])
    own = np.float32 if t == "float32" else float
    kind = np.dtype(t).type
    expected = [kind(python_value(chosen[name], own)) for name, _ in elements]
    wrong = [
        (name, place, got, want)
        for (name, place), got, want in zip(elements, y.numpy(), expected, strict=True)
        if got != want
    ]
    assert not wrong


def test_they_are_factors_of_gradients() -> None:
    made, elements = kernel_of("float64", EXPRESSIONS, {"factor": "y[@] = x[@] * E"})
    x = wp.array(np.ones(len(elements)), dtype=wp.float64, requires_grad=True)
    n = wp.array([1, 7], dtype=int)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(made, dim=1, inputs=[x, n, 2, 1, y])
    tape.backward(grads={y: wp.ones_like(y)})
    expected = [float(python_value(EXPRESSIONS[name], float)) for name, _ in elements]
    np.testing.assert_array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x[0] * (1 / 2, 3)[j]", "a quotient of integers, which is 0 here, stands for a float"),
        ("wp.float64((1 / 2, 3)[j])", "a quotient of integers, which is 0 here"),
        ("x[0] if x[0] > (1 / 2, 3)[j] else x[1]", "a quotient of integers, which is 0 here"),
        ("wp.float64(LONG[j] + LONG[k])", "too many combinations here"),
        ("COUNTS[j] // 0", "an integer is divided by zero"),
    ],
)
def test_what_stays_refused(text: str, message: str) -> None:
    source = (
        f"import engine as wp\nCOUNTS = {COUNTS}\nLONG = tuple(k / 10 for k in range(70))\n"
        "@wp.kernel\n"
        "def kernel(x: wp.array(dtype=wp.float64), j: int, k: int,"
        " y: wp.array(dtype=wp.float64)):\n"
        f"    y[0] = {text}\n"
    )
    file = f"<refused literals {text}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "refused_literals"}
    exec(compile(source, file, "exec"), names)
    x = wp.zeros(3, dtype=wp.float64)
    with pytest.raises(wp.KernelError, match=message):
        wp.launch(names["kernel"], dim=1, inputs=[x, 0, 0, x])
