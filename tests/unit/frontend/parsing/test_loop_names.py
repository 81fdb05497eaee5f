"""Loops whose variable stands for something else elsewhere in the function."""

import ast

import numpy as np
import pytest

import engine as wp
from engine.frontend.parsing.loop_names import separate_loops


@wp.kernel
def both(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    i = wp.tid()
    k = wp.ceil(x[i])
    total = k * x[i]
    for k in range(n):
        if k == 2:
            continue
        total += float(k) * x[i]
        for k in range(2):
            total += float(k)
    for v in range(2):
        total += float(v)
    v = wp.vec3(x[i], 1.0, 2.0)
    y[i] = total + wp.dot(v, v)


def test_the_loop_has_a_type_of_its_own():
    x = wp.array([1.5, 2.5], dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(both, 2, [x, 5], [y])
    tape.backward(grads={y: wp.ones_like(y)})
    at = x.numpy()
    np.testing.assert_allclose(y.numpy(), np.ceil(at) * at + 8 * at + 4 + 1 + at**2 + 5, rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), np.ceil(at) + 8 + 2 * at, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "renamed"),
    [
        ("k = 1.0\nfor k in range(n):\n    y += k", True),
        ("k = 1.0\nfor k in range(n):\n    y += k\ny += k", False),
        ("for k in range(n):\n    y += k\nk = 2.0\ny += k", True),
        ("for k in range(n):\n    y += k\nk += 2.0", False),
        ("for k in range(n):\n    y += k", False),
        ("for k in range(n):\n    k = k + 1\n    y += k", True),
        ("while c:\n    for k in range(n):\n        y += k\n    k = 1.0", True),
        ("while c:\n    y += k\n    for k in range(n):\n        y += 1\nk = 3", False),
        ("k = 0\nfor k in range(n):\n    if y:\n        break\ny = k", False),
        ("k = 0\nfor k in range(n):\n    y += k\nif y:\n    k = 3\ny = k", False),
        ("k = 0\nfor k in range(n):\n    y += k\nif y:\n    k = 3\nelse:\n    k = 4\ny = k", True),
        ("k = 0\nfor k in range(n):\n    y += k\nfor k in range(k):\n    y += 2", False),
        ("k = 0\nfor k in range(n):\n    y += k\na[k] = 2", False),
        ("k = 0\nwhile c:\n    for k in range(n):\n        y += 1\n    if y:\n        continue\n"
         "    k = 1\ny = k", False),
        ("k = 0\nwhile c:\n    for k in range(n):\n        y += 1\n    if y:\n        break\n"
         "    k = 1\nreturn k", False),
    ],
)  # fmt: skip
def test_only_where_nothing_reads_it_later(body, renamed):
    text = "def f(n, y, c, a, k_1):\n" + "\n".join("    " + x for x in body.splitlines())
    tree = ast.parse(text).body[0]
    first = next(n for n in ast.walk(tree) if isinstance(n, ast.For))
    separate_loops(tree)
    assert first.target.id == ("k_2" if renamed else "k")
