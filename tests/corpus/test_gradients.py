"""Every corpus kernel in both modes and precisions, against float64 differences."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import jvp
from tests.corpus import control, exact, loops, memory, parts, rotations, values  # noqa: F401 (they register cases)
from tests.corpus import oracle as o
from tests.corpus.case import CASES
from tests.sweeps import reduced

IDS = [c.name for c in CASES]


@pytest.fixture(scope="module")
def tapes() -> dict[bool, Any]:
    """The tapes of `gradients`, by precision."""
    return {}


class Found(dict[tuple[str, bool], Any]):
    """By case and precision. Those that a GPU refuses are missing, which skips tests of them."""

    def __missing__(self, key: tuple[str, bool]) -> Any:
        pytest.skip("refused on a GPU: threads have an order")


@pytest.fixture(scope="module")
def gradients(tapes: dict[bool, Any]) -> dict[tuple[str, bool], Any]:
    """Every case recorded on one tape for each precision, so that adjoints compile together.

    All kernels are there before the first is launched, so that these compile together, too.
    """
    out = Found()
    for double in (False, True):
        cases, made = list(CASES), None
        while made is None:
            tape = tapes[double] = wp.Tape()
            try:
                made = recorded(cases, double, tape)
            except wp.LaunchError as e:
                if wp.get_device().is_cpu or e.diagnostics[0].code != "E407":
                    raise
                refused = [c for c in cases if f"'{c.name}_adjoint'" in e.diagnostics[0].message]
                assert len(refused) == 1
                cases.remove(refused[0])
        for run, args, weights in made:
            grads = {i: args[i].grad.numpy().astype(np.float64) for i in o.inputs(run.case)}
            out[run.case.name, double] = (run, grads, weights, args)
    return out


def recorded(cases: Any, double: bool, tape: Any) -> list[Any]:
    """Runs cases and the adjoints of all."""
    seeds, made, runs = {}, [], []
    for case in cases:
        rng = np.random.default_rng(zlib.crc32(case.name.encode()))
        data = [o.data_of(a, rng) if isinstance(a, o.Arr) else a for a in case.args]
        weights = o.cotangents(case, rng)
        kernel = case.make(wp.float64 if double else wp.float32)
        runs.append((o.Run(case, kernel, double, data), weights))
    with tape:
        for run, weights in runs:
            args = run.arrays(True)
            run.launch(args)
            for i, w in weights.items():
                seeds[args[i]] = wp.array(w, dtype=args[i].dtype)
            made.append((run, args, weights))
    tape.backward(grads=seeds)
    return made


@pytest.fixture(scope="module")
def pushed(gradients: Any, tapes: dict[bool, Any]) -> dict[tuple[str, bool], float]:
    """<w, J v> of every case, by one forward pass over each tape."""
    out = Found()
    for double, tape in tapes.items():
        of_tape = [(k, g) for k, g in gradients.items() if k[1] is double]
        seeds = {args[i]: v for (name, _), (run, _, _, args) in of_tape
                 for i, v in direction(run).items()}  # fmt: skip
        moved = jvp(tape, tangents=seeds)
        for key, (_, _, weights, args) in of_tape:
            out[key] = sum(float((moved[args[i]].numpy() * w).sum()) for i, w in weights.items())
    return out


def direction(run: o.Run) -> dict[int, np.ndarray]:
    """A tangent for each input of a case, the same in both precisions."""
    rng = np.random.default_rng(zlib.crc32(run.case.name.encode()) + 1)
    return {i: rng.standard_normal(run.data[i].shape) for i in o.inputs(run.case)}


@pytest.mark.parametrize("name", IDS)
def test_float64_gradient_matches_differences(name: str, gradients: Any) -> None:
    run, grads, weights, _ = gradients[name, True]
    for i, expected in o.differences(run, weights).items():
        np.testing.assert_allclose(grads[i], expected, rtol=1e-6, atol=1e-7 * scale(expected))


@pytest.mark.parametrize("name", IDS)
def test_float32_gradient_matches_float64(name: str, gradients: Any) -> None:
    _, single, *_ = gradients[name, False]
    _, double, *_ = gradients[name, True]
    for i, expected in double.items():
        np.testing.assert_allclose(single[i], expected, rtol=2e-4, atol=2e-5 * scale(expected))


@pytest.mark.parametrize("name", IDS)
def test_forward_mode_agrees_with_reverse_mode(name: str, gradients: Any, pushed: Any) -> None:
    for double, rtol in ((True, 1e-11), (False, 2e-4)):
        run, grads, _, _ = gradients[name, double]
        terms = [grads[i] * v for i, v in direction(run).items()]
        expected = sum(float(t.sum()) for t in terms)
        size = sum(float(np.abs(t).sum()) for t in terms)
        assert pushed[name, double] == pytest.approx(expected, rel=rtol, abs=rtol * (size + 1e-3))


# Each is a compiler run of its own, for the same code as that of the tape.
@pytest.mark.parametrize("name", reduced(IDS, lambda name: zlib.crc32(name.encode()) % 4 == 0))
def test_jvp_of_a_launch_is_that_of_a_tape(name: str, gradients: Any, pushed: Any) -> None:
    run, _, weights, _ = gradients[name, True]
    args = run.arrays(False)
    before = [a.numpy().copy() for a in args if isinstance(a, wp.array)]
    moved = jvp(run.kernel, run.case.dim, args, tangents=direction(run))
    for a, was in zip([a for a in args if isinstance(a, wp.array)], before, strict=True):
        np.testing.assert_array_equal(a.numpy(), was)
    got = sum(float((moved[i].numpy() * w).sum()) for i, w in weights.items())
    assert got == pytest.approx(pushed[name, True], rel=1e-12, abs=1e-13)


def scale(x: np.ndarray) -> float:
    return float(np.abs(x).max(initial=0.0)) + 1e-3
