"""Compiled code against the interpreter, for random programs: primal, recorded and adjoint."""

from __future__ import annotations

import ctypes
import os

import numpy as np
import pytest

from engine.compile.host import Launch, release
from engine.compile.pipeline import Variants, prefetch
from engine.ir import interp
from tests.property.programs import ARRAYS, SIZE, program

COUNT = int(os.environ.get("ENGINE_COMPILED_PROGRAMS", "30"))
WRT = frozenset(ARRAYS)
TRIPS = 3


@pytest.fixture(scope="module")
def compiled() -> list[Variants]:
    made = [Variants(program(seed)) for seed in range(COUNT)]
    forms = ("forward", "recorded", "adjoint")
    prefetch([(v, form, WRT, v.journaled()) for v in made for form in forms])
    return made


def pack(arrays: list[np.ndarray], extra: tuple[np.ndarray, ...] = ()) -> bytes:
    def one(a: np.ndarray) -> bytes:
        return np.array([a.ctypes.data, a.shape[0], a.strides[0]], np.int64).tobytes()

    return b"".join([*map(one, arrays), np.int64(TRIPS).tobytes(), *map(one, extra)])


def launch(entry, args: bytes, state: Launch) -> None:
    state.dim[0], state.ndim, state.begin, state.end = 1, 1, 0, 1
    entry.call(args, ctypes.byref(state))
    assert state.error == 0


@pytest.mark.parametrize("seed", range(COUNT))
def test_compiled_code_means_what_the_interpreter_says(seed: int, compiled) -> None:
    v = compiled[seed]
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-1.5, 1.5, SIZE) for _ in ARRAYS]
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    expected = [a.copy() for a in start]
    journal = interp.Journal()
    fn = v.recorded_ir(WRT, v.journaled()) or v.ir
    interp.run(fn, [*expected, TRIPS], (1,), journal=journal)
    want = [w.copy() for w in weights]
    adjoint = v.adjoint_ir(WRT, v.journaled()).fn
    interp.run(adjoint, [*[a.copy() for a in expected], TRIPS, *want], (1,), journal=journal)

    state = Launch()
    try:
        for entry in (v.forward(), v.recorded(WRT, v.journaled())):
            if entry is not None:
                got = [a.copy() for a in start]
                launch(entry, pack(got), state)
                for x, y in zip(got, expected, strict=True):
                    np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)
        grads = [w.copy() for w in weights]
        launch(v.adjoint(WRT, v.journaled()), pack(got, tuple(grads)), state)
        for x, y in zip(grads, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)
    finally:
        release(state)
