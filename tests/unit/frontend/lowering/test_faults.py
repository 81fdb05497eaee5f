"""A fault of this package is told at the user's line, and never as a traceback."""

from __future__ import annotations

import ast
import linecache

import pytest

import engine as wp
from engine.frontend import lower_kernel
from engine.frontend.context.context import Context
from engine.frontend.lowering.handlers import STATEMENTS


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    a[0] = 1.0
    if a[0] > 0.0:
        a[1] = unknown_name  # noqa: F821


def test_a_fault_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(cx: Context, node: ast.stmt) -> None:
        raise ZeroDivisionError("inside")

    lower = STATEMENTS[ast.Assign]
    monkeypatch.setitem(STATEMENTS, ast.If, fails)
    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(kernel.func)
    (d,) = caught.value.diagnostics
    assert d.code == "E101" and "ZeroDivisionError: inside" in d.message
    assert d.span is not None and d.span.line == kernel.func.__code__.co_firstlineno + 3
    assert caught.value.__cause__ is None and STATEMENTS[ast.Assign] is lower


def test_all_problems_come_in_the_order_of_the_text() -> None:
    @wp.kernel
    def k(a: wp.array(dtype=float), b):
        x = [1.0]
        a[0] = nope  # noqa: F821
        for i in a:
            a[i] = wp.tile_load(a)
        y = x + unknown()  # noqa: F821
        a[1] = y

    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(k.func)
    found = [(d.code, d.span.line) for d in caught.value.diagnostics if d.span is not None]
    first = k.func.__code__.co_firstlineno
    lines = [(c, line - first) for c, line in found]
    assert lines == [("E103", 1), ("E101", 2), ("E102", 3), ("E101", 4), ("E112", 5), ("E102", 6)]


def made(body: str, name: str) -> wp.Kernel:
    """A kernel over `x` and `n` from the text of its body."""
    text = f"@wp.kernel\ndef k(x: wp.array(dtype=float), n: int):\n{body}"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"wp": wp}
    exec(compile(text, name, "exec"), space)
    return space["k"]  # type: ignore[return-value]


_ELIFS = "".join(f"    elif n == {i}:\n        x[0] = {i}.0\n" for i in range(500))


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("    y = 1.0\n    x[0] = " + " + ".join(["x[0]"] * 1200) + " + y\n", 4),
        (f"    y = 1.0\n    if n < 0:\n        x[0] = y\n{_ELIFS}", 4),
        ("    x[0] = " + "-" * 900 + "x[0]\n", 3),
    ],
    ids=["sum", "elif", "minus"],
)
def test_code_too_deep_for_python(body: str, line: int, request: pytest.FixtureRequest) -> None:
    with pytest.raises(wp.KernelError) as caught:
        lower_kernel(made(body, f"<{request.node.name}>").func)
    (d,) = caught.value.diagnostics
    assert d.code == "E101" and "split the expression" in d.help
    assert d.span is not None and (d.span.line, d.span.end_line, d.span.col) == (line, line, 5)
    assert caught.value.__cause__ is None


def test_long_but_not_too_long() -> None:
    fn = lower_kernel(made("    x[0] = " + " + ".join(["x[0]"] * 100) + "\n", "<sum of 100>").func)
    assert len(fn.body) == 200


def test_return_none_is_return() -> None:
    @wp.func
    def f(x: wp.array(dtype=float)):
        x[0] = 2.0
        return None

    @wp.kernel
    def k(x: wp.array(dtype=float)):
        if x[0] > 1.0:
            return None
        f(x)

    x = wp.zeros(1, dtype=float)
    wp.launch(k, dim=1, inputs=[x])
    assert x.numpy()[0] == 2.0


def test_an_array_as_a_condition() -> None:
    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
        if x:
            z[0] = x[0]
        if not y:
            z[1] = 1.0
        if x and not y:
            z[2] = 1.0
        z[3] = y[0] if y else 5.0

    x, z = wp.full(1, 3.0, dtype=float), wp.zeros(4, dtype=float)
    wp.launch(k, dim=1, inputs=[x, None, z])
    assert z.numpy().tolist() == [3.0, 1.0, 1.0, 5.0]
    z.zero_()
    wp.launch(k, dim=1, inputs=[None, x, z])
    assert z.numpy().tolist() == [0.0, 0.0, 0.0, 3.0]


def test_atomics_on_rows() -> None:
    @wp.kernel
    def k(x: wp.array3d(dtype=float), i: int, j: int):
        wp.atomic_add(x[i], j, 1, 2.0)
        wp.atomic_add(x[i][j], i, 3.0)
        wp.atomic_max(x[i, j], 0, 4.0)

    x = wp.zeros((2, 2, 3), dtype=float)
    wp.launch(k, dim=1, inputs=[x, -1, 0])
    assert x.numpy()[1, 0].tolist() == [4.0, 2.0, 3.0] and x.numpy().sum() == 9.0
