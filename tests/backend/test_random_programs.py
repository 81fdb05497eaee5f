"""Compiled code against the interpreter, for random programs: primal, recorded, adjoint, tangent.

Programs with odd numbers are cut into pieces, as large ones are.

`ENGINE_COMPILED_PROGRAMS` sets how many programs run (default 20).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import pytest

from engine.codegen import outline
from engine.compile.host import Launch, release
from engine.compile.pipeline import Variants, prefetch
from engine.ir import interp
from tests.property.programs import ARRAYS, DIM, SIZE, program
from tests.property.test_random_programs import assert_transposed

COUNT = int(os.environ.get("ENGINE_COMPILED_PROGRAMS", "20"))
BATCH = 30  # programs that are compiled together
WRT = frozenset(ARRAYS)
TRIPS = 3
FORMS = ("forward", "recorded", "adjoint", "checkpointed", "tangent")


@pytest.fixture(scope="module")
def compiled() -> dict[int, Variants]:
    return {}


def variants(seed: int, compiled: dict[int, Variants]) -> Variants:
    if seed not in compiled:
        first = seed - seed % BATCH
        made = {k: Variants(program(k)) for k in range(first, min(first + BATCH, COUNT))}
        for cut in (False, True):
            some = [v for k, v in made.items() if k % 2 == cut]
            with in_pieces() if cut else nullcontext():
                prefetch([(v, form, WRT, _journaled(v, form)) for v in some for form in FORMS])
        compiled.clear()
        compiled.update(made)
    return compiled[seed]


@contextmanager
def in_pieces() -> Iterator[None]:
    """Every function is cut as only large ones are, into pieces of a few statements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outline, "LARGE", 0)
        patch.setattr(outline, "PIECE", 12)
        yield


def _journaled(v: Variants, form: str) -> frozenset[str]:
    return frozenset() if form == "tangent" else v.journaled()


def pack(arrays: list[np.ndarray], extra: tuple[np.ndarray, ...] = ()) -> bytes:
    def one(a: np.ndarray) -> bytes:
        return np.array([a.ctypes.data, a.shape[0], a.strides[0]], np.int64).tobytes()

    return b"".join([*map(one, arrays), np.int64(TRIPS).tobytes(), *map(one, extra)])


def launch(entry, args: bytes, state: Launch) -> None:
    state.dim[0], state.ndim, state.begin, state.end = DIM, 1, 0, DIM
    entry.call(args, ctypes.byref(state))
    assert state.error == 0


def assert_close(got: list[np.ndarray], expected: list[np.ndarray], rtol: float) -> None:
    for x, y in zip(got, expected, strict=True):
        scale = float(np.abs(y[np.isfinite(y)]).max(initial=0.0))
        np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * (scale + 1e-3))


@pytest.mark.parametrize("seed", range(COUNT))
def test_compiled_code_means_what_the_interpreter_says(seed: int, compiled) -> None:
    v = variants(seed, compiled)
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-1.5, 1.5, SIZE) for _ in ARRAYS]
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    direction = [rng.standard_normal(SIZE) for _ in ARRAYS]
    expected = [a.copy() for a in start]
    journal = interp.Journal()
    fn = v.recorded_ir(WRT, v.journaled()) or v.ir
    interp.run(fn, [*expected, TRIPS], DIM, journal=journal)
    want = [w.copy() for w in weights]
    adjoint = v.adjoint_ir(WRT, v.journaled()).fn
    interp.run(adjoint, [*[a.copy() for a in expected], TRIPS, *want], DIM, journal=journal)
    moved = [t.copy() for t in direction]
    interp.run(v.tangent_ir(WRT), [*[a.copy() for a in start], TRIPS, *moved], DIM)

    state = Launch()
    try:
        for entry in (v.forward(), v.recorded(WRT, v.journaled())):
            if entry is not None:
                got = [a.copy() for a in start]
                launch(entry, pack(got), state)
                assert_close(got, expected, 1e-12)
        for entry in (v.adjoint(WRT, v.journaled()), v.checkpointed(WRT, v.journaled())):
            grads = [w.copy() for w in weights]
            launch(entry, pack(got, tuple(grads)), state)
            assert_close(grads, want, 1e-9)
        ahead, tangents = [a.copy() for a in start], [t.copy() for t in direction]
        launch(v.tangent(WRT), pack(ahead, tuple(tangents)), state)
        assert_close(ahead, expected, 1e-12)
        assert_close(tangents, moved, 1e-9)
        assert_transposed(tangents, weights, direction, grads)
    finally:
        release(state)
