"""The whole tape: what no single launch shows is seen, and right tapes raise no alarm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import WholeResult, check_tape, gradcheck_tape
from tests.unit.autograd.verdict_kernels import twice

F = wp.array(dtype=float)
N = 5


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def times(x: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.kernel
def total(y: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, wp.sin(y[i]))


@wp.kernel(enable_backward=False)
def mute(x: F, y: F):
    i = wp.tid()
    y[i] = 3.0 * x[i]


@wp.kernel
def logistic(x: F):
    i = wp.tid()
    x[i] = 3.9 * x[i] * (1.0 - x[i])


@wp.kernel
def layer(x: F, w: F, y: F):
    i = wp.tid()
    s = float(0.0)
    for k in range(x.shape[0]):
        s += w[i * x.shape[0] + k] * x[k]
    y[i] = wp.max(s, 0.0)


@wp.kernel
def count(x: F, n: wp.array(dtype=int)):
    i = wp.tid()
    wp.atomic_add(n, int(x[i] * 2.0), 1)


@wp.kernel
def by_count(x: F, n: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = x[i] * float(n[int(x[i] * 2.0)])


@wp.kernel
def interior(x: F, y: F):
    i = wp.tid() + 1
    y[i] = x[i - 1] * x[i + 1]


@wp.kernel
def summed(w: F, s: F):
    s[0] += w[wp.tid()] * w[wp.tid()]


@wp.kernel
def added(w: F, s: F):
    wp.atomic_add(s, 0, w[wp.tid()])


@wp.kernel
def greatest(w: F, s: F):
    wp.atomic_max(s, 0, w[wp.tid()])


@wp.kernel
def running(w: F, s: F, y: F):
    i = wp.tid()
    y[i] = wp.atomic_add(s, 0, w[i])


def ramp(n: int = N, grad: bool = True) -> Any:
    return wp.array(np.linspace(0.3, 1.7, n), dtype=float, requires_grad=grad)


def zeros(n: int = N, grad: bool = True) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=grad)


def whole(tape: Any, **given: Any) -> WholeResult:
    found = check_tape(tape, **given).whole
    assert found is not None
    return found


def test_a_right_chain_passes() -> None:
    x, y, w, z, loss = ramp(), zeros(), ramp(), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
        wp.launch(times, N, [y, w], [z])
        wp.launch(total, N, [z], [loss])
    found = whole(tape)
    assert (found.verdict, found.directional) == ("pass", 2)
    assert found.rel_error < 1e-6 and found.oracle != 0


def overwritten() -> tuple[Any, ...]:
    """Two products whose first factor is overwritten between them."""
    x, w, shared, y, z, loss = ramp(), ramp(), zeros(), zeros(), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [shared])
        wp.launch(times, N, [shared, w], [y])
        wp.launch(square, N, [y], [shared])
        wp.launch(times, N, [shared, w], [z])
        wp.launch(total, N, [z], [loss])
    return tape, loss, w


@pytest.fixture
def present(monkeypatch: pytest.MonkeyPatch) -> None:
    """Backward passes at present contents; what launches read is kept for checks all the same."""
    monkeypatch.setattr(wp.config, "overwrites", "present")
    monkeypatch.setattr(wp.config, "tape_snapshots", "eager")


@pytest.mark.usefixtures("present")
def test_an_overwritten_array_is_named_with_who_wrote_it() -> None:
    tape, *_ = overwritten()
    result = check_tape(tape)
    assert {p.verdict for x in result.launches for p in x.pairs} == {"pass"}
    assert result.whole is not None and result.whole.verdict == "fail" and not result.passed
    cause = result.whole.cause
    assert cause is not None
    assert (cause.kind, cause.launch, cause.kernel, cause.argument) == (
        "overwrite", 1, "times", "x",
    )  # fmt: skip
    assert (cause.other_launch, cause.other) == (2, "square")
    assert cause.site is not None and cause.site.file == __file__
    assert cause.other_site is not None and cause.other_site.line == cause.site.line + 1


def test_a_restored_backward_pass_is_right() -> None:
    tape, *_ = overwritten()
    assert whole(tape).verdict == "pass"


@pytest.mark.usefixtures("present")
def test_an_alarm_is_an_error_of_gradcheck_tape(capsys: Any) -> None:
    tape, *_ = overwritten()
    with pytest.raises(wp.GradcheckError, match="as a whole is wrong: overwrite") as error:
        gradcheck_tape(tape)
    assert "'square'" in str(error.value)
    assert "the tape as a whole: FAIL" in capsys.readouterr().out
    assert gradcheck_tape(tape, whitelist_kernels="times", show_summary=False)


def test_a_wrong_launch_and_a_right_composition() -> None:
    x, y, z = ramp(), zeros(), zeros()
    with wp.Tape() as tape:
        wp.launch(twice, N, [x], [y])
        wp.launch(square, N, [y], [z])
    found = whole(tape)
    assert found.verdict == "fail" and found.cause is None and "launches" in found.reason


def test_a_missing_requires_grad_is_named() -> None:
    x, w, y, z, loss = ramp(), ramp(), zeros(grad=False), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
        wp.launch(times, N, [y, w], [z])
        wp.launch(total, N, [z], [loss])
    cause = whole(tape).cause
    assert cause is not None
    assert (cause.kind, cause.kernel, cause.argument) == ("no gradient", "times", "x")


def test_the_first_of_a_chain_is_named_with_the_others() -> None:
    x, aside, loss = ramp(), zeros(grad=False), zeros(1)
    a, b, c = zeros(grad=False), zeros(grad=False), zeros(grad=False)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [a])
        wp.launch(square, N, [a], [b])
        wp.launch(square, N, [x], [aside])  # is no part of it: the loss does not depend on it
        wp.launch(times, N, [b, a], [c])
        wp.launch(total, N, [c], [loss])
    cause = whole(tape).cause
    assert cause is not None
    assert (cause.kind, cause.kernel, cause.launch, cause.variable) == (
        "no gradient", "square", 1, "a",
    )  # fmt: skip
    assert [name for _, name, _ in cause.further] == ["b", "a", "c"]
    assert cause.silent == (0, 1, 2, 3, 4)


def test_a_chain_begins_behind_what_has_a_gradient() -> None:
    x, a, b, c, loss = ramp(), zeros(grad=False), zeros(), zeros(grad=False), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [b])
        wp.launch(square, N, [b], [c])
        wp.launch(times, N, [c, a], [a])
        wp.launch(total, N, [c], [loss])
    cause = whole(tape).cause
    assert cause is not None and (cause.kernel, cause.variable) == ("total", "c")
    assert cause.further == () and 0 not in cause.silent


def test_constants_without_a_gradient_are_no_alarm() -> None:
    x, w, y, loss = ramp(), ramp(grad=False), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(times, N, [x, w], [y])
        wp.launch(total, N, [y], [loss])
    assert whole(tape).verdict == "pass"


def test_a_kernel_without_a_backward_pass_is_named() -> None:
    x, y, loss = ramp(), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(mute, N, [x], [y])
        wp.launch(total, N, [y], [loss])
    cause = whole(tape).cause
    assert cause is not None and (cause.kind, cause.kernel) == ("no backward", "mute")


@pytest.mark.host("arrays of NumPy that are views")
def test_a_write_outside_of_the_tape_is_named() -> None:
    x, y, loss = ramp(), zeros(), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
        y.numpy()[:] = np.clip(y.numpy(), 0.5, 1.0)
        wp.launch(total, N, [y], [loss])
    cause = whole(tape).cause
    assert cause is not None
    assert (cause.kind, cause.kernel, cause.argument) == ("outside", "total", "y")


def test_fills_and_copies_on_the_tape_are_right() -> None:
    x, y, z, loss = ramp(), zeros(), zeros(), zeros(1)
    with wp.Tape() as tape:
        for _ in range(2):
            loss.fill_(1.0)
            wp.launch(square, N, [x], [y])
            wp.copy(z, y)
            wp.launch(total, N, [z], [loss])
            y.fill_(2.0)
            wp.launch(total, N, [y], [loss])
    assert whole(tape).verdict == "pass"


@pytest.mark.host("memory of the host")
def test_two_arrays_on_one_memory() -> None:
    data = np.zeros(N, np.float32)
    x, loss = ramp(), zeros(1)
    one = wp.array(data, copy=False, requires_grad=True)
    other = wp.array(data, copy=False, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [one])
        wp.launch(total, N, [other], [loss])
    cause = whole(tape).cause
    assert cause is not None and (cause.kind, cause.kernel) == ("aliasing", "square")


def test_views_share_their_gradient() -> None:
    x, y, loss = ramp(2 * N), zeros(2 * N), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, N, [x[:N]], [y[N:]])
        wp.launch(square, N, [x[N:]], [y[:N]])
        wp.launch(total, 2 * N, [y], [loss])
    assert whole(tape).verdict == "pass"


def test_in_place_launches_and_chaos() -> None:
    x, loss = wp.array([0.1, 0.2, 0.3], dtype=float, requires_grad=True), zeros(1)
    with wp.Tape() as tape:
        for _ in range(60):
            wp.launch(logistic, 3, [x])
        wp.launch(total, 3, [x], [loss])
    found = whole(tape)
    assert found.verdict == "pass" and abs(found.ad) > 1e3


def test_kinks_everywhere() -> None:
    rng = np.random.default_rng(2)
    x = wp.array(rng.normal(size=40), dtype=float, requires_grad=True)
    loss = zeros(1)
    with wp.Tape() as tape:
        for _ in range(3):
            w = wp.array(rng.normal(size=1600), dtype=float, requires_grad=True)
            y = zeros(40)
            wp.launch(layer, 40, [x, w], [y])
            x = y
        wp.launch(total, 40, [x], [loss])
    assert whole(tape).verdict == "pass"


def test_integers_on_the_way() -> None:
    x, y = ramp(), zeros()
    n = wp.zeros(8, dtype=int)
    with wp.Tape() as tape:
        wp.launch(count, N, [x], [n])
        wp.launch(by_count, N, [x, n], [y])
    assert whole(tape).verdict == "pass"


def test_the_unwritten_part_of_an_output_is_an_input() -> None:
    x, y, loss = ramp(), wp.ones(N, dtype=float, requires_grad=True), zeros(1)
    with wp.Tape() as tape:
        wp.launch(interior, N - 2, [x], [y])
        wp.launch(total, N, [y], [loss])
    assert whole(tape).verdict == "pass"


@pytest.mark.parametrize("kernels", [[summed], [added], [greatest], [added, summed]])
@pytest.mark.parametrize("seeded", [False, True])
def test_the_start_of_a_sum_alone_is_nothing_to_check(kernels: list[Any], seeded: bool) -> None:
    w, loss = ramp(grad=False), zeros(1)
    with wp.capturing() as capture:
        with wp.Tape() as tape:
            for kernel in kernels:
                wp.launch(kernel, N, [w], [loss])
        if seeded:
            tape.backward(loss)
    for one in (tape, capture.tapes[0]):
        found = check_tape(one)
        assert found.whole is not None and not found.passed
        assert found.whole.verdict == "skipped"
        assert found.whole.reason == "no array that it reads requires a gradient"
    with pytest.raises(wp.EngineError, match="E404"):
        gradcheck_tape(tape, show_summary=False)


def test_the_start_of_a_sum_that_the_tape_reads_is_an_input() -> None:
    """By another launch, by a copy, or as what the addition found there."""
    w, s, y, loss = ramp(grad=False), zeros(1), zeros(1), zeros(1)
    with wp.Tape() as squared:
        wp.launch(added, N, [w], [s])
        wp.launch(square, 1, [s], [y])
    with wp.Tape() as copied:
        wp.launch(added, N, [w], [s])
        wp.copy(y, s)
    with wp.Tape() as before:
        wp.launch(running, N, [w, s], [zeros()])
    with wp.Tape() as computed:
        wp.launch(square, 1, [s], [loss])
        wp.launch(added, N, [w], [loss])
    for tape in (squared, copied, before, computed):
        assert whole(tape).verdict == "pass"


def test_a_wrong_path_to_the_start_of_a_sum_is_seen() -> None:
    """The start value depends on an input, of which the sum's own launch knows nothing."""
    x, y, w, loss = ramp(1), zeros(1, grad=False), ramp(grad=False), zeros(1)
    with wp.Tape() as tape:
        wp.launch(square, 1, [x], [y])
        wp.launch(square, 1, [y], [loss])
        wp.launch(added, N, [w], [loss])
    found = whole(tape)
    assert found.verdict == "fail" and found.cause is not None
    assert found.cause.kind == "no gradient"


def test_a_recorded_function_is_not_known() -> None:
    x, y = ramp(), zeros()
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
    tape.record_func(lambda: None, [y])
    found = whole(tape)
    assert found.verdict == "skipped" and "record_func" in found.reason


def test_what_is_lost_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "tape_snapshots", "off")
    x, y = ramp(), zeros()
    with wp.Tape() as tape:
        wp.launch(square, N, [x], [y])
    found = whole(tape)
    assert found.verdict == "skipped" and "is lost" in found.reason


def test_a_part_of_the_tape_is_no_whole() -> None:
    tape, *_ = overwritten()
    found = check_tape(tape, kernels=["square"]).whole
    assert found is not None and found.verdict == "skipped" and "only some" in found.reason


def test_captured_at_the_time_of_the_backward_pass() -> None:
    """The program goes on: an update of the weights is none of the gradient's business."""
    with wp.capturing() as capture:
        x, y, loss = ramp(), zeros(), zeros(1)
        tape = wp.Tape()
        with tape:
            wp.launch(square, N, [x], [y])
            wp.launch(total, N, [y], [loss])
        tape.backward(loss)
        x.fill_(7.0)
        late = wp.Tape()
        with late:
            wp.launch(square, N, [x], [y])
            wp.launch(total, N, [y], [loss])
        x.fill_(9.0)
        late.backward(loss)
    right, wrong = (check_tape(t).whole for t in capture.tapes)
    assert right is not None and right.verdict == "pass"
    assert wrong is not None and wrong.verdict == "fail"
    cause = wrong.cause
    assert cause is not None
    assert (cause.kind, cause.kernel, cause.other) == ("overwrite", "square", "")


@wp.kernel
def reciprocal(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 1.0 / x[i]


def test_a_backward_pass_that_is_not_finite_has_a_cause() -> None:
    """Each launch is right by itself: what was written since makes the whole infinite."""
    with wp.capturing() as capture:
        x, y, z, tape = ramp(), zeros(), zeros(), wp.Tape()
        with tape:
            wp.launch(square, N, [x], [y])
            wp.launch(reciprocal, N, [y], [z])
        y.zero_()
        tape.backward(grads={z: wp.ones_like(z)})
    (found,) = (check_tape(t).whole for t in capture.tapes)
    assert found is not None and found.verdict == "nan" and found.cause is not None
    cause = found.cause
    assert (cause.kind, cause.kernel, cause.argument) == ("overwrite", "reciprocal", "x")


def test_captured_with_values_restored_beside_present_ones() -> None:
    """What the tape overwrote is restored, what came from elsewhere is not: the check agrees."""
    with wp.capturing() as capture, pytest.warns(UserWarning, match="mixes both"):
        for step in (0.0, 0.5):
            tape, loss, _ = overwritten()
            x = tape.records[0].args[0]
            x.assign(x.numpy() + np.where(np.arange(x.size) < 2, step, 0.0))
            tape.backward(loss)
    right, wrong = (check_tape(t).whole for t in capture.tapes)
    assert right is not None and right.verdict == "pass"
    assert wrong is not None and wrong.verdict == "fail" and wrong.cause is not None
    assert (wrong.cause.kind, wrong.cause.kernel, wrong.cause.other) == ("overwrite", "square", "")


def test_the_user_sees_nothing_of_it() -> None:
    tape, loss, w = overwritten()
    tape.backward(loss)
    arrays = [a for r in tape.records for a in r.arrays]
    before = [(a.numpy().tobytes(), a.grad.numpy().tobytes()) for a in arrays]
    whole(tape)
    assert before == [(a.numpy().tobytes(), a.grad.numpy().tobytes()) for a in arrays]


@wp.kernel
def strong(x: F, u: F, k: F, y: F):
    i = wp.tid()
    # The derivative by x is zero, but for rounding: of either sign, by the order of operations.
    wp.atomic_add(y, 0, 1.0e5 * (u[i] + (x[i] * k[0]) * k[1] - (x[i] * k[1]) * k[0]))


@wp.kernel
def faint(z: F, y: F):
    i = wp.tid()
    wp.atomic_add(y, 0, 1.0e-8 * wp.sin(z[i]))


def test_what_rounding_left_of_a_zero_is_no_alarm_beside_faint_gradients() -> None:
    rng = np.random.default_rng(0)
    x, u, z = (
        wp.array(rng.standard_normal(n), dtype=float, requires_grad=True) for n in (8, 8, 300)
    )
    k = wp.array([0.1, 0.3], dtype=float)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(strong, 8, [x, u, k], [y])
        wp.launch(faint, 300, [z], [y])
    tape.backward(loss=y)
    assert whole(tape).verdict == "pass"
