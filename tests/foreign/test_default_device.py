"""Work of other frameworks on the CPU is checked there if a GPU is the default device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine
from engine.compile.cuda.gpu import Gpu
from engine.foreign import watching
from tests.backend.cuda.emulated import emulated

F = engine.array(dtype=float)


@pytest.fixture(autouse=True)
def on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whose memory is taken."""
    monkeypatch.setattr(Gpu, "allocate", lambda *args: pytest.fail("something is on the GPU"))
    with emulated() as (gpu, *_):
        monkeypatch.setattr(engine.config, "device", gpu.alias)
        yield


@engine.kernel
def squared(x: F, y: F):
    i = engine.tid()
    y[i] = x[i] * x[i]


def verdicts(watched: Any) -> set[str]:
    (found,) = watched.results()
    (launch,) = found.launches
    assert not launch.skipped, launch.skipped
    return {p.verdict for p in launch.pairs}


@pytest.mark.parametrize("name", ["elementwise", "of_a_struct", "quaternions"])
def test_launches_of_warp(name: str) -> None:
    wp = pytest.importorskip("warp", reason="warp-lang is not installed")
    from tests.foreign import warp_corpus

    kernel, dim, make = warp_corpus.RIGHT[name]
    with watching() as watched, wp.Tape():
        wp.launch(kernel, dim=dim, inputs=make(np.random.default_rng(3)), device="cpu")
    assert verdicts(watched) == {"pass"}


def test_kernels_that_jax_calls() -> None:
    jax = pytest.importorskip("jax", reason="jax is not installed")
    points = np.float32([[0.5, 0.5, 0.5], [0.5, 0.5, 1.5], [3.5, 0.5, 0.5]])
    grid = engine.HashGrid(4, 4, 4, device="cpu")
    grid.build(engine.array(points, dtype=engine.vec3, device="cpu"), 1.0)
    f = engine.jax_kernel(squared, enable_backward=True)
    with watching() as watched:
        gradient = jax.grad(lambda x: f(x)[0].sum())(jax.numpy.arange(1.0, 4.0))
    assert gradient.tolist() == [2.0, 4.0, 6.0]
    assert verdicts(watched) == {"pass"}
