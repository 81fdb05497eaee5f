"""The corpus on a GPU, real or emulated: values and gradients are those of the CPU."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
import tests.corpus.test_gradients  # noqa: F401 (it registers cases)
from tests.backend.cuda.emulated import PLACES, place
from tests.corpus import oracle as o
from tests.corpus.case import CASES, Arr, Case

# The device's functions are exact to a few units in the last place, and its sums have an order of
# their own.
CLOSE = {False: {"rtol": 2e-4, "atol": 2e-5}, True: {"rtol": 1e-10, "atol": 1e-11}}
# What only emulation runs here, which has a C++ compiler to wait for.
FEW = 12
# Gradients that depend on the order of the threads.
REFUSED = {"extrema_of_vectors", "extrema_and_what_was_there"}


def cases() -> list[Any]:
    """Every kernel on each place; on a real one in both precisions."""
    out = []
    for where in PLACES:
        real = not isinstance(where, str)
        for k, c in enumerate(CASES):
            marks = [pytest.mark.gpu] if real else [pytest.mark.sweep] if k % FEW else []
            name = "cuda" if real else where
            for double in (False, True) if real else (k % 2 == 1,):
                name_of = f"{c.name}-{'float64' if double else 'float32'}-{name}"
                out.append(pytest.param(name, c, double, id=name_of, marks=marks))
    return out


@pytest.fixture
def there(request: pytest.FixtureRequest) -> Iterator[Any]:
    with place(request.param) as found:
        yield found


def run(c: Case, double: bool, device: Any) -> tuple[list[Any], list[Any]]:
    """What a taped launch leaves in arrays, and their gradients."""
    rng = np.random.default_rng(zlib.crc32(c.name.encode()))
    data = [o.data_of(a, rng) if isinstance(a, Arr) else a for a in c.args]
    weights = o.cotangents(c, rng)
    made = o.Run(c, c.make(wp.float64 if double else wp.float32), double, data)
    with wp.ScopedDevice(device):
        args = made.arrays(True)
        with wp.Tape() as tape:
            made.launch(args)
        values = [a.numpy() for a in args if isinstance(a, wp.array)]
        seeds = {args[i]: wp.array(w, dtype=args[i].dtype) for i, w in weights.items()}
        tape.backward(grads=seeds)
    return values, [args[i].grad.numpy() for i in o.inputs(c)]


@pytest.mark.parametrize(("there", "c", "double"), cases(), indirect=["there"])
def test_values_and_gradients(there: Any, c: Case, double: bool) -> None:
    expected = run(c, double, "cpu")
    try:
        found = run(c, double, there)
    except wp.LaunchError as e:
        if e.diagnostics[0].code != "E407":
            raise
        assert c.name in REFUSED, e
        return
    assert c.name not in REFUSED
    for what, some, others in zip(("value", "gradient"), found, expected, strict=True):
        for k, (a, b) in enumerate(zip(some, others, strict=True)):
            np.testing.assert_allclose(a, b, err_msg=f"{what} {k}", **CLOSE[double])
