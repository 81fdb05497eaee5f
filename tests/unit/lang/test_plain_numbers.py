"""Vectors and matrices of plain numbers: as by way of NumPy, to the bit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import EngineError
from engine.lang import plain_numbers

CLASSES = [
    wp.vec2, wp.vec3, wp.vec4d, wp.vec3h, wp.vec3i, wp.vec2b, wp.vec4ub, wp.vec2ul, wp.vec2l,
    wp.mat22, wp.mat33d, wp.quat, wp.quatd, wp.transform, wp.spatial_vector,
    wp.types.vector(length=3, dtype=wp.bool), wp.types.matrix(shape=(2, 3), dtype=wp.int32),
]  # fmt: skip
NUMBERS: list[Any] = [
    0.0, -0.0, 0.1, 1e300, -1e300, 1e-46, math.inf, math.nan, 1, -1, 255, 256, 2**24 + 1, 2**31,
    -(2**31), 2**53 + 1, 2**63, 2**64 - 1, 10**40, True, np.float32(0.1), np.float64(0.1),
    np.int8(3), np.float16(0.1), wp.float64(0.1), "a", None, [1.0], np.array([1.0]), 1j,
]  # fmt: skip


def told(make: Any) -> Any:
    try:
        return np.asarray(make()).tobytes()
    except EngineError as e:
        return type(e), e.diagnostics[0].code, e.diagnostics[0].message
    except (IndexError, TypeError, ValueError) as e:
        return type(e), str(e)


@pytest.fixture
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes all go by NumPy."""
    from engine.lang import vectors

    def run(make: Any) -> Any:
        with monkeypatch.context() as m:
            m.setattr(vectors, "put_plain", lambda out, args: False)
            m.setattr(vectors, "is_plain_real", lambda value: False)
            return told(make)

    return run


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_made(cls: Any, by_numpy: Any) -> None:
    count = math.prod(cls._shape_)
    for x in NUMBERS:
        for args in ((x,), (x,) * count, (*(1,) * (count - 1), x), (*(0.5,) * (count - 1), x)):
            assert told(lambda: cls(*args)) == by_numpy(lambda: cls(*args)), args
    for n in (count - 1, count + 1):
        assert told(lambda: cls(*(1,) * n)) == by_numpy(lambda: cls(*(1,) * n)), n


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_set_and_read(cls: Any, by_numpy: Any) -> None:
    n = cls._shape_[0]
    for at in (0, -1, n - 1, -n, n, -n - 1, True, np.int64(0), 1.0, "x", slice(0, 1), (0,)):
        for x in NUMBERS:

            def put() -> Any:
                v = cls(1)
                v[at] = x
                return v

            assert told(put) == by_numpy(put), (at, x)
    v = cls(*range(1, 1 + math.prod(cls._shape_)))
    data = np.asarray(v)
    assert len(list(v)) == len(v) == n
    for k in (*range(n), *range(-n, 0)):
        a, b = v[k], data[k]
        assert np.asarray(a, data.dtype).tobytes() == b.tobytes()
        assert type(a) is type(list(v)[k])
    scalar = type(cls._wp_scalar_type_(1))
    if len(cls._shape_) == 1:
        plain = {wp.float32: float, wp.int32: int}.get(cls._wp_scalar_type_, scalar)
        assert type(v[0]) is plain


def test_c_has_all_but_halves() -> None:
    for cls in CLASSES:
        assert (cls._layout is None) == (cls is wp.vec3h)
        assert isinstance(cls._layout, plain_numbers.Layout | None)


def test_memory_that_somebody_else_has() -> None:
    memory = np.arange(3, dtype=np.float32)
    v = wp.vec3.from_buffer(memory)
    v[1] = 7
    memory[2] = 5
    assert list(v) == [0.0, 7.0, 5.0]
    assert memory[1] == 7
    memory = np.arange(3, dtype=np.float32)
    memory.flags.writeable = False
    assert list(wp.vec3(memory)) == [0.0, 1.0, 2.0]


def test_results_have_memory_of_their_own() -> None:
    v = wp.vec3(1.0, 2.0, 3.0)
    for w in (+v, v + wp.vec3(), v * 1.0, -v, v[0:3]):
        w[0] = 9.0
        assert v[0] == 1.0


@pytest.mark.parametrize("cls", CLASSES)
def test_a_loop_sees_what_it_sets(cls: Any) -> None:
    v = cls(*range(cls._layout.count if cls._layout else 3))
    components = iter(v)
    next(components)
    if len(cls._shape) == 1:
        v[1] = 0
        assert next(components) == 0
    else:
        v[1] = [0] * cls._shape[1]
        assert list(next(components)) == [0] * cls._shape[1]


class Shifted(wp.vec3):  # type: ignore[misc]
    """Gives others than its memory has, by what its memory has."""

    def __getitem__(self, index: Any) -> Any:
        return 10 + {0: self.x, 1: self.y, 2: self.z}[index]


class Tagged(wp.vec3):  # type: ignore[misc]
    """Has more than components."""

    def __new__(cls, *args: Any) -> Any:
        out = super().__new__(cls)
        out.tag = "tagged"
        return out


def test_subclasses_mean_what_they_say() -> None:
    v = Shifted(1.0, 2.0, 3.0)
    assert (v[0], v.x, [*v], [*(v + v)]) == (11.0, 1.0, [11.0, 12.0, 13.0], [12.0, 14.0, 16.0])
    assert {(-w).tag for w in (Tagged(1, 2, 3), Tagged() + Tagged(), Tagged() * 2.0)} == {"tagged"}
