"""Names that a literal of floats has started take the type that is asked of them.

Each body is run with a = [0.1, 0.7, 1.3] of a type T. The oracle is the same text in Python, in
which `a` holds numbers of T.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import engine as wp

TYPES = ("float64", "float32", "float16")
BODIES = {
    "sum": "s = 0.0\n    for j in range(n):\n        s += a[j]\n    y[0] = s",
    "product": "s = 0.1\n    for j in range(n):\n        s *= a[j]\n    y[0] = s",
    "other order": "s = 0.3\n    for j in range(n):\n        s = a[j] - s\n    y[0] = s",
    "part of an expression": "s = 0.1\n    for j in range(n):\n        s = s * 0.5 + a[j]\n"
                             "    y[0] = s",
    "maximum": "s = 0.1\n    for j in range(n):\n        s = max(s, a[j])\n    y[0] = s",
    "while": "s = 0.0\n    k = 0\n    while k < n:\n        s = s + a[k]\n        k += 1\n"
             "    y[0] = s",
    "branches": "if n > 2:\n        s = 0.1\n    else:\n        s = a[0]\n    y[0] = s * a[1]",
    "other branch": "if n > 9:\n        s = 0.1\n    else:\n        s = a[0]\n    y[0] = s * a[1]",
    "stored": "s = 0.1\n    if n > 2:\n        s = 0.3\n    y[0] = s",
    "whole number": "s = 0.1\n    if n > 2:\n        s = 2\n    y[0] = s",
    "chosen whole number": "s = 0.1\n    if n > 2:\n        s = (2, 5)[n - 2]\n    y[0] = s * a[1]",
    "chosen whole number of one name": "s = 0.1\n    y[0] = s\n    s = (2, 5)[n - 2]\n"
                                       "    y[0] = s * a[1]",
    "several values in a row": "s = 0.1\n    y[0] = a[0] * s\n    s = a[1]\n    y[0] += s",
    "argument": "s = 0.1\n    if n > 2:\n        s = 0.3\n    y[0] = same(s)",
    "choice": "s = 0.1\n    if n > 2:\n        s = 0.3\n    y[0] = s if n > 1 else a[0]",
    "two names": "s, t = 0.1, 0.3\n    for j in range(n):\n        s, t = t, s + a[j]\n"
                 "    y[0] = s - t",
    "chosen": "s = 0.1 if n > 9 else 0.3\n    for j in range(n):\n        s += a[j]\n    y[0] = s",
    "of another name": "s = 0.1\n    t = s\n    for j in range(n):\n        t += a[j]\n"
                       "    y[0] = t",
    "chain": "s = 0.1\n    t = 0.3\n    for j in range(n):\n        s += t\n        t += a[j]\n"
             "    y[0] = s",
    "constant": "s = 0.1\n    y[0] = a[0] * s",
    "sum of constants": "s = 0.1\n    t = s + 0.7\n    y[0] = t",
    "loop over a tuple": "s = 0.0\n    for c in (0.1, 0.7):\n        s += a[0] * c\n    y[0] = s",
    "tuple with an element": "s = 0.3\n    for c in (0.1, a[1], 0.2):\n        s += c\n"
                             "    y[0] = s",
    "update of an element": "s = 0.1\n    if n > 2:\n        s = 0.3\n    y[0] += s",
    "vector": "s = 0.1\n    for j in range(n):\n        s += wp.types.vector(2, T)(a[j], a[0])[0]\n"
              "    y[0] = s",
}  # fmt: skip


def defined(text: str, name: str, **names: Any) -> dict[str, Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names["__name__"] = "literal_names"
    exec(compile(text, name, "exec"), names)
    return names


def kernel_of(t: str) -> Any:
    bodies = []
    for k, body in enumerate(BODIES.values()):
        text = body.replace("y[0]", f"y[{k}]")
        bodies.append(f"@wp.func\ndef f{k}(a: A, y: A, n: int):\n    {text}\n")
    calls = "".join(f"    f{k}(a, y, n)\n" for k in range(len(BODIES)))
    text = (
        f"import engine as wp\nT = wp.{t}\nA = wp.array(dtype=T)\n"
        "@wp.func\ndef same(value: T):\n    return value\n" + "".join(bodies) +
        f"@wp.kernel\ndef kernel(a: A, n: int, y: A):\n{calls}"
    )  # fmt: skip
    return defined(text, f"<literal names {t}>")["kernel"]


def in_python(body: str, t: str) -> Any:
    """What Python makes of it: the numbers of `a` take literals along, as kernels do."""
    kind = getattr(np, t)

    class Types:
        @staticmethod
        def vector(_: int, __: Any) -> Any:
            return lambda *parts: parts

    class Wp:
        types = Types

    y = np.zeros(1, kind)
    text = f"def f(a, y, n):\n    {body}\n"
    names = defined(text, f"<python {t} {hash(body)}>", wp=Wp, T=kind, same=lambda v: v)
    names["f"](np.array([0.1, 0.7, 1.3], kind), y, 3)
    return y[0]


@pytest.mark.parametrize("t", TYPES)
def test_they_compute_in_that_type(t: str) -> None:
    a = wp.array([0.1, 0.7, 1.3], dtype=getattr(wp, t))
    y = wp.zeros(len(BODIES), dtype=a.dtype)
    wp.launch(kernel_of(t), dim=1, inputs=[a, 3, y])
    expected = {name: in_python(body, t) for name, body in BODIES.items()}
    got = dict(zip(BODIES, y.numpy(), strict=True))
    assert got == expected


@wp.kernel
def horner(x: wp.array(dtype=wp.float64), n: int, y: wp.array(dtype=wp.float64)):
    total = 0.5
    for j in range(n):
        total = total * x[0] + x[j]
    y[0] = total


def test_gradients_flow_through_them() -> None:
    x = wp.array([0.3, 0.7, 1.3], dtype=wp.float64, requires_grad=True)
    y = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(horner, dim=1, inputs=[x, 3, y])
    tape.backward(grads={y: wp.ones_like(y)})
    # total = 0.5 a^3 + a a^2 + b a + c
    a, b = 0.3, 0.7
    np.testing.assert_allclose(x.grad.numpy(), [1.5 * a**2 + 3 * a**2 + b, a, 1.0], rtol=1e-15)


def test_one_name_has_one_type() -> None:
    @wp.kernel
    def both(x: wp.array(dtype=wp.float64), z: wp.array(dtype=float), y: wp.array(dtype=float)):
        s = 0.0
        for j in range(3):
            s += x[j]
            s += z[j]
        y[0] = s

    x = wp.zeros(3, dtype=wp.float64)
    z = wp.zeros(3, dtype=float)
    with pytest.raises(wp.KernelError, match="cannot combine float32 and float64"):
        wp.launch(both, dim=1, inputs=[x, z, z])


def test_a_cast_asks_for_its_type() -> None:
    @wp.kernel
    def plain(n: int, y: wp.array(dtype=wp.float64)):
        s = 0.1
        for _ in range(n):
            s = s + 0.2
        y[0] = wp.float64(s)
        t = 0.1
        rounds = 0
        while t < 1.0:
            t += 0.1
            rounds += 1
        y[1] = wp.float64(t)
        y[2] = wp.float64(rounds)

    y = wp.zeros(3, dtype=wp.float64)
    wp.launch(plain, dim=1, inputs=[3, y])
    s, t, rounds = 0.1, 0.1, 0
    for _ in range(3):
        s = s + 0.2
    while t < 1.0:
        t += 0.1
        rounds += 1
    assert y.numpy().tolist() == [s, t, rounds]


def test_a_cast_of_what_is_float32_asks_nothing() -> None:
    """A name that a float32 value is given is float32, also before that."""

    @wp.kernel
    def mixed(x: wp.array(dtype=float), y: wp.array(dtype=wp.float64)):
        s = 0.1
        for i in range(x.shape[0]):
            y[i] = wp.float64(s)
            s = x[i]

    x, y = wp.array([0.2, 0.3], dtype=float), wp.zeros(2, dtype=wp.float64)
    wp.launch(mixed, dim=1, inputs=[x, y])
    assert y.numpy().tolist() == [float(np.float32(0.1)), float(np.float32(0.2))]


def test_typed_constants_are_rounded_to_their_type() -> None:
    @wp.kernel
    def typed(y: wp.array(dtype=wp.float64)):
        v = wp.vec3(0.1, 0.2, 0.3)
        y[0] = wp.float64(v[0])
        y[1] = wp.float64(wp.float16(0.1))
        y[2] = wp.float64(wp.float16(70000.0))
        y[3] = wp.float64(wp.int32(wp.float32(16777217.0)))
        b: wp.float32 = 0.1
        y[4] = wp.float64(b)
        y[5] = wp.float64(wp.where(False, 0.1, 16777217))

    y = wp.zeros(6, dtype=wp.float64)
    wp.launch(typed, dim=1, inputs=[y])
    one = float(np.float32(0.1))
    want = [one, float(np.float16(0.1)), np.inf, 16777216.0, one, 16777217.0]
    assert y.numpy().tolist() == want
