"""Captured sequences whose tapes nobody else has: the same bits as one by one, and no records."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import schedule
from engine.diagnostics import EngineError
from engine.runtime import graphs
from engine.runtime.base import ArrayBase
from engine.runtime.guards import Guard
from engine.tape.capture import capturing
from tests.unit.runtime.test_short_launches import NATIVE, way

pytestmark = [
    pytest.mark.skipif(NATIVE is None, reason="the launcher cannot be made here"),
    pytest.mark.host("the CPU's sequences, in one call of compiled code"),
]
F, V = wp.array(dtype=float), wp.array(dtype=wp.vec3)


@wp.kernel
def scale(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * s + wp.sin(x[i])


@wp.kernel
def product(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * y[i] * s


@wp.kernel
def total(x: F, y: F, s: float):
    i = wp.tid()
    wp.atomic_add(y, 0, x[i] * x[i] * s)


@wp.kernel
def largest(x: F, y: F, s: float):
    i = wp.tid()
    wp.atomic_max(y, 0, x[i] * s)


@wp.kernel
def descend(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = y[i] - s * x[i]


@wp.kernel
def checks(x: F, y: F, s: float):
    i = wp.tid()
    wp.expect_eq(x[i], x[0])
    y[i] = x[i] * s


@wp.kernel
def fewer(left: wp.array(dtype=int)):
    left[0] = left[0] - 1


@wp.kernel
def moves(x: V, y: V, s: float):
    i = wp.tid()
    y[i] = x[i] * s + wp.vec3(1.0, 2.0, 3.0)


KERNELS = (scale, product, total, largest, descend)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As a program that has the launcher, and in which no other test has left anything."""
    monkeypatch.setattr(Guard, "made", False)
    monkeypatch.setattr(ArrayBase, "retains", False)
    monkeypatch.setattr(schedule, "LEAST", 400_000)  # also under --parts
    with way(monkeypatch, "native"):
        yield


def _fitted(seed: int) -> tuple[list[Any], Callable[[], list[Any]]]:
    """Arrays, and a random iteration over them, which gives its tapes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    arrays = [wp.array(rng.normal(size=n).astype(np.float32), requires_grad=bool(rng.integers(4)))
              for _ in range(5)]  # fmt: skip
    arrays.append(wp.zeros(1, dtype=float, requires_grad=True))
    loss, plan = arrays[-1], []
    for _ in range(int(rng.integers(1, 3))):
        plan.append(("clear", loss))
        block = []
        for _ in range(int(rng.integers(1, 5))):
            kernel = KERNELS[int(rng.integers(4))]
            apart = seed % 3 > 0  # else what is read is overwritten, as often as not
            x = arrays[int(rng.integers(3 if apart else 5))]
            y = arrays[int(rng.integers(3 if apart else 0, 5))]
            kernel = scale if apart and kernel is product else kernel
            y = loss if kernel in (total, largest) else y
            block.append((kernel, x, y, float(rng.normal())))
        block.append((total, block[-1][2] if block[-1][2] is not loss else arrays[0], loss, 0.5))
        plan.append(("tape", block, bool(rng.integers(5)), bool(rng.integers(2))))
        given = [a for a in arrays[:5] if a.requires_grad]
        if given and rng.integers(3):
            plan.append(("step", given[int(rng.integers(len(given)))]))

    def iteration() -> list[Any]:
        tapes = []
        for what, *rest in plan:
            if what == "clear":
                rest[0].zero_()
            elif what == "step":
                (a,) = rest
                wp.launch(descend, n, [a.grad, a, 0.01])
            else:
                block, back, zero = rest
                tape = wp.Tape()
                with tape:
                    for kernel, x, y, s in block:
                        wp.launch(kernel, n, [x, y, s])
                if back:
                    tape.backward(loss)
                if zero:
                    tape.zero()
                tapes.append(tape)
        return tapes

    return arrays, iteration


def _bits(arrays: list[Any]) -> list[bytes]:
    grads = [a.grad for a in arrays if a.grad is not None]
    return [wp.clone(a).numpy().tobytes() for a in (*arrays, *grads)]


def _captured(iteration: Callable[[], Any], kept: list[Any] | None = None) -> graphs.Graph:
    with wp.ScopedCapture() as capture:
        found = iteration()
    if kept is not None:
        kept.append(found)
    assert capture.graph is not None
    return capture.graph


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_random_iterations(first: int) -> None:
    taken = 0
    for seed in range(first, first + 20):
        arrays, iteration = _fitted(seed)
        others, same = _fitted(seed)
        seen, again = _fitted(seed)
        graph = _captured(same)
        kept: list[Any] = []
        looked = _captured(again, kept)
        for _ in range(6):
            try:
                iteration()
                failed = False
            except EngineError:
                failed = True
            for g in (graph, looked):
                if failed:
                    with pytest.raises(EngineError):
                        wp.capture_launch(g)
                else:
                    wp.capture_launch(g)
            if failed:
                break
            assert _bits(others) == _bits(arrays), seed
            assert _bits(seen) == _bits(arrays), seed
        assert looked._unseen is None
        taken += graph._unseen is not None
    assert taken >= 3


def _training() -> tuple[Any, Any, Callable[[], Any]]:
    w = wp.array(np.linspace(-1, 1, 33, dtype=np.float32), requires_grad=True)
    y = wp.zeros(33, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration() -> Any:
        loss.zero_()
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 33, [w, y, 0.5])
            wp.launch(total, 33, [y, loss, 1.0])
        tape.backward(loss)
        wp.launch(descend, 33, [w.grad, w, 0.01])
        tape.zero()
        return tape

    return w, loss, iteration


def _run(graph: graphs.Graph, count: int = 5) -> None:
    for _ in range(count):
        wp.capture_launch(graph)


def test_it_is_taken() -> None:
    w, loss, iteration = _training()
    graph = _captured(iteration)
    _run(graph)
    assert graph._unseen is not None
    v, _, again = _training()
    for _ in range(5):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


def _held() -> list[Callable[[Any], Any]]:
    def in_a_closure(tape: Any) -> Any:
        return lambda: tape

    def bound(tape: Any) -> Any:
        return tape.backward

    return [lambda t: t, lambda t: [t], weakref.ref, in_a_closure, bound, lambda t: {id(t): t}]


@pytest.mark.parametrize("hold", _held())
def test_a_tape_that_somebody_has_keeps_its_records(hold: Callable[[Any], Any]) -> None:
    w, _, iteration = _training()
    kept: list[Any] = []

    def held() -> None:
        kept.append(hold(iteration()))

    graph = _captured(held)
    _run(graph)
    assert graph._unseen is None
    kept.clear()
    gc.collect()
    _run(graph, 20)
    assert graph._unseen is not None  # nobody has it any more
    v, _, again = _training()
    for _ in range(25):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


class Halving(wp.Tape):
    def backward(self, loss: Any = None, grads: Any = None) -> None:
        super().backward(loss, grads)
        for r in self.records:
            for a in r.arrays:
                if a.grad is not None:
                    a.grad.assign(0.5 * a.grad.numpy())


ORDERS = ("fbuz", "zfbu", "fzbu", "bf", "bfz", "fbbz", "ffbz", "efb", "bef", "zefb", "fbzz",
          "fbufbz", "fub", "zbf")  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", [wp.Tape, Halving])
def test_orders_of_what_tapes_do(order: str, kind: Any) -> None:
    """As it is without a capture, whether somebody has the tape or not."""

    def made() -> tuple[list[Any], Callable[[], Any]]:
        x = wp.array(np.linspace(0, 1, 12, dtype=np.float32), requires_grad=True)
        y = wp.zeros(12, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)

        def iteration() -> Any:
            loss.zero_()
            tape = kind()
            for step in order:
                if step in "fe":
                    with tape:
                        if step == "f":
                            wp.launch(scale, 12, [x, y, 0.5])
                            wp.launch(total, 12, [y, loss, 1.0])
                elif step == "b":
                    tape.backward(loss)
                elif step == "z":
                    tape.zero()
                else:
                    wp.launch(descend, 12, [x.grad, x, 0.01])
            return tape

        return [x, y, loss], iteration

    def replayed(iteration: Callable[[], Any], kept: list[Any] | None) -> Callable[[], Any]:
        graph = _captured(iteration, kept)
        return lambda: wp.capture_launch(graph)

    ways = [made() for _ in range(3)]
    kept: list[Any] = []
    runs = [ways[0][1], replayed(ways[1][1], kept), replayed(ways[2][1], None)]
    if kind is Halving:  # NumPy sees what is there when it is captured
        runs = runs[1:]
        ways = ways[1:]
    for _ in range(8):
        for run in runs:
            run()
        bits = [_bits(arrays) for arrays, _ in ways]
        assert bits.count(bits[0]) == len(bits)


def test_a_tape_that_was_used_before() -> None:
    x, y = (wp.array(np.ones(6, np.float32), requires_grad=True) for _ in range(2))
    q = wp.array(np.ones(6, np.float32), requires_grad=True)
    kept = []
    for keep in (False, True):
        tape = wp.Tape()
        tape.backward(grads={q: wp.ones_like(q)})

        def iteration(tape: Any = tape) -> None:
            with tape:
                wp.launch(scale, 6, [x, y, 1.0])
            tape.backward(grads={y: x})
            wp.launch(descend, 6, [y, q.grad, -1.0])
            tape.zero()

        q.grad.zero_()
        graph = _captured(iteration)
        if keep:
            kept.append(tape)
        del tape, iteration
        found = []
        for _ in range(5):
            wp.capture_launch(graph)
            found.append(wp.clone(q.grad).numpy().tolist())
        kept.append(found)
    assert kept[0] == kept[2]


def test_a_tape_in_a_loop() -> None:
    """Each turn makes it anew."""
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    left = wp.zeros(1, dtype=int)
    seed = wp.ones_like(x)

    def turn() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 4, [x, y, 2.0])
        tape.backward(grads={y: seed})
        wp.launch(fewer, 1, [left])

    with wp.ScopedCapture() as capture:
        wp.capture_while(left, turn)
    for count in (3, 1, 4):
        left.fill_(count)
        x.grad.zero_()
        wp.capture_launch(capture.graph)
        np.testing.assert_allclose(x.grad.numpy(), count * (2.0 + np.cos(1.0)), rtol=1e-6)


def test_a_launch_that_is_recorded_afterwards() -> None:
    x = wp.array(np.ones(4, np.float32), requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    seed = wp.ones_like(x)

    def iteration() -> None:
        tape = wp.Tape()
        wp.launch(scale, 4, [x, y, 2.0])
        tape.record_launch(scale, 4, inputs=[x, y, 2.0])
        tape.backward(grads={y: seed})

    graph = _captured(iteration)
    for k in range(1, 5):
        wp.capture_launch(graph)
        np.testing.assert_allclose(x.grad.numpy(), k * (2.0 + np.cos(1.0)), rtol=1e-6)


def test_a_tape_in_the_caller_is_seen() -> None:
    _, _, iteration = _training()
    with wp.ScopedCapture() as capture:
        tape = iteration()
    graph = capture.graph
    assert graph is not None
    _run(graph, 9)
    assert graph._unseen is None
    assert [r.name for r in tape.records] == ["scale", "total"]


def test_listeners_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    w, _, iteration = _training()
    graph = _captured(iteration)
    _run(graph)
    assert graph._unseen is not None
    wp.config.print_launches = True
    try:
        wp.capture_launch(graph)
    finally:
        wp.config.print_launches = False
    assert capsys.readouterr().out.count("scale") == 1
    _run(graph, 8)
    assert graph._unseen is not None
    with capturing() as capture:
        wp.capture_launch(graph)
    assert capture.launches == 3
    v, _, again = _training()
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
        w, loss, iteration = _training()
        grad = w.grad
        graph = _captured(iteration, keep)
        _run(graph)
        assert (graph._unseen is None) == (keep is kept)
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
        found.append((said, _bits([w, *arrays])))
    assert found[0] == found[1]
    made_anew = name in ("gradient", "flag", "limit", "same")
    assert (ways[0][0]._unseen is not None) == made_anew


def test_a_cotangent_that_is_exchanged() -> None:
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y = wp.zeros(20, dtype=float, requires_grad=True)
    given = {y: wp.ones_like(x)}

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 0.0])
        tape.backward(grads=given)

    graph = _captured(iteration)
    _run(graph)
    assert graph._unseen is not None
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


def test_inputs_that_are_overwritten_before_the_pass() -> None:
    """The adjoint reads what the launch read."""
    x = wp.array(np.full(9, 0.5, np.float32), requires_grad=True)
    y = wp.zeros(9, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)

    def iteration() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 9, [x, y, 0.0])
            wp.launch(total, 9, [y, loss, 1.0])
        wp.launch(descend, 9, [y, x, 1.0])  # off the tape
        tape.backward(loss)

    before = []
    for captured in (False, True):
        x.fill_(0.5)
        x.grad.zero_()
        run: Any = iteration
        if captured:
            graph = _captured(iteration)
            run = lambda: wp.capture_launch(graph)  # noqa: E731
        for _ in range(5):
            run()
        before.append((x.numpy().tobytes(), x.grad.numpy().tobytes()))
        if captured:
            assert graph._unseen is None
    assert before[0] == before[1]


def test_other_tapes_have_what_they_read() -> None:
    """A sequence that nobody sees announces what it writes."""
    w, _, iteration = _training()
    graph = _captured(iteration)
    _run(graph)
    assert graph._unseen is not None
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

    graph = _captured(iteration)
    _run(graph)
    assert graph._unseen is not None
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


def test_others_are_left_as_they_are() -> None:
    """Sequences with operations that only records can do."""
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(20, dtype=float, requires_grad=True) for _ in range(2))
    flag = wp.zeros(1, dtype=int)

    def with_a_function() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
            tape.record_func(lambda: None, [x])
        tape.backward(grads={y: z})

    def with_a_copy() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
            wp.copy(z, y)
        tape.backward(grads={z: x})

    def with_numpy() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        tape.backward(grads={y: np.ones(20, np.float32)})

    def with_a_reset() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        tape.backward(grads={y: z})
        tape.reset()

    def with_a_branch() -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 1.0])
        wp.capture_if(flag, on_true=lambda: wp.launch(descend, 20, [y, x, 0.1]))
        tape.backward(grads={y: z})

    for what in (with_a_function, with_a_copy, with_numpy, with_a_reset, with_a_branch):
        graph = _captured(what)
        for _ in range(5):
            x.grad.zero_()
            wp.capture_launch(graph)
        assert graph._unseen is None, what.__name__


def test_a_sequence_in_a_sequence() -> None:
    w, _, iteration = _training()
    inner = _captured(iteration)
    outer = _captured(lambda: [wp.capture_launch(inner) for _ in range(3)])
    for _ in range(4):
        wp.capture_launch(outer)
    assert inner._unseen is not None
    v, _, again = _training()
    for _ in range(12):
        again()
    assert w.numpy().tobytes() == v.numpy().tobytes()


def test_a_tape_that_recorded_before() -> None:
    x = wp.array(np.linspace(0, 1, 20, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(20, dtype=float, requires_grad=True) for _ in range(2))
    seed = wp.ones_like(x)

    def capture() -> graphs.Graph:
        tape = wp.Tape()
        with tape:
            wp.launch(scale, 20, [x, y, 0.0])

        def rest() -> None:
            with tape:
                wp.launch(scale, 20, [y, z, 0.0])
            tape.backward(grads={z: seed})

        return _captured(rest)

    graph = capture()
    for _ in range(5):
        x.grad.zero_()
        wp.capture_launch(graph)
        expected = np.cos(x.numpy()) * np.cos(np.sin(x.numpy()))
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-5)


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
    graph = _captured(iteration)
    for _ in range(6):
        xs[0].grad.zero_()
        wp.capture_launch(graph)
        np.testing.assert_array_equal(xs[0].grad.numpy(), once)
    assert graph._unseen is not None


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

    graph = _captured(iteration)
    for _ in range(5):
        x.grad.zero_()
        wp.capture_launch(graph)
    np.testing.assert_allclose(x.grad.numpy(), np.cos(x.numpy()), rtol=1e-6)
