"""Cotangents that the last adjoint takes from where they lie: the same bits as if copied before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import pool, schedule, seeded
from engine.compile.pipeline import Variants
from engine.runtime import blank, events
from engine.runtime.guards import Guard
from engine.tape import seeding
from tests.unit.tape.seeded import (
    OTHERS,
    TAKEN,
    as_before,
    climbs,
    grads,
    guarded,
    plain,
    recorded_pass,
    same,
)

pytestmark = [
    pytest.mark.whole,
    pytest.mark.usefixtures("small"),
    pytest.mark.cold("says by itself how launches run"),
]


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", TAKEN, ids=lambda k: k.key)
def test_gradients_are_the_same_bits(
    kernel: Any, threads: int, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wp.config, "num_threads", threads)
    expected = as_before(monkeypatch, kernel, TAKEN[kernel])
    assert not taken
    same(grads(kernel, TAKEN[kernel]), expected)
    assert taken, "the cotangent was copied"


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda k: k.key)
def test_others_get_a_copy(kernel: Any, taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = as_before(monkeypatch, kernel, OTHERS[kernel])
    same(grads(kernel, OTHERS[kernel]), expected)
    assert not taken


def test_memory_of_a_gradient_that_is_zero_is_left_alone(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(plain, (3000,))
    recorded.backward(grads={y: c})
    recorded.backward(grads={y: c})
    assert taken[-1] is True
    assert not y.grad.numpy().any()


def test_a_gradient_that_others_may_write_is_not_known(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(plain, (3000,))
    recorded.backward(grads={y: c})
    seen = y.grad.numpy()
    seen[5] = 3.0
    recorded.backward(grads={y: c})
    assert taken[-1] is False
    assert not y.grad.numpy().any()


def test_a_gradient_that_was_written_is_not_known(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(guarded, (3000,))
    recorded.zero()
    before = wp.clone(x.grad).numpy().copy()
    wp.copy(y.grad, wp.array(np.full(3000, 7.0, np.float32)))
    recorded.backward(grads={y: c})
    assert taken[-1] is False
    kept = y.grad.numpy()
    untouched = (np.arange(3000) % 3 == 1) | (x.numpy() < 0.0)
    np.testing.assert_array_equal(kept[untouched], c.numpy()[untouched])
    assert not kept[~untouched].any()
    expected = np.where(untouched, 0.0, c.numpy() * np.float32(0.75)) + before
    np.testing.assert_array_equal(x.grad.numpy(), expected.astype(np.float32))


def test_what_threads_leave_goes_back_to_a_gradient_that_was_zero(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(guarded, (3000,))
    blank.note_blank(y.grad)  # as after `Tape.zero`, for large ones
    recorded.backward(grads={y: c})
    assert taken[-1] is True
    untouched = (np.arange(3000) % 3 == 1) | (x.numpy() < 0.0)
    np.testing.assert_array_equal(wp.clone(y.grad).numpy()[untouched], c.numpy()[untouched])


@pytest.mark.parametrize("near", [256, 1024, 1 << 17])
@pytest.mark.parametrize("limit", [30_000, 16_000])
def test_threads_that_save_too_much_go_on_in_the_other_form(
    limit: int, near: int, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = as_before(monkeypatch, climbs, (1100,))
    asked: list[str] = []
    entry = Variants.entry

    def noted(self: Variants, backend: Any, form: Any, *rest: Any) -> Any:
        asked.append(form)
        return entry(self, backend, form, *rest)

    monkeypatch.setattr(Variants, "entry", noted)
    monkeypatch.setattr(seeded, "NEAR", near)
    monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
    same(grads(climbs, (1100,)), expected)
    assert True in taken
    assert "checkpointed" in asked


@wp.kernel
def leaves(x: wp.array(dtype=float), y: wp.array(dtype=float), s: float):
    i = wp.tid()
    if i % 2 == 0:
        return
    v = x[i]
    n = int(0)  # noqa: RUF046  # it changes
    if i % 550 > 500:
        n = 5000
    for _ in range(n):
        v = wp.sin(v) + x[i] * s
    y[i] = v


def test_what_is_left_after_threads_went_on(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradient is not zero then, though the threads that did not end left nothing else."""
    monkeypatch.setattr(schedule, "PARTS", 2)
    few = np.zeros(1100, np.float32)
    few[2:200:2] = few[552:750:2] = 3.0  # which nobody takes
    found = []
    for way in (1 << 60, 1):
        monkeypatch.setattr(seeding, "VAST", way)
        x = wp.array(np.linspace(0, 1, 1100, dtype=np.float32), requires_grad=True)
        y = wp.zeros(1100, dtype=float, requires_grad=True)
        with wp.Tape() as recorded:
            wp.launch(leaves, 1100, [x, y, 0.5])
        none = np.zeros_like(few)
        for limit, c in ((16_000, few), (0, none), (16_000, few), (0, few), (16_000, none)):
            monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
            recorded.backward(grads={y: c})
            found += [np.array(wp.clone(a).numpy()) for a in (x.grad, y.grad)]
    same(found[:10], found[10:])
    assert taken


def test_a_cotangent_that_is_a_gradient_is_copied(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def grads() -> list[np.ndarray[Any, Any]]:
        recorded, x, y, _ = recorded_pass(plain, (3000,))
        x.grad.fill_(2.0)
        taken.clear()
        recorded.backward(grads={y: x.grad})  # is added to, where it is read
        return [np.array(x.grad.numpy())]

    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        expected = grads()
    found = grads()
    assert not taken
    same(found, expected)


def test_launches_before_it_run_backward_too(taken: list[bool]) -> None:
    grads(plain, (3000,))  # compiles the adjoint that takes it
    taken.clear()
    x = wp.array(np.linspace(0, 1, 3000, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(3000, dtype=float, requires_grad=True) for _ in range(2))
    recorded = wp.Tape()
    with recorded:
        wp.launch(plain, dim=3000, inputs=[x, y, 0.0])
        wp.launch(plain, dim=3000, inputs=[y, z, 0.0])
    for k in range(1, 4):
        recorded.backward(grads={z: np.ones(3000, np.float32)})
        np.testing.assert_allclose(x.grad.numpy(), 4 * k * x.numpy() ** 3, rtol=2e-6)
    assert len(taken) == 3


def test_no_memory_near_by(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(step: int, reach: int) -> Any:
        raise MemoryError

    monkeypatch.setattr(seeded, "_Room", none)
    monkeypatch.setattr(seeded, "_rooms", [])
    expected = as_before(monkeypatch, plain, (3000,))
    same(grads(plain, (3000,)), expected)
    assert taken and not any(taken)


def test_places_that_others_have(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = as_before(monkeypatch, plain, (3000,))
    room = seeded._room(1 << 16, 1 << 20)
    assert room is not None
    room.taken[:] = [1] * len(room.taken)
    try:
        same(grads(plain, (3000,)), expected)
    finally:
        room.taken[:] = [0] * len(room.taken)
    assert True in taken
    recorded, _, y, c = recorded_pass(plain, (3000,))
    recorded.backward(grads={y: c})
    assert not any(room.taken)


def test_gradients_that_are_retained(taken: list[bool]) -> None:
    recorded, x, y, c = recorded_pass(plain, (3000,))
    y.retain_grad = True
    taken.clear()
    recorded.backward(grads={y: c})
    np.testing.assert_array_equal(y.grad.numpy(), c.numpy())
    assert not taken


def test_who_watches_sees_the_cotangent_being_written(taken: list[bool]) -> None:
    recorded, _, y, c = recorded_pass(plain, (3000,))
    told: list[tuple[int, int]] = []

    class Watcher(events.Observer):
        def writing(self, memory: Any, lo: int, hi: int) -> None:
            told.append((lo, hi))

    taken.clear()
    with events.observing(Watcher()):
        recorded.backward(grads={y: c})
    assert (y.grad.lo, y.grad.hi) in told
    assert not taken


def test_large_gradients_as_they_are(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(Guard, "made", False)
    passes: list[bool] = []
    run = seeded.run
    monkeypatch.setattr(seeded, "run", lambda *args: (passes.append(args[-1].blank), run(*args))[1])
    n = 2_200_003
    x = wp.array(np.linspace(-1, 1, n, dtype=np.float32), requires_grad=True)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    recorded = wp.Tape()
    with recorded:
        wp.launch(plain, dim=n, inputs=[x, y, 0.0])
    c = wp.array(np.linspace(1, 2, n, dtype=np.float32))
    for _ in range(4):
        recorded.backward(grads={y: c})
        np.testing.assert_array_equal(x.grad.numpy(), 2 * c.numpy() * x.numpy())
        recorded.zero()
    assert passes[-2:] == [True, True]  # cleared, and so known to be zero
    assert not y.grad.numpy().any()


def test_pool_is_there() -> None:
    assert pool.pool() is not None  # else nothing above would be asked of it
