"""Literals of floats that functions return, or are given: exact in every type, as in expressions.

Every expression whose literal is a float stands in every place, in kernels of each type of floats.
The oracle is Python, as in `test_exact_literals`.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.ad import kept
from engine.autograd import jvp
from engine.frontend.lowering.kernels import lower_kernel
from engine.ir.nodes import Call, callees, walk
from tests.unit.frontend.expressions.test_exact_literals import (
    COUNTS,
    EXPRESSIONS,
    OTHER,
    TABLE,
    python_value,
)

FLOATS = {n: e for n, e in EXPRESSIONS.items() if isinstance(python_value(e, float), float)}

# Functions that an expression E needs at number #; PARAMETERS, which are what it reads.
FUNCTIONS = {
    "result": "def f#(PARAMETERS):\n    OWN\n    return E",
    "name": "def f#(PARAMETERS):\n    OWN\n    v = E\n    return v",
    "two returns": "def f#(PARAMETERS):\n    OWN\n    if d:\n        return E\n    return 0.9",
    "later return": "def f#(PARAMETERS):\n    OWN\n    if not d:\n        return 2\n    return E",
    "only return of a branch": "def f#(PARAMETERS):\n    OWN\n    if d:\n        return E",
    "one of two results": "def f#(PARAMETERS):\n    OWN\n    return n[0], E",
    "both results": "def f#(PARAMETERS):\n    OWN\n    if d:\n        return 0.3, E\n"
                    "    return E, 0.3",
    "result beside a local array": "def f#(PARAMETERS, a: A):\n    OWN\n    a[0] = 5.0\n"
                                   "    return E",
    "function of a function": "def g#(PARAMETERS):\n    OWN\n    return E\n"
                              "@wp.func\ndef f#(PARAMETERS):\n    if d:\n"
                              "        return g#(ARGUMENTS)\n    return 0.3",
    "argument": "def f#(a, b):\n    return a * b",
    "argument that is changed": "def f#(a, b):\n    for i in range(2):\n        a = a * b\n"
                                "    return a",
    "argument in a branch": "def f#(a, b, d: bool):\n    if d:\n        b = b * a\n    return b",
    "argument that is cast": "def f#(a: wp.Float):\n    return T(a)",
    "argument of any type": "def f#(a: Any, b: Any):\n    return wp.max(a, -b)",
    "argument that is returned": "def f#(a):\n    return a",
    "argument handed on": "def g#(a, b):\n    return a * b\n"
                          "@wp.func\ndef f#(p, q):\n    return g#(p, q)",
}  # fmt: skip
CALLS = {
    "one of two results": "_, v# = f#(ARGUMENTS)\n    y[#] = x[#] * v#",
    "both results": "_, v# = f#(ARGUMENTS)\n    y[#] = x[#] * v#",
    "result beside a local array": "w# = wp.zeros(2, dtype=T)\n    v# = f#(ARGUMENTS, w#)\n"
                                   "    y[#] = x[#] * v# if w#[0] == 5.0 else x[#]",
    "argument": "y[#] = f#(E, x[#])",
    "argument that is changed": "y[#] = f#(E, one[0]) * x[#]",
    "argument in a branch": "y[#] = f#(E, x[#], d)",
    "argument that is cast": "y[#] = f#(E) * x[#]",
    "argument of any type": "y[#] = f#(E, T(1000)) * x[#]",
    "argument that is returned": "y[#] = x[#] * f#(E)",
    "argument handed on": "y[#] = f#(q=x[#], p=E)",
}  # fmt: skip
PARAMETERS = "c: bool, d: bool, j: int, k: int, n: wp.array(dtype=int)"
ARGUMENTS = "c, d, j, k, n"
OWN = "own = (0.2, 0.6, 0.9)"


def defined(text: str, name: str) -> dict[str, Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"__name__": "exact_calls"}
    exec(compile(text, name, "exec"), names)
    return names


def kernel_of(t: str, place: str) -> Any:
    """A kernel with every expression in a place, by the order of them."""
    functions, lines = [], []
    for k, text in enumerate(FLOATS.values()):
        function = FUNCTIONS[place]
        call = CALLS.get(place, "y[#] = x[#] * f#(ARGUMENTS)")
        parts = {"PARAMETERS": PARAMETERS, "ARGUMENTS": ARGUMENTS, "OWN": OWN, "#": str(k)}
        for word, meaning in parts.items():
            function, call = function.replace(word, meaning), call.replace(word, meaning)
        pieces = [s.replace("(E", f"(({text})").replace("=E", f"=({text})").replace(
                  "return E", f"return ({text})").replace(", E", f", ({text})").replace(
                  "= E", f"= ({text})") for s in (function, call)]  # fmt: skip
        functions.append(f"@wp.func\n{pieces[0]}\n")
        lines.append(f"    {pieces[1]}\n")
    source = (
        f"from typing import Any\nimport engine as wp\nT = wp.{t}\nA = wp.array(dtype=T)\n"
        f"TABLE = {TABLE}\nOTHER = {OTHER}\nCOUNTS = {COUNTS}\n{''.join(functions)}"
        "@wp.kernel\ndef kernel(x: A, one: A, n: wp.array(dtype=int), j: int, k: int, y: A):\n"
        f"    c = n[0] > 0\n    d = n[1] > 0\n    {OWN}\n{''.join(lines)}"
    )
    return defined(source, f"<exact calls {t} {place}>")["kernel"]


@pytest.mark.parametrize("place", FUNCTIONS)
@pytest.mark.parametrize("t", ["float64", "float32", "float16"])
def test_every_literal_is_exact_and_a_factor_of_derivatives(t: str, place: str) -> None:
    kernel, scalar = kernel_of(t, place), getattr(wp, t)
    x = wp.array(np.ones(len(FLOATS)), dtype=scalar, requires_grad=True)
    one, y = wp.array([1.0], dtype=scalar), wp.zeros(len(FLOATS), dtype=scalar, requires_grad=True)
    n = wp.array([1, 7], dtype=int)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x, one, n, 2, 1, y])
    own = np.float32 if t == "float32" else float
    kind = np.dtype(t).type
    expected = {name: kind(python_value(text, own)) for name, text in FLOATS.items()}
    assert dict(zip(FLOATS, y.numpy(), strict=True)) == expected
    tangent = jvp(tape, tangents={x: np.ones(len(FLOATS), t)})[y]
    assert dict(zip(FLOATS, np.asarray(tangent).astype(t), strict=True)) == expected
    tape.backward(grads={y: wp.ones_like(y)})
    assert dict(zip(FLOATS, x.grad.numpy(), strict=True)) == expected


def test_a_variable_that_an_argument_starts_takes_the_type_that_is_asked() -> None:
    @wp.func
    def total(s, x: wp.array(dtype=Any), n: int):
        for j in range(n):
            s += x[j]
        return s

    @wp.kernel
    def kernel(x: wp.array(dtype=wp.float64), z: wp.array(dtype=float), y: wp.array(dtype=Any)):
        y[0] = total(0.1, x, 2)
        y[1] = wp.float64(total(0.1, z, 2))

    x, z = wp.array([0.3, 0.7], dtype=wp.float64), wp.array([0.3, 0.7], dtype=float)
    y = wp.zeros(2, dtype=wp.float64)
    wp.launch(kernel, dim=1, inputs=[x, z, y])
    single = np.float32(0.1) + np.float32(0.3) + np.float32(0.7)
    assert y.numpy().tolist() == [0.1 + 0.3 + 0.7, float(single)]


def test_the_default_of_a_parameter_is_a_literal_as_well() -> None:
    @wp.func
    def scaled(x, a=0.7):
        return a * x

    @wp.kernel
    def kernel(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
        y[0] = scaled(x[0])
        y[1] = scaled(x[0], a=0.1)

    x, y = wp.array([1.0], dtype=wp.float64), wp.zeros(2, dtype=wp.float64)
    wp.launch(kernel, dim=1, inputs=[x, y])
    assert y.numpy().tolist() == [0.7, 0.1]


def test_functions_that_stay_calls_in_adjoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place that a kept function returns beside a literal has no derivative."""
    monkeypatch.setattr(kept, "LARGE", 0)
    monkeypatch.setattr(kept, "SAVED", 0)
    calls = "".join(
        f"    s = s * weight(x[{k}]) + x[{k}] * scale(0.3, x[{k}])\n" for k in range(20)
    )
    text = (
        "import engine as wp\nA = wp.array(dtype=wp.float64)\n"
        "@wp.func\ndef weight(x: wp.float64):\n    t = wp.sin(x) + x * x\n"
        "    return 0.7 if t > 1.0 else 0.9\n"
        "@wp.func\ndef scale(a, x: wp.float64):\n    t = wp.sin(x) * a\n    return t + a\n"
        f"@wp.kernel\ndef kernel(x: A, y: A):\n    s = x[0]\n{calls}    y[0] = s\n"
    )
    kernel = defined(text, "<kept calls>")["kernel"]
    stay = kept.keep(lower_kernel(kernel.func)).body
    names = {s.func.name for s in walk(stay) if isinstance(s, Call) and s.func.kept is not None}
    assert names == {"weight", "scale"}
    values = np.random.default_rng(7).random(20)
    x = wp.array(values, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x, y])
    tape.backward(grads={y: wp.ones_like(y)})

    def python(x: Any) -> Any:
        s = x[0]
        for v in x:
            t = np.sin(v) + v * v
            s = s * (0.7 if t.real > 1.0 else 0.9) + v * (np.sin(v) * 0.3 + 0.3)
        return s

    np.testing.assert_allclose(y.numpy()[0], python(values), rtol=1e-13)
    steps = [python(values + 1e-30j * np.eye(20)[k]).imag / 1e-30 for k in range(20)]
    np.testing.assert_allclose(x.grad.numpy(), steps, rtol=1e-12)


def test_what_has_a_type_rounds_to_it() -> None:
    """Annotations, variables, fields, tuples, functions with a gradient of their own."""

    @wp.struct
    class Pair:
        a: wp.float32

    @wp.func
    def annotated(a: wp.float32):
        return wp.float64(a)

    @wp.func
    def result(d: bool) -> wp.float32:
        return 0.7 if d else 0.1

    @wp.func
    def wide(d: bool) -> wp.float64:
        return 0.7 if d else 0.1

    @wp.func
    def variable(d: bool):
        v = 0.7
        if not d:
            v = 0.1
        return v

    @wp.func
    def struct(d: bool):
        p = Pair()
        p.a = 0.7
        return p

    @wp.func
    def given(p: tuple[Any, Any]):
        return wp.float64(p[0])

    @wp.func
    def custom(a):
        return 0.7

    @wp.func_grad(custom)
    def adj_custom(a: Any, g: Any):
        wp.adjoint[a] += g

    @wp.func
    def of_argument(a):
        return wp.float64(a)

    @wp.func_grad(of_argument)
    def adj_of_argument(a: Any, g: Any):
        wp.adjoint[a] += wp.float32(g)

    @wp.kernel
    def kernel(n: int, y: wp.array(dtype=wp.float64)):
        d = n > 0
        y[0] = annotated(0.7)
        y[1] = wp.float64(result(d))
        y[2] = wide(d)
        y[3] = wp.float64(variable(d))
        y[4] = wp.float64(struct(d).a)
        y[5] = given((0.7, n))
        y[6] = wp.float64(custom(0.5))
        y[7] = of_argument(0.7)

    y = wp.zeros(8, dtype=wp.float64)
    wp.launch(kernel, dim=1, inputs=[1, y])
    single = float(np.float32(0.7))
    assert y.numpy().tolist() == [single, single, 0.7, *[single] * 5]


def test_gradients_of_functions_that_are_given_literals() -> None:
    """`grad(f)` takes arguments of a type, and gives derivatives by each of them."""

    @wp.func
    def f(a, x):
        return a * a * x

    @wp.func
    def constant(x: float):
        return 0.7 if x > 0.0 else 0.1

    @wp.kernel
    def kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        da, dx = wp.grad(f)(0.7, x[0])
        y[0] = da
        y[1] = dx
        y[2] = wp.grad(constant)(x[0])

    x, y = wp.array([3.0], dtype=float), wp.zeros(3, dtype=float)
    wp.launch(kernel, dim=1, inputs=[x, y])
    np.testing.assert_allclose(y.numpy(), [2.0 * 0.7 * 3.0, 0.7 * 0.7, 0.0], rtol=1e-6)


def test_float32_is_float32_bit_for_bit() -> None:
    @wp.func
    def f(d: bool):
        return 0.7 if d else 0.1

    @wp.func
    def g(a, x):
        return (a + x) * a

    @wp.kernel
    def kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        d = x[i] > 0.5
        y[2 * i] = (f(d) + x[i]) * f(d)
        y[2 * i + 1] = g(0.7, x[i]) - g(f(d), x[i])

    x = np.random.default_rng(5).random(1000, np.float32)
    y = wp.zeros(2 * len(x), dtype=float)
    wp.launch(kernel, dim=len(x), inputs=[wp.array(x, dtype=float), y])
    a, b = np.where(x > 0.5, np.float32(0.7), np.float32(0.1)), np.float32(0.7)
    np.testing.assert_array_equal(y.numpy()[0::2], (a + x) * a)
    np.testing.assert_array_equal(y.numpy()[1::2], (b + x) * b - (a + x) * a)


def test_many_that_are_summed_are_float32_until_a_type_is_asked() -> None:
    """More combinations than are kept: float32 goes on, another type is refused, not rounded."""
    terms = " + ".join(f"w(x[{k}])" for k in range(14))
    head = (
        "import engine as wp\n@wp.func\ndef w(x: float):\n    return 0.7 if x > 0.0 else 0.1\n"
        "@wp.kernel\ndef kernel(x: wp.array(dtype=float), y: wp.array(dtype=T)):\n"
    )
    x = wp.array(np.ones(14), dtype=float)
    y = wp.zeros(1, dtype=float)
    text = head.replace("T)", "float)") + f"    y[0] = {terms}\n"
    wp.launch(defined(text, "<sum in float32>")["kernel"], dim=1, inputs=[x, y])
    expected = np.float32(0.0)
    for _ in range(14):
        expected = expected + np.float32(0.7)
    assert y.numpy()[0] == expected
    y = wp.zeros(1, dtype=wp.float64)
    for k, use in enumerate((terms, f"wp.float64({terms})", f"y[0] * ({terms})")):
        text = head.replace("T)", "wp.float64)") + f"    y[0] = {use}\n"
        with pytest.raises(wp.KernelError, match="too many combinations here"):
            wp.launch(defined(text, f"<sum in float64, {k}>")["kernel"], dim=1, inputs=[x, y])


def test_counts_of_literals_are_compared_as_they_are() -> None:
    """Numbers that float32 holds need no table: the comparison is that of the sum itself."""

    @wp.func
    def alive(x: float):
        if x > 0.5:
            return 1.0
        return 0.0

    @wp.kernel
    def kernel(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        n = alive(x[i]) + alive(x[i + 1]) + alive(x[i + 2]) + alive(x[i + 3]) * alive(x[i + 4])
        if n == 2.0:
            y[i] = 1.0

    made = lower_kernel(kernel.func)
    assert "construct" not in str(made)
    x = np.random.default_rng(3).random(104, np.float32)
    y = wp.zeros(100, dtype=float)
    wp.launch(kernel, dim=100, inputs=[wp.array(x, dtype=float), y])
    a = x > 0.5
    count = a[:100].astype(int) + a[1:101] + a[2:102] + (a[3:103] & a[4:104])
    np.testing.assert_array_equal(y.numpy(), count == 2)


def test_one_instance_for_each_literal() -> None:
    @wp.func
    def f(a, x):
        return a * x

    @wp.func
    def same(x: float):
        if x > 0.0:
            return 0.5
        if x > -1.0:
            return 0.5
        return 0.5

    @wp.kernel
    def kernel(x: wp.array(dtype=float)):
        x[0] = f(0.7, x[0]) + f(0.7, x[1]) + f(0.1, x[2]) + f(-0.0, x[3]) + f(0.0, x[4])
        x[1] = same(x[1])

    made = [fn for fn in callees(lower_kernel(kernel.func)) if fn.name == "f"]
    assert len(made) == 4
    (fn,) = [fn for fn in callees(lower_kernel(kernel.func)) if fn.name == "same"]
    assert len(fn.results) == 1  # there is no choice to be told of


CASES = {
    "x[0] * p(0.7)": "annotate parameter `a` with float64",
    "x[0] * r(x[0] > 1.0)": "annotate the result of `r` with float64",
    "x[0] * v(x[0] > 1.0)": "annotate the result of `v` with float64",
    "r(x[0] > 1.0)": "annotate the result of `r` with float64",
    "wp.max(r(x[0] > 1.0), x[0])": "annotate the result of `r` with float64",
}


@pytest.mark.parametrize("text", [*CASES, "x[0] * s(z[0])", "x[0] * z[0]"])
def test_advice_says_where_constants_were_rounded(text: str) -> None:
    source = (
        "import engine as wp\n"
        "@wp.func\ndef q(a: float, x: wp.float64):\n    return a * x\n"
        "@wp.func\ndef p(a: float):\n    return q(a, wp.float64(1.0))\n"
        "@wp.func\ndef r(c: bool) -> float:\n    return 0.7 if c else 0.1\n"
        "@wp.func\ndef v(c: bool):\n    v = 0.7\n    if c:\n        v = 0.1\n    return v\n"
        "@wp.func\ndef s(z: float):\n    return 0.5 * z\n"
        "@wp.kernel\ndef kernel(x: wp.array(dtype=wp.float64), z: wp.array(dtype=float)):\n"
        f"    x[1] = {text}\n"
    )
    with pytest.raises(wp.KernelError) as error:
        lower_kernel(defined(source, f"<advice {text}>")["kernel"].func)
    (found,) = error.value.diagnostics
    assert found.code == "E104" and "convert" in found.help
    if text in CASES:
        assert CASES[text] in found.help and "constants are rounded before" in found.help
    else:
        assert "annotate" not in found.help
