"""Calls on the host that were made before: they mean what they meant at first."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.builtins.stubs import BUILTINS
from engine.diagnostics import EngineError

V, W = wp.vec3(1.0, -2.0, 3.0), wp.vec3(math.nan, 0.0, -math.inf)
Q = wp.quat(0.1, 0.2, 0.3, 0.9)
M = wp.mat33(2.0, 1.0, 0.0, 0.0, 3.0, 1.0, 1.0, 0.0, 4.0)
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("sin", (0.5,)), ("sin", (wp.float64(0.5),)), ("sin", (np.float64(0.5),)), ("sqrt", (2,)),
    ("sqrt", (-1.0,)), ("exp", (1e4,)), ("sin", (1e300,)), ("sqrt", (2**40,)), ("abs", (-3,)),
    ("max", (1, 2.5)), ("max", (wp.float64(0.1), 0.1)), ("min", (3, 2**40)), ("min", (3, 4)),
    ("add", (2**31 - 1, 1)), ("add", (wp.int8(127), wp.int8(1))), ("add", (wp.int8(100), 100)),
    ("add", (wp.uint32(1), -1)), ("mul", (wp.uint64(2**63), 2)), ("div", (1, 0)),
    ("div", (1.0, 0.0)), ("mod", (-7, 3)), ("where", (True, 1.0, 2.0)), ("clamp", (3, 1, 2)),
    ("lerp", (1.0, 2.0, 0.25)),
    ("dot", (V, V)), ("cross", (V, W)), ("length", (V,)), ("normalize", (V,)), ("normalize", (W,)),
    ("mul", (2.0, V)), ("mul", (V, wp.float32(2.0))), ("mul", (M, V)), ("inverse", (M,)),
    ("transpose", (M,)), ("mul", (Q, Q)), ("quat_rotate", (Q, V)), ("quat_to_matrix", (Q,)),
    ("quat_from_axis_angle", (V, 1)), ("quat_rpy", (0.1, 0.2, 0.3)), ("norm_huber", (V,)),
    ("norm_huber", (V, 0.5)), ("svd3", (M,)), ("rand_init", (42,)), ("rand_init", (-1,)),
    ("randf", (wp.uint32(7),)), ("randf", (wp.uint32(7), -1.0, 1.0)), ("isnan", (math.nan,)),
    ("quat_identity", ()), ("neg", (wp.vec3h(1.0, 2.0, 3.0),)), ("pos", (V,)), ("abs", (V,)),
    ("length", (wp.vec3d(1.0, 2.0, 3.0),)), ("add", (wp.vec3i(1, 2, 3), wp.vec3i(4, 5, 6))),
]  # fmt: skip


def told(call: Callable[[], Any]) -> Any:
    try:
        found = call()
    except EngineError as e:
        return type(e), e.diagnostics[0].message
    each = found if isinstance(found, tuple) else (found,)
    return [(type(x), np.asarray(x).dtype, np.asarray(x).tobytes()) for x in each]


@pytest.mark.parametrize(("name", "args"), CALLS, ids=lambda x: str(x)[:40])
def test_every_time_the_same(name: str, args: tuple[Any, ...]) -> None:
    call = BUILTINS[name]
    call._known.clear()
    first = told(lambda: call(*args))
    assert [told(lambda: call(*args)) for _ in range(2)] == [first, first]


def test_integers_of_another_width_are_resolved_anew() -> None:
    add = BUILTINS["add"]
    for _ in range(3):
        assert add(2**31 - 1, 1) == -(2**31)
        assert add(2**31, 1) == 2**31 + 1
        assert add(1, 2**62) == 2**62 + 1
        assert add(-(2**31) - 1, 0) == -(2**31) - 1


def test_truth_values_are_no_integers() -> None:
    for _ in range(3):
        assert wp.where(True, 1, 2) == 1
        with pytest.raises(EngineError, match="E104"):
            BUILTINS["add"](True, 1)


def test_results_own_their_memory() -> None:
    for name in ("pos", "abs", "add"):
        v = wp.vec3(1.0, 2.0, 3.0)
        args = (v,) if name != "add" else (v, wp.vec3(0.0))
        for _ in range(3):
            got = BUILTINS[name](*args)
            got[0] = 9.0
            assert v[0] == 1.0
            v[1] = 5.0
            assert got[1] == 2.0
            v[1] = 2.0


def test_arguments_stay_as_they_are() -> None:
    for _ in range(3):
        q, v = wp.quat(0.1, 0.2, 0.3, 0.9), wp.vec3(1.0, 2.0, 3.0)
        wp.quat_rotate(q, v)
        wp.normalize(v)
        assert list(v) == [1.0, 2.0, 3.0]
        assert list(q) == [float(np.float32(x)) for x in (0.1, 0.2, 0.3, 0.9)]


def test_many_classes_are_forgotten_by_nobody() -> None:
    """There are more classes of vectors than a builtin remembers."""
    for n in range(2, 90):
        v = wp.types.vector(length=n, dtype=float)(1.0)
        for _ in range(2):
            assert wp.dot(v, v) == float(n)
