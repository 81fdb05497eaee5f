"""Of long programs not every launch is looked at by itself, and nothing is missed by it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import CheckInterrupted, Experience, TapeResult, check_tape
from engine.autograd.launch import check as launch_check
from engine.autograd.launch.experience import EACH, ONE_OF
from engine.autograd.tape import end_to_end
from engine.autograd.tape import whole as tape_whole

F = wp.array(dtype=float)
COUNT = EACH + ONE_OF


@wp.func
def spring(x: float):
    return -2.0 * x


@wp.func_grad(spring)
def adj_spring(x: float, adj_ret: float):
    # Wrong for stretched springs only.
    wp.adjoint[x] += wp.where(x > 2.0, -1.999, -2.0) * adj_ret


@wp.kernel
def step(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 0.01 * wp.sin(x[i]) * x[0]


@wp.kernel
def sprung(x: F, y: F):
    i = wp.tid()
    y[i] = spring(x[i])


@wp.kernel
def rooted(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


@wp.kernel
def total(x: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * x[i])


@wp.kernel
def written(n: int, out: wp.array(dtype=int)):
    out[wp.tid()] = n


def floats(x: Any, grad: bool = True) -> Any:
    return wp.array(np.array(x), dtype=float, requires_grad=grad)


def rollout(kernel: Any, count: int, start: Any) -> wp.Tape:
    states = [floats(start)] + [floats(np.zeros(len(start))) for _ in range(count)]
    with wp.Tape() as tape:
        for a, b in pairwise(states):
            wp.launch(kernel, len(start), [a], [b])
    return tape


@wp.kernel
def inverse(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0e-20 / x[i]


@wp.kernel
def halved(x: F, y: F):
    i = wp.tid()
    y[i] = wp.log(wp.sqrt(x[i] + 1.0) - wp.sqrt(x[i]))


@wp.kernel
def sigmoid(x: F, y: F):
    i = wp.tid()
    y[i] = 1.0 / (1.0 + wp.exp(x[i]))


@wp.kernel
def counted(k: int, late: int, x: F):
    i = wp.tid()
    x[i] = wp.where(k == late, float(i), float(i + 1))


@wp.kernel
def hardly(x: F, n: int, y: F):
    i = wp.tid()
    if n > 3:
        q = x[i]
    y[i] = q * x[i]


@wp.kernel
def kept(x: F, shift: int, between: F, y: F):
    i = wp.tid()
    between[2 * i] = x[i] * x[i]
    y[i] = x[i] + between[2 * i + shift]


@wp.kernel
def hardly_kept(x: F, q: F, shift: int, between: F, y: F, u: F):
    i = wp.tid()
    between[2 * i] = q[i] * q[i]
    between[2 * i + 8] = x[i] * x[i]
    y[i] = x[i] + 1.0e-10 * (q[i] + between[2 * i + shift])
    u[i] = 1.0e-10 * (x[i] + between[2 * i + 8 + shift])


def apart(kernel: Any, inputs: list[Any]) -> wp.Tape:
    with wp.Tape() as tape:
        for x in inputs:
            wp.launch(kernel, len(x), [floats(x)], [floats(np.zeros(len(x)))])
    return tape


def left(found: TapeResult) -> set[int]:
    return {x.index for x in found.launches if any(p.by_whole for p in x.pairs)}


def verdicts(found: TapeResult) -> dict[int, set[str]]:
    return {x.index: {p.verdict for p in x.pairs} for x in found.launches}


def compared(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Has an element for each launch that is looked at by itself."""
    seen: list[None] = []
    compare = launch_check.compare

    def noting(*args: Any) -> Any:
        seen.append(None)
        return compare(*args)

    monkeypatch.setattr(launch_check, "compare", noting)
    return seen


def test_the_whole_answers_for_launches_of_which_many_were_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = compared(monkeypatch)
    found = check_tape(rollout(step, COUNT + 2, [0.3, -0.2]))
    assert found.whole is not None and found.whole.verdict == "pass"
    assert left(found) == {*range(EACH, COUNT + 2)} - {ONE_OF}
    assert len(seen) == EACH + 1
    assert set().union(*verdicts(found).values()) == {"pass"}
    assert [x.index for x in found.launches] == [*range(COUNT + 2)]
    (pair,) = found.launches[EACH].pairs
    assert (pair.input, pair.output, pair.checked, pair.directional) == ("x", "y", 0, 0)


@pytest.mark.parametrize("late", [EACH, EACH + 7, COUNT])
def test_derivatives_by_hand_are_looked_at_each_time(late: int) -> None:
    inputs = [[0.5, 1.0]] * (COUNT + 1)
    inputs[late] = [0.5, 3.0]
    found = check_tape(apart(sprung, inputs))
    assert left(found) == set()
    assert [k for k, v in verdicts(found).items() if "fail" in v] == [late]


def test_what_is_not_finite_late_is_found_where_it_is() -> None:
    inputs = [[0.5, 1.0]] * (COUNT + 1)
    inputs[EACH + 9] = [0.5, 0.0]
    found = check_tape(apart(rooted, inputs))
    assert [k for k, v in verdicts(found).items() if "nan" in v] == [EACH + 9]
    assert left(found) == set()
    assert found.whole is not None and found.whole.verdict == "nan"


@pytest.mark.parametrize(
    ("kernel", "special", "verdict"),
    [(rooted, [0.5, 0.0], "nan"), (inverse, [0.5, 1e-30], "nan"),
     (sigmoid, [0.5, 95.0], "nan"), (halved, [1e5, 3e5], "rounding")],
)  # fmt: skip
def test_special_values_late_are_found_where_no_gradient_comes(
    kernel: Any, special: list[float], verdict: str
) -> None:
    late = EACH + 9
    x, loss = floats([0.5, 2.0]), floats([0.0])
    with wp.Tape() as tape:
        for n in range(EACH + 20):
            at = special if n == late else [0.5, 2.0]
            wp.launch(kernel, 2, [floats(at)], [floats([0.0] * 2)])
        wp.launch(total, 2, [x], [loss])
    tape.backward(loss)
    found = check_tape(tape)
    assert [k for k, v in verdicts(found).items() if verdict in v] == [late]


def test_what_rounding_adds_is_measured_where_it_is_more_than_elsewhere() -> None:
    late = EACH + 9
    found = check_tape(apart(halved, [[2e3, 3e3] if n == late else [0.5 + 1e-3 * n, 2.0]
                                      for n in range(EACH + 20)]))  # fmt: skip
    assert late not in left(found)
    lost = [p.off / p.scale for x in found.launches for p in x.pairs if not p.by_whole]
    assert np.argmax(lost) == EACH and lost[EACH] > 1e-5 > 10 * max(lost[:EACH])


def test_what_is_not_finite_is_found_in_a_tape_of_many() -> None:
    experience, found = Experience(), []
    for n in range(EACH + 16):
        tape = apart(rooted, [[0.5, 0.0 if n == EACH + 5 else 2.0]])
        found.append(check_tape(tape, experience=experience))
    assert [n for n, r in enumerate(found) if verdicts(r)[0] != {"pass"}] == [EACH + 5]
    assert verdicts(found[EACH + 5])[0] == {"nan"}


def test_what_no_leaf_reaches_is_looked_at() -> None:
    late = EACH + 9
    with wp.Tape() as tape:
        for n in range(EACH + 20):
            a, b = floats([0.0, 0.0]), floats([0.0, 0.0])
            wp.launch(counted, 2, [n, late], [a])
            wp.launch(rooted, 2, [a], [b])
        wp.launch(total, 2, [floats([0.5, 2.0])], [floats([0.0])])
    found = check_tape(tape)
    assert [k for k, v in verdicts(found).items() if "nan" in v] == [2 * late + 1]


@pytest.mark.filterwarnings("ignore:`q` may be read")
def test_other_paths_of_a_launch_are_looked_at() -> None:
    late, x = EACH + 9, floats([0.5, 2.0])
    with wp.Tape() as tape:
        for n in range(EACH + 20):
            wp.launch(hardly, 2, [x, 2 if n == late else 5], [floats([0.0, 0.0])])
    found = check_tape(tape)
    assert [r.index for r in found.launches if r.unassigned] == [late]
    with wp.Tape() as tape:
        for n in range(EACH + 20):
            between = floats([0.0] * 8, grad=False)
            wp.launch(kept, 2, [x, 0 if n == late else 1], [between, floats([0.0, 0.0])])
    found = check_tape(tape)
    assert [(r.index, r.detached) for r in found.launches if r.detached] == [(late, ("between",))]


def test_what_hardly_counts_is_looked_at() -> None:
    late, x, q = EACH + 9, floats([0.5, 2.0]), floats([0.7, 1.0])
    with wp.Tape() as tape:
        for n in range(EACH + 20):
            between = floats([0.0] * 16, grad=False)
            y, u = floats([0.0, 0.0]), floats([0.0, 0.0])
            wp.launch(hardly_kept, 2, [x, q, 0 if n == late else 1], [between, y, u])
    found = check_tape(tape)
    failed = {(p.input, p.output) for p in found.launches[late].pairs if p.verdict == "fail"}
    assert failed == {("q", "y"), ("x", "u")}
    assert [r.index for r in found.launches if r.detached] == [late]


def test_a_wrong_kind_is_never_left(monkeypatch: pytest.MonkeyPatch) -> None:
    found = check_tape(apart(sprung, [[0.5, 3.0]] * (COUNT + 1)))
    assert all("fail" in v for v in verdicts(found).values())


def test_each_is_looked_at_where_the_tape_cannot_be_run_again() -> None:
    tape = rollout(step, EACH + 4, [0.3, -0.2])
    tape.record_func(lambda: None, [])
    found = check_tape(tape)
    assert found.whole is not None and found.whole.verdict == "skipped"
    assert left(found) == set()
    assert all(p.directional for x in found.launches for p in x.pairs)
    assert len(found.unchecked) == 1


def test_each_is_looked_at_where_only_launches_are_asked_for() -> None:
    tape = rollout(step, EACH + 4, [0.3, -0.2])
    for found in (
        check_tape(tape, end_to_end=False), check_tape(tape, kernels=["step"]),
        check_tape(tape, max_inputs=1), check_tape(tape, rtol=1e-3),
    ):  # fmt: skip
        assert left(found) == set()
        assert all(p.directional + p.checked for x in found.launches for p in x.pairs)


def test_each_tape_of_many_is_run_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    experience, count = Experience(), EACH // 4 + 6
    results = [
        check_tape(rollout(step, 4, [0.1 * n + 0.1, -0.2]), experience=experience)
        for n in range(count)
    ]
    assert {r.whole.verdict for r in results if r.whole is not None} == {"pass"}
    assert all(r.whole is not None for r in results)
    first = EACH // 4
    assert all(left(r) == set() for r in results[:first])
    assert all(len(left(r)) >= 3 for r in results[first:])


def test_what_was_overwritten_is_told_and_leaves_the_launches_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wp.config, "overwrites", "present")
    a, b, loss = floats([0.3, 0.2]), floats([0.7, 0.1]), floats([0.0])
    with wp.capturing() as capture:
        with wp.Tape() as tape:
            for _ in range(EACH + 6):
                wp.launch(total, 2, [a], [loss])
            wp.launch(step, 2, [b], [a])
        tape.backward(loss)
    (captured,) = capture.tapes
    found = check_tape(captured)
    assert found.whole is not None and found.whole.verdict == "fail"
    assert found.whole.cause is not None and found.whole.cause.kind == "overwrite"
    assert found.whole.parts_right
    assert left(found) == {*range(EACH, EACH + 6)}
    assert set().union(*verdicts(found).values()) == {"pass"}


def test_launches_after_the_backward_pass_are_looked_at() -> None:
    with wp.capturing() as capture:
        tape = wp.Tape()
        states = [floats([0.3, 0.2]) for _ in range(EACH + 9)]
        with tape:
            for a, b in pairwise(states[: EACH + 5]):
                wp.launch(step, 2, [a], [b])
        tape.backward(grads={states[EACH + 4]: wp.ones_like(states[0])})
        with tape:
            for a, b in pairwise(states[EACH + 4 :]):
                wp.launch(step, 2, [a], [b])
    (captured,) = capture.tapes
    found = check_tape(captured)
    assert left(found) == {*range(EACH, EACH + 4)}
    assert {p.verdict for x in found.launches for p in x.pairs} == {"pass"}


def test_what_has_nothing_to_check_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, faithful = [], launch_check.faithful
    monkeypatch.setattr(launch_check, "faithful", lambda x: looked.append(x) or faithful(x))
    with wp.Tape() as tape:
        for n in range(5):
            wp.launch(written, 2, [n], [wp.zeros(2, dtype=int)])
        wp.launch(step, 2, [floats([0.1, 0.2])], [floats([0.0, 0.0])])
    found = check_tape(tape)
    assert len(looked) == 2
    assert [bool(x.skipped) for x in found.launches] == [*5 * [True], False]
    assert [x.index for x in found.launches] == [*range(6)]


def test_an_interrupt_gives_what_was_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(tape_whole, "check_end_to_end", interrupted)
    with pytest.raises(CheckInterrupted) as stopped:
        check_tape(rollout(step, EACH + 5, [0.3, -0.2]))
    assert [x.index for x in stopped.value.result.launches] == [*range(EACH)]


def test_what_is_overwritten_in_many_tapes_is_searched_for_in_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wp.config, "overwrites", "present")
    searched, culprit = [], end_to_end.culprit
    monkeypatch.setattr(end_to_end, "culprit", lambda *a: searched.append(a) or culprit(*a))
    experience, found = Experience(), []
    for n in range(8):
        a, b, loss = floats([0.3, 0.1 * n]), floats([0.7, 0.1]), floats([0.0])
        with wp.capturing() as capture:
            with wp.Tape() as tape:
                wp.launch(total, 2, [a], [loss])
                wp.launch(step, 2, [b], [a])
            tape.backward(loss)
        (captured,) = capture.tapes
        found.append(check_tape(captured, experience=experience).whole)
    assert len(searched) == 3  # of the first, the second and the fifth
    causes = {(w.verdict, w.cause.kind, w.cause.launch, w.cause.argument) for w in found}
    assert causes == {("fail", "overwrite", 0, "x")}
    assert all(abs(w.ad - w.oracle) > 1e-3 * abs(w.oracle) for w in found)
