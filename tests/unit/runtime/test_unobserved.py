"""Launches of which nobody is told: any form, on memory that the caller keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.runtime import events
from engine.runtime.launch import run
from engine.runtime.launch_errors import KernelStopped
from engine.runtime.plan_parts import FormRun
from tests.unit.runtime.test_events import Heard

F = wp.array(dtype=float)
WRT = frozenset({"x", "y"})
NONE = frozenset[str]()


@wp.kernel
def scale(x: F, a: float, y: F):
    i = wp.tid()
    y[i] = a * x[i] * y[i] * y[i]


@wp.kernel
def gather(x: F, k: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = x[k[i]]


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def test_it_runs_any_form_on_numpy_arrays() -> None:
    plan = scale.plan
    x, y = floats(1, 2), floats(3, 4)
    blob = plan.packed([x, 2.0, y])
    journaled = plan.variants.journaled()
    journal = run(plan.unobserved((2,), blob, "recorded", WRT, journaled)).journal
    np.testing.assert_array_equal(y, [18, 64])
    assert journal is not None
    gx, gy = floats(0, 0), floats(1, 10)
    both = blob + plan.params[0].packed(gx) + plan.params[2].packed(gy)
    run(plan.unobserved((2,), both, "adjoint", WRT, journaled, journal=journal))
    np.testing.assert_array_equal(gx, [18, 320])  # a y y
    np.testing.assert_array_equal(gy, [12, 320])  # 2 a x y
    y[:] = 3, 4
    tx, ty = floats(1, 0), floats(0, 1)
    both = blob + plan.params[0].packed(tx) + plan.params[2].packed(ty)
    run(plan.unobserved((2,), both, "tangent", WRT))
    np.testing.assert_array_equal(ty, [18, 32])


def test_nobody_is_told_and_neither_a_tape_nor_a_graph_takes_it() -> None:
    plan, heard = scale.plan, Heard()
    x, y = floats(1, 2), floats(3, 4)
    bound = plan.unobserved((2,), plan.packed([x, 1.0, y]))
    with events.observing(heard), wp.Tape() as tape:
        run(bound)
        assert y.tolist() == [9, 32]
        with wp.ScopedCapture():
            run(bound)  # at once: what comes next reads what it wrote
            assert y.tolist() == [81, 2048]
    assert heard.said == [] and tape.records == []


def test_what_runs_is_resolved_once() -> None:
    plan = scale.plan
    adjoint = plan.executable("adjoint", WRT, NONE)
    assert plan.executable("adjoint", WRT, NONE) is adjoint
    assert plan.executable("adjoint", frozenset("x"), NONE) is not adjoint
    # As written it is the same for whatever gradients.
    forward = plan.executable("forward")
    assert plan.executable("forward", WRT, WRT) is forward
    assert plan.running(FormRun(forward), (2,), b"") == plan.unobserved((2,), b"")


def test_it_says_how_it_runs() -> None:
    plan = scale.plan
    x, y = floats(1, 1, 1, 1), floats(2, 2, 2, 2)
    blob = plan.packed([x, 1.0, y])
    seen: list[Any] = []
    run(plan.unobserved((4,), blob, threads=(1, 3), done=seen.append))
    assert y.tolist() == [2, 4, 4, 2] and seen == [None]
    with pytest.raises(KernelStopped, match="E209"):
        run(plan.unobserved((4,), blob, "recorded", WRT, plan.variants.journaled(),
                            journal_limit=1))  # fmt: skip


@pytest.mark.parametrize(("last", "inside"), [(1, True), (2, False), (1 << 20, False)])
def test_it_looks_for_accesses_outside_of_arrays(last: int, inside: bool) -> None:
    plan = gather.plan
    x, y = floats(5, 6), floats(0, 0)
    blob = plan.packed([x, np.array([0, last], np.int32), y])
    heard = Heard()
    with events.observing(heard):
        assert run(plan.unobserved((2,), blob, look=True)).inside is inside
    assert y.tolist() == [5, 6 if inside else 0] and heard.said == []


def test_a_proof_that_accesses_are_inside_runs_nothing() -> None:
    plan = scale.plan
    x, y = floats(1, 2), floats(3, 4)
    executable = plan.executable("forward")
    blob = plan.packed([x, 2.0, y])
    assert executable.is_inside((2,), blob) and executable.is_inside((0,), blob)
    assert not executable.is_inside((3,), blob)
    assert y.tolist() == [3, 4]
