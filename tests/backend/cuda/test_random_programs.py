"""Random programs on a GPU, real or emulated: every form means what the interpreter says.

Threads of these programs read and write the same elements: they run one after the other here, and
backward from the last one.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from engine.compile.pipeline import Variants, prefetch
from engine.ir import interp
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.cuda.held import Held, hold, ran
from tests.backend.test_random_programs import FORMS, TRIPS, WRT, _journaled, assert_close
from tests.property.programs import ARRAYS, DIM, SIZE, program

COUNT = int(os.environ.get("ENGINE_GPU_PROGRAMS", "48"))
TOGETHER = 4  # programs of one test; emulated, where a C++ compiler takes its time, one
Arrays = list[np.ndarray[Any, Any]]


def expected(v: Variants, start: Arrays, weights: Arrays, direction: Arrays) -> list[Arrays]:
    """Values, gradients and tangents."""
    values = [a.copy() for a in start]
    journal = interp.Journal()
    interp.run(v.recorded_ir(WRT, v.journaled()) or v.ir, [*values, TRIPS], DIM, journal=journal)
    slopes = [w.copy() for w in weights]
    adjoint = v.adjoint_ir(WRT, v.journaled()).fn
    interp.run(adjoint, [*[a.copy() for a in values], TRIPS, *slopes], DIM, journal=journal)
    moved = [t.copy() for t in direction]
    interp.run(v.tangent_ir(WRT), [*[a.copy() for a in start], TRIPS, *moved], DIM)
    return [values, slopes, moved]


def read(held: list[Held]) -> Arrays:
    return [h.host() for h in held]


def cases() -> list[Any]:
    out = []
    for where in PLACES:
        name, marks = (where, []) if isinstance(where, str) else ("cuda", [pytest.mark.gpu])
        step = 1 if name == "emulated" else TOGETHER
        for k in range(0, COUNT, step):
            more = [pytest.mark.sweep] if name == "emulated" and k else []
            seeds = range(k, k + step)
            out.append(pytest.param(name, seeds, id=f"{k}-{name}", marks=[*marks, *more]))
    return out


@pytest.mark.parametrize(("where", "seeds"), cases())
def test_random_programs(where: str, seeds: range) -> None:
    with place(where) as device:
        programs = {k: Variants(program(k)) for k in seeds}
        backend: Any = device.backend
        prefetch([
            (backend, v, form, WRT, _journaled(v, form))  # type: ignore[misc]
            for v in programs.values() for form in FORMS
        ])  # fmt: skip
        for seed, v in programs.items():
            compared(device, seed, v)


def compared(device: Any, seed: int, v: Variants) -> None:
    rng = np.random.default_rng(seed)
    start = [rng.uniform(-1.5, 1.5, SIZE) for _ in ARRAYS]
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    direction = [rng.standard_normal(SIZE) for _ in ARRAYS]
    values, slopes, moved = expected(v, start, weights, direction)

    def one(form: Any, thread: int, *arguments: Any, **more: Any) -> Any:
        entry = v.entry(device.backend, form, WRT, _journaled(v, form))
        span = (thread, thread + 1)
        return ran(device, entry, DIM, *arguments, threads=span, **more)

    got, trips = hold(device, start), np.int64(TRIPS)
    for form in ("forward", "recorded"):
        got = hold(device, start)
        left = [one(form, k, *got, trips) for k in range(DIM)]
        assert_close(read(got), values, 1e-12)
    for form in ("adjoint", "checkpointed"):
        grads = hold(device, weights)
        for k in reversed(range(DIM)):
            one(form, k, *got, trips, *grads, journal=left[k].journal)
        assert_close(read(grads), slopes, 1e-9)
    ahead, tangents = hold(device, start), hold(device, direction)
    for k in range(DIM):
        one("tangent", k, *ahead, trips, *tangents)
    assert_close(read(ahead), values, 1e-12)
    assert_close(read(tangents), moved, 1e-9)
