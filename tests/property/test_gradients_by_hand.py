"""Random gradients of arrays, as users write them: forward mode is their transpose.

The functions read and write arrays of several shapes; the gradients are random linear code, with
loops, branches, variables that carry cotangents, numbers, or one after the other, and are the
derivative of nothing.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp

TEXT = """
import engine as wp
T = wp.{dtype}
V = wp.types.vector(length=3, dtype=T)

@wp.func
def f(a: wp.array(dtype=T), b: wp.array2d(dtype=T), c: wp.array(dtype=V), y: wp.array(dtype=T),
      s: T, i: int):
    y[i] = a[i] * s
    return b[i, 1] * s, c[i] * s

@wp.func_grad(f)
def adj_f(a: wp.array(dtype=T), b: wp.array2d(dtype=T), c: wp.array(dtype=V),
          y: wp.array(dtype=T), s: T, i: int, adj_p: T, adj_q: V):
    one = T(0.0)
    many = V()
{body}

@wp.kernel
def run(a: wp.array(dtype=T), b: wp.array2d(dtype=T), c: wp.array(dtype=V), y: wp.array(dtype=T),
        s: wp.array(dtype=T), p: wp.array(dtype=T), q: wp.array(dtype=V)):
    i = wp.tid()
    one, many = f(a, b, c, y, s[i] * s[i], i)
    p[i] = one * one
    q[i] = many * a[i]
"""
N = 4


class Writer:
    """Writes a random gradient. Elements belong to thread `i` alone, but for what is added."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []

    def pick(self, *some: str) -> str:
        return self.random.choice(some)

    def number(self) -> str:
        """What does not depend on cotangents."""
        return self.pick(
            "T(0.5)", "T(-1.5)", "a[i]", "s", "b[i, 0]", "c[i][2]", "wp.sin(a[i])", "a[i] * s",
            "T(i + 1)",
        )  # fmt: skip

    def scalar(self) -> str:
        value = self.pick(
            "adj_p", "one", "adj_q[1]", "many[0]", "wp.adjoint[y][i]", "wp.dot(adj_q, c[i])",
            "wp.adjoint[b][i, 1]", "wp.adjoint[c][i][0]", "-adj_p", "wp.adjoint[a][i]",
        )  # fmt: skip
        form = self.pick("{0}", "{0} * {1}", "{1} * {0}", "{0} / (T(2.0) + {1} * {1})", "{0} - {2}")
        other = self.pick("adj_p", "one", "many[2]")
        return form.format(value, self.number(), other)

    def vector(self) -> str:
        value = self.pick("adj_q", "many", "wp.adjoint[c][i]", f"V({self.scalar()}, one, adj_p)",
                          f"c[i] * ({self.scalar()})")  # fmt: skip
        return self.pick("{0}", "{0} * {1}", "wp.cross(c[i], {0})").format(value, self.number())

    def statement(self, depth: int, pad: str) -> None:
        kind = self.random.randrange(10 if depth < 2 else 7)
        if kind == 0:
            self.lines.append(f"{pad}one = {self.scalar()}")
        elif kind == 1:
            self.lines.append(f"{pad}one += {self.scalar()}")
        elif kind == 2:
            self.lines.append(f"{pad}many = {self.vector()}")
        elif kind == 3:
            self.lines.append(f"{pad}{self.element()} += {self.scalar()}")
        elif kind == 4:
            self.lines.append(f"{pad}wp.adjoint[c][i] += {self.vector()}")
        elif kind == 5:
            zero = f"{pad}wp.adjoint[y][i] = T(0.0)"
            self.lines.append(self.pick(zero, f"{pad}wp.adjoint[s] += {self.scalar()}"))
        elif kind == 6:
            at = self.pick("i", "(i + 1) % 4")
            self.lines.append(f"{pad}wp.atomic_sub(wp.adjoint[a], {at}, {self.scalar()})")
        elif kind == 9:
            self.twice(pad)
        else:
            head = f"for j in range({self.pick('2', 'i')}):" if kind == 7 else "if a[i] > T(0.9):"
            self.lines.append(pad + head)
            for _ in range(self.random.randint(1, 3)):
                self.statement(depth + 1, pad + "    ")
            if kind == 8:
                self.lines.append(f"{pad}else:")
                self.statement(depth + 1, pad + "    ")

    def twice(self, pad: str) -> None:
        """A variable that holds a number first, then a cotangent, then a number again."""
        name = f"v{len(self.lines)}"
        loop = f"{pad}for k in range({self.pick('2', 'i')}):"
        self.lines += [
            f"{pad}{name} = {self.number()}",
            loop,
            f"{pad}    {name} = {name} * {self.number()}",
            f"{pad}one += {name} * {self.pick('adj_p', 'many[1]')}",
            self.pick(
                f"{pad}{name} = {name} * adj_p",
                f"{pad}if a[i] > T(0.9):\n{pad}    {name} = {name} * adj_p\n"
                f"{pad}else:\n{pad}    {name} = {self.scalar()}",
            ),
            loop,
            f"{pad}    {name} += {self.scalar()}",
            f"{pad}{self.element()} += {name}",
            f"{pad}{name} = {self.number()}",
            f"{pad}{self.element()} += {name} * adj_q[0]",
        ]

    def element(self) -> str:
        return self.pick("wp.adjoint[a][i]", "wp.adjoint[b][i, 0]", "wp.adjoint[b][i, 1]",
                         "wp.adjoint[c][i][1]", "wp.adjoint[y][i]")  # fmt: skip

    def body(self) -> str:
        for _ in range(self.random.randint(3, 8)):
            self.statement(0, "    ")
        return "\n".join(self.lines)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.host("threads that read what others add to")
def test_forward_mode_is_the_transpose(seed: int, dtype: str, tmp_path: Any) -> None:
    text = TEXT.format(dtype=dtype, body=Writer(seed).body())
    path = tmp_path / f"random_{seed}_{dtype}.py"
    path.write_text(text)
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(text, str(path), "exec"), space)
    rng = np.random.default_rng(seed)
    shapes = [(N,), (N, 2), (N, 3), (N,), (N,), (N,), (N, 3)]
    types = [space["T"] if k not in (2, 6) else space["V"] for k in range(7)]
    args = [
        wp.array(rng.uniform(0.5, 1.5, shape).astype(dtype), dtype=t, requires_grad=True)
        for shape, t in zip(shapes, types, strict=True)
    ]
    v = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    w = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    with wp.Tape() as tape:
        wp.launch(space["run"], N, inputs=args)
    tape.backward(grads={a: wp.array(x, dtype=a.dtype) for a, x in zip(args, w, strict=True)})
    moved = jvp(tape, tangents=dict(zip(args, v, strict=True)))
    ends = [moved[a].numpy() for a in args]  # a gradient that zeroes moves inputs, too
    ahead = [x.astype(float) * y for x, y in zip(ends, w, strict=True)]
    back = [a.grad.numpy().astype(float) * x for a, x in zip(args, v, strict=True)]
    size = sum(float(np.abs(x).sum()) for x in (*ahead, *back))
    off = abs(sum(float(x.sum()) for x in ahead) - sum(float(x.sum()) for x in back))
    assert off <= (2e-5 if dtype == "float32" else 1e-12) * size, text
