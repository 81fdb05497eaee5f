"""Adjoints that are made wrong: in the way that they say, and only as long as they are."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Mutation, Trial
from engine.autograd.mutation.mutants import NONE
from tests.backend.cuda.emulated import PLACES, place
from tests.unit.autograd import verdict_kernels as k
from tests.unit.autograd.verdict_kernels import floats, recorded


def test_mutations_do_what_they_say() -> None:
    x = np.array([0.3, 0.6, 0.9])
    tape = recorded(k.waves, floats(x), wp.zeros(3, dtype=float, requires_grad=True))
    right = np.cos(x.astype(np.float32))
    record = tape.records[0]

    def gradient(mutation: Mutation) -> Any:
        variants = record.plan.variants
        grad = record.values[0].grad
        trial.spoiled.mutate(mutation)
        tape.zero()
        tape.backward(grads={record.values[1]: np.ones(3, np.float32)})
        trial.spoiled.mutate(NONE)
        assert record.plan.variants is variants
        return grad.numpy().copy()

    with Trial(tape) as trial:
        assert np.allclose(gradient(NONE), right, rtol=1e-6)
        assert np.allclose(gradient(Mutation("", 1.5)), 1.5 * right, rtol=1e-6)
        assert np.allclose(gradient(Mutation("", 3.0, thread=1)), right * [1, 3, 1], rtol=1e-6)
        assert np.allclose(gradient(Mutation("", shift=1)), np.roll(right, 1), rtol=1e-6)
        assert trial.changes(Mutation("", 1.0001)) and not trial.changes(Mutation("", 1.0))
        assert {p.verdict for p in trial.check().pairs} == {"pass"}
        assert {p.verdict for p in trial.check(Mutation("", 1.0001)).pairs} == {"fail"}
    assert np.allclose(gradient(NONE), right, rtol=1e-6)


@pytest.mark.parametrize("where", PLACES)
def test_what_a_gpu_is_told_lies_where_it_can_read(where: str) -> None:
    @wp.kernel
    def waves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[wp.tid()] = wp.sin(x[wp.tid()])

    with place(where) as device, wp.ScopedDevice(device):
        x, y = floats([1.0, 2.0, 3.0]), floats([0.0, 0.0, 0.0])
        with wp.Tape() as tape:
            wp.launch(waves, dim=3, inputs=[x, y])
        with Trial(tape) as trial:
            (at,) = struct.unpack_from("<q", trial.spoiled.bound("adjoint"))
            assert trial.spoiled.table.ptr == at and trial.spoiled.table.pinned
            for factor in (1.0, 2.0, 3.0):
                trial.spoiled.mutate(Mutation("", factor))
                tape.zero()
                tape.backward(grads={y: np.ones(3, np.float32)})
                trial.spoiled.mutate(NONE)
                assert np.allclose(x.grad.numpy(), factor * np.cos([1, 2, 3]), rtol=1e-5)


@pytest.mark.parametrize("launches", [0, 2])
def test_a_trial_has_one_launch(launches: int) -> None:
    x, y = floats([1.0]), floats([0.0])
    with wp.Tape() as tape:
        for _ in range(launches):
            wp.launch(k.waves, dim=1, inputs=[x, y])
    with pytest.raises(ValueError, match="one launch"):
        Trial(tape)
