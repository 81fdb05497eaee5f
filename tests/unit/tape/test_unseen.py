"""Captured sequences with private tapes: the same bits as single launches, and no records."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import EngineError
from engine.tape.capture import capturing
from tests.unit.runtime.sequences import ONE_CALL
from tests.unit.tape.unseen_sequences import (
    bits_of,
    captured,
    checks,
    moves,
    run,
    scale,
    training,
)

pytestmark = [
    *ONE_CALL,
    pytest.mark.usefixtures("alone"),
    pytest.mark.cold("counts what is captured natively"),
]


def test_it_is_taken() -> None:
    w, loss, iteration = training()
    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    v, _, again = training()
    for _ in range(5):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


def test_its_writes_are_announced() -> None:
    """Memory knows that it has changed."""
    w, _, iteration = training()
    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    version = w.storage.version
    run(graph)
    assert w.storage.version > version


def _held() -> list[Callable[[Any], Any]]:
    def in_a_closure(tape: Any) -> Any:
        return lambda: tape

    def bound(tape: Any) -> Any:
        return tape.backward

    return [lambda t: t, lambda t: [t], weakref.ref, in_a_closure, bound, lambda t: {id(t): t}]


@pytest.mark.parametrize("hold", _held())
def test_a_tape_that_somebody_has_keeps_its_records(hold: Callable[[Any], Any]) -> None:
    w, _, iteration = training()
    kept: list[Any] = []

    def held() -> None:
        kept.append(hold(iteration()))

    graph = captured(held)
    run(graph)
    assert graph._fused is None
    kept.clear()
    gc.collect()
    run(graph, 20)
    assert graph._fused is not None  # nobody has it any more
    v, _, again = training()
    for _ in range(25):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


def test_a_tape_in_the_caller_is_seen() -> None:
    _, _, iteration = training()
    with wp.ScopedCapture() as capture:
        tape = iteration()
    graph = capture.graph
    assert graph is not None
    run(graph, 9)
    assert graph._fused is None
    assert [r.name for r in tape.records] == ["scale", "total"]


def test_listeners_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    w, _, iteration = training()
    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    wp.config.print_launches = True
    try:
        wp.capture_launch(graph)
    finally:
        wp.config.print_launches = False
    assert capsys.readouterr().out.count("scale") == 1
    run(graph, 8)
    assert graph._fused is not None
    with capturing() as capture:
        wp.capture_launch(graph)
    assert capture.launches == 3
    v, _, again = training()
    for _ in range(15):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


@pytest.mark.filterwarnings("ignore:no gradient flows")
@pytest.mark.parametrize(
    "name", ["gradient", "flag", "off", "retained", "limit", "verified", "present", "same"]
)
def test_what_changes_between_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for a tape that somebody has."""
    ways: list[Any] = []
    kept: list[Any] = []
    for keep in (None, kept):
        w, loss, iteration = training()
        grad = w.grad
        graph = captured(iteration, keep)
        run(graph)
        assert (graph._fused is None) == (keep is kept)
        ways.append((graph, w, (w, loss, grad)))
    for _, w, _ in ways:
        if name == "gradient":
            w.grad = wp.zeros(33, dtype=float)
        elif name == "flag":
            w.requires_grad = False
        elif name == "retained":
            w.retain_grad = True
    if name == "limit":
        monkeypatch.setattr(wp.config, "stack_limit_bytes", 1 << 20)
    elif name == "off":
        monkeypatch.setattr(wp.config, "enable_backward", False)
    elif name == "verified":
        monkeypatch.setattr(wp.config, "verify_fp", True)
    elif name == "present":
        monkeypatch.setattr(wp.config, "overwrites", "present")
    found = []
    for graph, w, arrays in ways:
        said = []
        for _ in range(9):
            try:
                wp.capture_launch(graph)
            except EngineError as e:
                said.append(e.diagnostics[0].code)
        found.append((said, bits_of([w, *arrays])))
    assert found[0] == found[1]
    made_anew = name in ("gradient", "flag", "limit", "same")
    assert (ways[0][0]._fused is not None) == made_anew


def test_a_cotangent_that_is_exchanged() -> None:
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y = wp.zeros(20, dtype=float, requires_grad=True)
    given = {y: wp.ones_like(x)}

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 0.0])
        tape.backward(grads=given)

    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    x.grad.zero_()
    wp.capture_launch(graph)
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.numpy()), rtol=1e-6)
    given[y].fill_(3.0)
    x.grad.zero_()
    wp.capture_launch(graph)
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.cos(x.numpy()), rtol=1e-6)
    given[y] = wp.full(20, 2.0)
    x.grad.zero_()
    wp.capture_launch(graph)
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos(x.numpy()), rtol=1e-6)


def test_other_tapes_have_what_they_read() -> None:
    """A sequence that nobody sees announces what it writes."""
    w, _, iteration = training()
    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    z = wp.zeros(33, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(scale, 33, [w, z, 0.25])
    was = wp.clone(w).numpy()
    w.grad.zero_()
    wp.capture_launch(graph)
    assert not np.array_equal(wp.clone(w).numpy(), was)
    np.testing.assert_array_equal(tape.records[0].inputs_at_record()[0], was)


def test_failures(capfd: pytest.CaptureFixture[str]) -> None:
    x = wp.array(np.ones(8, np.float32), requires_grad=True)
    y = wp.zeros(8, dtype=float, requires_grad=True)

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(checks, 8, [x, y, 2.0])
        tape.backward(grads={y: x})

    graph = captured(iteration)
    run(graph)
    assert graph._fused is not None
    x.assign(np.arange(8, dtype=np.float32))
    x.grad.zero_()
    for _ in range(3):
        with pytest.raises(EngineError, match="E210"):
            wp.capture_launch(graph)
        assert not x.grad.numpy().any()  # what follows has not run
    x.fill_(3.0)
    wp.capture_launch(graph)
    np.testing.assert_array_equal(y.numpy(), np.full(8, 6.0, np.float32))
    np.testing.assert_array_equal(x.grad.numpy(), np.full(8, 6.0, np.float32))


def test_vectors_and_many_steps() -> None:
    n = 300
    xs = [wp.array(np.ones((5, 3), np.float32), dtype=wp.vec3, requires_grad=True)]
    xs += [wp.zeros(5, dtype=wp.vec3, requires_grad=True) for _ in range(n)]
    seed = wp.ones_like(xs[0])

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            for k in range(n):
                wp.launch(moves, 5, [xs[k], xs[k + 1], 1.01])
        tape.backward(grads={xs[-1]: seed})

    iteration()
    once = xs[0].grad.numpy().copy()
    graph = captured(iteration)
    for _ in range(6):
        xs[0].grad.zero_()
        wp.capture_launch(graph)
        np.testing.assert_array_equal(xs[0].grad.numpy(), once)
    assert graph._fused is not None


def test_large_launches_are_cut_as_ever() -> None:
    n = 600_000
    x = wp.array(np.linspace(0, 1, n, dtype=np.float32), requires_grad=True)
    y = wp.zeros(n, dtype=float, requires_grad=True)
    seed = wp.ones_like(x)

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, n, [x, y, 0.0])
        tape.backward(grads={y: seed})

    graph = captured(iteration)
    for _ in range(5):
        x.grad.zero_()
        wp.capture_launch(graph)
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.numpy()), rtol=1e-6)
