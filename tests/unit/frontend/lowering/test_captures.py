"""A kernel means what its functions capture at its first launch, whatever ran before it.

A table of all ways in which a shared function can come by a value of Python, each crossed with
sequences of values that change, come back, or stay equal, and with what else was lowered before.
"""

from __future__ import annotations

import enum
import gc
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_function, lower_kernel
from engine.ir.interp import evaluate
from engine.ir.nodes import callees
from engine.lang.types import FLOAT32

# ---- the ways: each sets a value, and has a function of x that is x + value


@dataclass(frozen=True)
class Way:
    """set: changes what is captured. function: captures it, and never changes itself."""

    set: Callable[[float], None]
    function: Any


GLOBAL = 0.0


def a_global() -> Way:
    def put(value: float) -> None:
        global GLOBAL
        GLOBAL = value

    @wp.func
    def f(x: float):
        return x + GLOBAL

    return Way(put, f)


def a_closure_cell() -> Way:
    held = 0.0

    def put(value: float) -> None:
        nonlocal held
        held = value

    @wp.func
    def f(x: float):
        return x + held

    return Way(put, f)


def a_member_of_a_class() -> Way:
    class Space:
        held = 0.0

    @wp.func
    def f(x: float):
        return x + Space.held

    return Way(lambda value: setattr(Space, "held", value), f)


def a_member_of_a_module() -> Way:
    module = types.ModuleType("settings")
    module.inner = types.ModuleType("inner")  # type: ignore[attr-defined]

    @wp.func
    def f(x: float):
        return x + module.inner.held

    return Way(lambda value: setattr(module.inner, "held", value), f)


def a_vector_changed_in_place() -> Way:
    held = wp.vec3(0.0, 0.0, 0.0)

    def put(value: float) -> None:
        held[1] = value

    @wp.func
    def f(x: float):
        return x + held[1]

    return Way(put, f)


def a_tuple() -> Way:
    held: tuple[Any, ...] = (1.0, 0.0)

    def put(value: float) -> None:
        nonlocal held
        held = (1.0, value)

    @wp.func
    def f(x: float):
        return x + held[1]

    return Way(put, f)


def a_static_expression() -> Way:
    """One that reads a local name, so that its decorator cannot compute it."""
    table = {"held": 0.0}

    @wp.func
    def f(x: float):
        key = 0
        return x + wp.static(table["held"] + key)

    return Way(lambda value: table.__setitem__("held", value), f)


def a_static_expression_in_a_loop() -> Way:
    table = [0.0, 0.0]

    def put(value: float) -> None:
        table[:] = [0.25 * value, 0.75 * value]

    @wp.func
    def f(x: float):
        for k in range(2):
            x += wp.static(table[k])
        return x

    return Way(put, f)


def an_enumeration() -> Way:
    level: Any = None

    def put(value: float) -> None:
        nonlocal level
        level = enum.IntEnum("Level", {"high": int(4 * value)})

    put(0.0)

    @wp.func
    def f(x: float):
        return x + float(level.high) / 4.0

    return Way(put, f)


def a_function_bound_anew() -> Way:
    held: Any = None

    def put(value: float) -> None:
        nonlocal held

        @wp.func
        def g(x: float):
            return x + value

        held = g

    @wp.func
    def f(x: float):
        return held(x)

    return Way(put, f)


def a_default() -> Way:
    @wp.func
    def g(x: float, y: float = 0.0):
        return x + y

    @wp.func
    def f(x: float):
        return g(x)

    return Way(lambda value: setattr(g.func, "__defaults__", (value,)), f)


def an_annotation() -> Way:
    names: dict[str, Any] = {"wp": wp, "T": wp.float32, "held": 0.0}

    def put(value: float) -> None:
        # The value is lost where the variable is an integer.
        names["T"] = wp.int32 if value == int(value) else wp.float32
        names["held"] = value

    f = from_text(
        "@wp.func\ndef f(x: float):\n    y: 'T' = T(held)\n    return x + float(y)\n", names
    )
    return Way(put, f)


def an_overload() -> Way:
    names: dict[str, Any] = {"wp": wp}

    def put(value: float) -> None:
        names["held"] = value
        names["A"], names["B"] = (int, float) if value < 2.0 else (float, int)

    # Which of the two takes a float depends on the value, too.
    text = (
        "@wp.func\ndef g(x: 'A'):\n    return float(x) + held\n\n"
        "@wp.func\ndef g(x: 'B'):\n    return float(x) + held + 0.0\n\n"
        "@wp.func\ndef f(x: float):\n    return g(x)\n"
    )
    put(0.0)
    return Way(put, from_text(text, names))


WAYS = [
    a_global, a_closure_cell, a_member_of_a_class, a_member_of_a_module,
    a_vector_changed_in_place, a_tuple, a_static_expression, a_static_expression_in_a_loop,
    an_enumeration, a_function_bound_anew, a_default, an_annotation, an_overload,
]  # fmt: skip


def from_text(text: str, names: dict[str, Any], _count: list[int] = [0]) -> Any:  # noqa: B006
    """The function `f` of a program."""
    import linecache

    _count[0] += 1
    file = f"<captures {_count[0]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names["f"]


# ---- how a kernel comes to the function


def directly(f: Any) -> Any:
    return f


def through_another(f: Any) -> Any:
    @wp.func
    def outer(x: float):
        return f(x)

    return outer


def through_a_diamond(f: Any) -> Any:
    @wp.func
    def left(x: float):
        return 0.5 * f(x)

    @wp.func
    def right(x: float):
        return 0.5 * f(x)

    @wp.func
    def top(x: float):
        return left(x) + right(x)

    return top


def as_an_argument(f: Any) -> Any:
    @wp.func
    def apply(g: wp.Function, x: float):
        return g(x)

    @wp.func
    def outer(x: float):
        return apply(f, x)

    return outer


ROUTES = [directly, through_another, through_a_diamond, as_an_argument]
SEQUENCES = {"changes": [1.5, 2.5, 3.5], "comes back": [1.5, 2.0, 1.5], "stays": [1.5, 1.5]}


def kernel_of(f: Any) -> Any:
    @wp.kernel
    def k(y: wp.array(dtype=float)):
        y[0] = f(10.0)

    return k


@pytest.mark.parametrize("route", ROUTES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("values", SEQUENCES.values(), ids=list(SEQUENCES))
def test_each_kernel_sees_what_is_there_when_it_is_lowered(
    way: Any, route: Any, values: list[float]
) -> None:
    found = way()
    shared = route(found.function)
    for value in values:
        found.set(value)
        y = np.zeros(1, dtype=np.float32)
        evaluate(lower_kernel(kernel_of(shared).func), (y,))
        assert y[0] == 10.0 + value


@pytest.mark.parametrize("way", WAYS, ids=lambda f: f.__name__)
def test_functions_are_lowered_once_while_nothing_changes(way: Any) -> None:
    found = way()
    shared = through_a_diamond(found.function)
    found.set(1.5)
    first, second = (callees(lower_kernel(kernel_of(shared).func)) for _ in range(2))
    assert first == second
    found.set(3.0)
    assert callees(lower_kernel(kernel_of(shared).func))[-1] is not first[-1]


# ---- launches, and what the disk cache and the group have to do with it


@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
@pytest.mark.parametrize("group", ["one group", "unique"])
@pytest.mark.parametrize("way", [a_global, a_closure_cell, a_static_expression])
def test_no_cache_decides(
    way: Any, group: str, warm: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of one group are compiled ahead, where the first one is not in the cache."""
    monkeypatch.setattr(wp.config, "cache_dir", str(tmp_path))
    for _ in range(1 + warm):
        found = way()
        f = found.function
        kernels = []
        for _ in range(3):
            module = f"captures {id(found)}" if group == "one group" else "unique"

            @wp.kernel(module=module)
            def k(y: wp.array(dtype=float)):
                y[0] = f(10.0)

            kernels.append(k)
        got = []
        for value, k in zip([1.5, 2.5, 3.5], kernels, strict=True):
            found.set(value)
            y = wp.zeros(1)
            wp.launch(k, dim=1, outputs=[y])
            got.append(float(y.numpy()[0]))
        assert got == [11.5, 12.5, 13.5]


# ---- gradients


@pytest.mark.parametrize("what", ["func_grad", "func_replay"])
def test_what_custom_gradients_capture(what: str) -> None:
    held = 0.0

    @wp.func
    def f(x: float):
        return x * x

    if what == "func_grad":

        @wp.func_grad(f)
        def adj_f(x: float, g: float):
            wp.adjoint[x] += held * g
    else:

        @wp.func_replay(f)
        def replay_f(x: float):
            return held + x

    for held in (1.5, 2.5, 2.5):
        (fn,) = callees(lower_kernel(kernel_of(f).func))
        custom = fn.grad if what == "func_grad" else fn.replay
        assert custom is not None
        assert evaluate(custom, (1.0, 1.0)[: len(custom.params)])[0] == held + (
            what == "func_replay"
        )


def test_a_custom_gradient_that_calls_its_caller() -> None:
    """Inside the adjoint of f, f has no custom adjoint; outside of it, it keeps it."""

    @wp.func
    def f(x: float):
        return x * x

    @wp.func
    def twice(x: float):
        return f(x) + f(x)

    @wp.func_grad(f)
    def adj_f(x: float, g: float):
        wp.adjoint[x] += 100.0 * twice(x) * g

    @wp.kernel
    def k(y: wp.array(dtype=float)):
        y[0] = f(y[1]) + twice(y[1])

    for _ in range(2):
        functions = callees(lower_kernel(k.func))
        assert [fn.name for fn in functions] == ["f", "twice"]
        assert all(fn.grad is not None for fn in functions if fn.name == "f")
        (inside,) = [fn for fn in callees(functions[0].grad) if fn.name == "f"]
        assert inside.grad is None


def test_instances_go_with_their_functions() -> None:
    def make(value: float) -> Any:
        @wp.func
        def f(x: float):
            return x + value

        return through_another(f)

    shared = make(1.0)
    held = [weakref.ref(shared), weakref.ref(lower_function(shared, (FLOAT32,)))]
    del shared
    gc.collect()
    assert [r() for r in held] == [None, None]
