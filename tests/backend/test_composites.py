"""Composites as compiled code: values of every overload, and adjoints, against the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from engine.compile.backend import Entry, Limits
from engine.compile.cpu import CPU
from engine.compile.pipeline import Variants, prefetch
from engine.ir import interp
from engine.lang.types import ArrayType, is_float, scalar_of, shape_of
from tests.overloads import OVERLOADS, SMOOTH, Overload, kernel_of, sample, seeded
from tests.sweeps import reduced, selected

THREADS = 5
BATCH = 40  # kernels that are compiled together
NONE: frozenset[str] = frozenset()
# Their adjoints take the compiler seconds each; those of the smaller ones are the same code.
LARGE = ("curlnoise_4", "curlnoise_3")
SLOW = ("noise_4", "pnoise_3", "pnoise_4")
ADJOINTS = [o for o in SMOOTH if o.composite.func.__name__ not in LARGE]


def usual(cases: list[Overload]) -> list[Any]:
    """One overload of each composite, over another float type from one to the next."""
    groups: dict[Any, list[Overload]] = {}
    for o in cases:
        groups.setdefault(o.composite.func, []).append(o)
    chosen = {group[k % 3 * len(group) // 3] for k, group in enumerate(groups.values())}
    return reduced(cases, lambda o: o in chosen and o.composite.func.__name__ not in SLOW)


def batches(cases: list[Overload], form: str) -> Any:
    """The compiled kernels, made in groups when first asked for."""
    made: dict[Overload, tuple[Variants, frozenset[str]]] = {}

    def get(o: Overload) -> tuple[Variants, frozenset[str], Entry]:
        if o not in made:
            first = cases.index(o) // BATCH * BATCH
            group = {}
            for x in cases[first : first + BATCH]:
                kernel, wrt = kernel_of(x)
                group[x] = (Variants(kernel), wrt)
            prefetch([(CPU, v, form, wrt, NONE) for v, wrt in group.values()])  # type: ignore[misc]
            made.clear()
            made.update(group)
        v, wrt = made[o]
        return v, wrt, v.entry(CPU, form, wrt, NONE)  # type: ignore[arg-type]

    return get


@pytest.fixture(scope="module")
def forward(request: pytest.FixtureRequest) -> Any:
    return batches(selected(request, OVERLOADS), "forward")


@pytest.fixture(scope="module")
def adjoint(request: pytest.FixtureRequest) -> Any:
    return batches(selected(request, ADJOINTS), "adjoint")


def call(entry: Entry, arrays: Sequence[Any]) -> None:
    fields = [
        x
        for a in arrays
        for x in (a.ctypes.data, a.shape[0], a.strides[0])
    ]  # fmt: skip
    done = CPU.run(entry, (THREADS,), np.array(fields, np.int64).tobytes(), Limits(0, 0))
    assert done.error == 0


def memory(o: Overload) -> list[Any]:
    """Arguments for all threads, and blank results."""
    rng = seeded(o)
    rows = [sample(o, rng) for _ in range(THREADS)]
    given = [
        np.array(rows[0][k] if isinstance(t, ArrayType) else [row[k] for row in rows])
        for k, t in enumerate(o.types)
    ]
    results = o.function.results
    return [*given, *(np.zeros((THREADS, *shape_of(t)), scalar_of(t).numpy) for t in results)]


def close(got: Sequence[Any], want: Sequence[Any], units: float) -> None:
    for a, b in zip(got, want, strict=True):
        if a.dtype.kind == "f":
            eps = float(np.finfo(a.dtype).eps)
            scale = max(1.0, float(np.abs(b.astype(float)).max(initial=0)))
            np.testing.assert_allclose(
                a.astype(float), b.astype(float), rtol=0, atol=units * eps * scale
            )
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("overload", usual(OVERLOADS), ids=str)
def test_values(overload: Overload, forward: Any) -> None:
    v, _, entry = forward(overload)
    want = memory(overload)
    got = [a.copy() for a in want]
    interp.run(v.ir, want, THREADS)
    call(entry, got)
    close(got, want, 64)


@pytest.mark.parametrize("overload", usual(ADJOINTS), ids=str)
def test_adjoints(overload: Overload, adjoint: Any) -> None:
    v, wrt, entry = adjoint(overload)
    given = memory(overload)
    rng = seeded(overload)
    seeds = [
        rng.normal(size=a.shape) if p.name in wrt and p.name.startswith("r") else np.zeros_like(a)
        for p, a in zip(v.ir.params, given, strict=True)
        if p.name in wrt
    ]
    want = [s.copy() for s in seeds]
    interp.run(v.adjoint_ir(wrt, NONE).fn, [*given, *want], THREADS)
    call(entry, [*given, *seeds])
    close(seeds, want, 4096)
    assert any(np.any(s) for s in seeds) and all(is_float(p.type) for p in v.ir.params
                                                 if p.name in wrt)  # fmt: skip
