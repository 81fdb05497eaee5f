"""`config.overwrites`, the memory that it costs, and its warning of values of two times."""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import TapeError, ad, config
from engine.tape.restoration import present
from tests.unit.tape.overwriting import (
    cube,
    floats,
    gather,
    long_loop,
    overwritten,
    seeded,
    silent,
    times,
    twice,
)

# ---- the other values of the setting


def test_present(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "overwrites", "present")
    tape, x, y = overwritten(then=lambda x: x.fill_(2.0))
    assert tape.memory.inputs == 0
    with silent():
        tape.backward(grads=seeded(y))
    assert x.grad.list() == [12, 12, 12]


def test_recorded_without_copies_and_run_with() -> None:
    config.overwrites = "present"
    try:
        x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
        tape = wp.Tape()
        with tape:
            wp.launch(cube, 3, [x], [y])
            wp.launch(cube, 3, [y], [z])
    finally:
        config.overwrites = "restore"
    tape.backward(grads=seeded(z))
    np.testing.assert_allclose(x.grad.numpy(), 9 * np.array([1.0, 2, 3]) ** 8)
    with tape:
        x.fill_(1.0)
    with pytest.raises(TapeError, match=r"E401[\s\S]*'x' of kernel 'cube'[\s\S]*\"present\""):
        tape.backward(grads=seeded(z))


def again(x: Any) -> None:
    """Overwrites x, reads it, and overwrites it: two values are saved."""
    x.fill_(7.0)
    wp.launch(cube, 3, [x], [floats(0, 0, 0)])
    x.zero_()


def test_warn_says_it_once_an_array_and_tape(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "overwrites", "warn")
    tape, x, y = overwritten(then=again)
    words = r"'x' of kernel 'cube' at .*was overwritten by 'fill_' at .*: 24 bytes.*Warp"
    with pytest.warns(UserWarning, match=words) as told:
        tape.backward(grads=seeded(y))
    assert len(told) == 1 and told[0].filename == __file__
    with silent():
        tape.backward(grads=seeded(y))
    with pytest.warns(UserWarning, match=words):
        other, _, z = overwritten(then=again)
        other.backward(grads=seeded(z))


def test_error_comes_before_anything_is_changed(monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "overwrites", "error")
    tape, x, y = overwritten(then=lambda x: x.fill_(7.0))
    y.grad.fill_(5.0)
    with pytest.raises(TapeError, match="which 'fill_' overwrote later") as caught:
        tape.backward(grads=seeded(y))
    (problem,) = caught.value.diagnostics
    assert (
        problem.code == "E408"
        and problem.span is not None
        and problem.span.file.endswith("overwriting.py")
    )
    assert (x.list(), x.grad.list(), y.grad.list()) == ([7] * 3, [0] * 3, [5] * 3)


@pytest.mark.parametrize("setting", ["error", "warn"])
def test_what_no_adjoint_reads_may_be_overwritten(setting: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(config, "overwrites", setting)
    x, w, y, z = floats(1, 2, 3), floats(4, 5, 6, grad=False), floats(0, 0, 0), floats(0, 0, 0)
    v = floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(twice, 3, [x], [y])  # linear
        wp.launch(twice, 3, [y], [v])
        y.fill_(7.0)
        wp.launch(times, 3, [v, w], [z])  # needs w alone
        v.fill_(8.0)
        wp.launch(cube, 3, [v], [v])  # saves what it overwrites itself
    with silent():
        tape.backward(grads=seeded(z))
    assert x.grad.list() == [16, 20, 24]  # 2 * 2 * w


@pytest.mark.parametrize("value", ["restored", "", None, 1])
def test_another_value_is_refused(value: Any, monkeypatch: Any) -> None:
    tape, _, y = overwritten(then=lambda x: x.fill_(7.0))
    monkeypatch.setattr(config, "overwrites", value)
    with pytest.raises(TapeError, match=r"E401[\s\S]*config.overwrites is .*[\s\S]*'restore'"):
        tape.backward(grads=seeded(y))
    with pytest.raises(TapeError, match=r"config\.overwrites"):
        overwritten(then=lambda x: None)


# ---- memory


@pytest.mark.parametrize(
    ("name", "value"), [("tape_snapshots", "off"), ("snapshot_limit_bytes", 0)]
)
def test_lost_contents(name: str, value: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(config, name, value)
    tape, x, y = overwritten(then=lambda x: x.fill_(7.0))
    with pytest.raises(TapeError, match=rf"E401[\s\S]*'x' of kernel 'cube'[\s\S]*{name}"):
        tape.backward(grads=seeded(y))
    assert (x.list(), x.grad.list(), y.grad.list()) == ([7] * 3, [0] * 3, [0] * 3)
    other = wp.Tape()
    with other:
        wp.launch(cube, 3, [x], [y])
    other.backward(grads=seeded(y))  # nothing was overwritten
    assert x.grad.list() == [147] * 3


def test_copies_are_counted() -> None:
    x, y = wp.ones(1000, requires_grad=True), wp.zeros(1000, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for k in range(4):
            wp.launch(cube, 1000, [x], [y])
            x.fill_(float(k))
    assert tape.memory.inputs == 4 * 4000
    tape.backward(grads=seeded(y))
    assert tape.memory.inputs == 4 * 4000
    x.fill_(0.5)  # not on the tape: what the tape left there is kept too
    assert tape.memory.inputs == 5 * 4000


def test_nothing_is_kept_where_nothing_is_overwritten() -> None:
    arrays = [floats(1, 2, 3) for _ in range(5)]
    with wp.Tape() as tape:
        for x, y in pairwise(arrays):
            wp.launch(cube, 3, [x], [y])
    assert tape.memory.inputs == 0 and not tape._overwrites.changes
    tape.backward(grads=seeded(arrays[-1]))
    assert tape.memory.inputs == 0


def test_a_pass_that_fails_leaves_arrays_as_they_were(monkeypatch: Any) -> None:
    x, y, z = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
    with wp.Tape() as tape:
        wp.launch(long_loop, 3, [x, y, 100_000])
        wp.launch(cube, 3, [x], [z])
        x.fill_(7.0)
        y.fill_(8.0)
    monkeypatch.setattr(config, "stack_limit_bytes", 512)
    with pytest.raises(wp.LaunchError, match="E209"):
        tape.backward(grads={y: np.ones(3), z: np.ones(3)})
    assert present(x).tolist() == [7] * 3 and present(y).tolist() == [8] * 3


def test_the_form_of_an_adjoint_that_saves_less_reads_no_more(monkeypatch: Any) -> None:
    for k in (long_loop, cube, gather):
        v = k.plan.variants
        for wrt in (frozenset({"x", "y"}), frozenset({"y"})):
            spare = ad.read_params(v.checkpointed_ir(wrt, frozenset()))
            assert spare & {"x", "y", "at"} <= v.adjoint_reads(wrt, frozenset())


# ---- values of two times


def chain() -> tuple[Any, ...]:
    """y = x**3 is restored, z is not: z = w * y, then y is overwritten."""
    x, w, y, z = floats(1, 2, 3), floats(1, 1, 1), floats(0, 0, 0), floats(0, 0, 0)
    tape = wp.Tape()
    with tape:
        wp.launch(cube, 3, [x], [y])
        wp.launch(times, 3, [y, w], [z])
        y.zero_()
    return tape, x, w, y, z


def test_values_of_two_times_are_told_with_names() -> None:
    tape, x, _, _, z = chain()
    x.fill_(2.0)
    with pytest.warns(UserWarning) as told:
        tape.backward(grads=seeded(z))
    (found,) = told
    assert found.filename == __file__
    for words in ("'x' of kernel 'cube' at", "was changed outside", "'x' of kernel 'times' at",
                  "overwritten by 'zero_' at", "Record the tape again"):  # fmt: skip
        assert words in str(found.message)


@pytest.mark.parametrize(
    "change",
    [
        lambda x, w, y, z: None,
        lambda x, w, y, z: w.fill_(3.0),  # what is restored does not depend on it
        lambda x, w, y, z: (x.fill_(9.0), x.assign([1, 2, 3])),  # as it was
        lambda x, w, y, z: y.fill_(4.0),  # computed by the tape, and restored
        lambda x, w, y, z: z.fill_(4.0),
        lambda x, w, y, z: x.numpy(),
    ],
)
def test_values_of_one_time_are_no_alarm(change: Any) -> None:
    tape, x, w, y, z = chain()
    change(x, w, y, z)
    with silent():
        tape.backward(grads=seeded(z))
    assert x.grad.list() == (3.0 * w.numpy() * np.array([1.0, 4.0, 9.0])).tolist()
    assert w.grad.list() == [1.0, 8.0, 27.0]


def test_an_input_in_place_that_starts_anew() -> None:
    """A state that the tape changes in place: put back to its start it is the same input."""
    x, y = floats(1, 2, 3), floats(0, 0, 0)
    tape = wp.Tape()

    def run() -> None:
        for _ in range(2):
            wp.launch(cube, 3, [x], [y])
            wp.launch(times, 3, [x, y], [x])

    with tape:
        run()
    # Put back, or used for something else; run again from another start; all as it was.
    for start, again, told in (
        ([1, 2, 3], False, False), ([1, 1, 3], False, False), ([1, 1, 3], True, True),
        ([1, 2, 3], True, False),
    ):  # fmt: skip
        x.assign(start)
        if again:
            run()
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            tape.backward(grads=seeded(y))
        assert bool(found) == told


def test_a_copied_input_that_changes() -> None:
    """What is restored came from x by a copy, and no adjoint reads x itself."""
    x, state, y = floats(1, 2, 3), floats(0, 0, 0), floats(0, 0, 0)
    tape = wp.Tape()
    with tape:
        wp.copy(state, x)
        wp.launch(cube, 3, [state], [y])
        state.zero_()
    with silent():
        tape.backward(grads=seeded(y))
    x.fill_(3.0)
    with pytest.warns(UserWarning, match="the source of a copy at"):
        tape.backward(grads=seeded(y))


def test_a_linear_input_in_place_that_changes() -> None:
    """No adjoint reads x, and launches overwrite it: what they left there is known all the same."""
    x, y, *ends = (floats(1, 2, 3) for _ in range(4))
    tape = wp.Tape()

    def run() -> None:
        for z in ends:
            wp.launch(twice, 3, [x], [y])
            wp.launch(cube, 3, [y], [z])
            wp.launch(twice, 3, [x], [x])

    with tape:
        run()
    with silent():
        tape.backward(grads={z: np.ones(3) for z in ends})
    x.fill_(3.0)
    run()
    with pytest.warns(UserWarning, match="'x' of kernel 'twice'"):
        tape.backward(grads={z: np.ones(3) for z in ends})
