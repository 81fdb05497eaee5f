"""Later launches of a kernel are looked at along one direction, and miss nothing by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import Experience, check_tape
from engine.autograd.launch import check as launch_check
from engine.autograd.launch import compare as launch_compare

F = wp.array(dtype=float)


@wp.func
def spring(x: float, k: float):
    return -k * x


@wp.func_grad(spring)
def adj_spring(x: float, k: float, adj_ret: float):
    # Wrong for stretched springs only.
    wp.adjoint[x] += -k * adj_ret
    wp.adjoint[k] += wp.where(x > 2.0, -1.0001 * x, -x) * adj_ret


@wp.kernel
def step(x: F, v: F, k: F, dt: float, x1: F, v1: F):
    i = wp.tid()
    v1[i] = v[i] + dt * spring(x[i], k[i])
    x1[i] = x[i] + dt * v1[i]


@wp.kernel
def kinked(x: F, y: F):
    i = wp.tid()
    y[i] = wp.abs(x[i]) + x[i] * x[i]


@wp.kernel
def rooted(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


def floats(x: Any) -> Any:
    return wp.array(np.array(x), dtype=float, requires_grad=True)


def steps(count: int, stretched: int = -1, first: int = 0, dt: float = 1e-3) -> wp.Tape:
    with wp.Tape() as tape:
        for n in range(first, first + count):
            # No two alike: what is equal is checked once.
            x = floats(np.linspace(0.5, 1.5, 8) + (3.0 if n == stretched else 1e-3 * n))
            more = [floats(np.linspace(a, 2.0, 8)) for a in (-1.0, 0.7)]
            out = [floats(np.zeros(8)) for _ in range(2)]
            wp.launch(step, 8, [x, *more, dt], out)
    return tape


def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, bool]]:
    """Notes whether each launch is looked at by entries, and by one direction."""
    seen: list[tuple[bool, bool]] = []
    compare = launch_compare.compare

    def noting(launch: Any, options: Any, *rest: Any) -> Any:
        seen.append((options.every_entry, options.jointly))
        return compare(launch, options, *rest)

    monkeypatch.setattr(launch_check, "compare", noting)
    return seen


def test_a_spread_is_looked_at_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, tape, experience = looks(monkeypatch), steps(18), Experience()
    first = check_tape(tape, experience=experience)
    assert [e for e, _ in seen] == [True] + 17 * [False]
    assert [k for k, (_, jointly) in enumerate(seen) if not jointly] == [0, 1, 4, 16]
    counts = [x.pairs[0].directional for x in first.launches]
    assert [k for k, n in enumerate(counts) if n > 1] == [0, 1, 4, 16]
    seen.clear()
    again = check_tape(steps(18, first=18), experience=experience)
    assert [e for e, _ in seen] == 18 * [False]
    for found in (first, again):
        assert {p.verdict for x in found.launches for p in x.pairs} == {"pass"}
        assert all(len(x.pairs) == 8 for x in found.launches)


def test_numbers_of_a_sum_over_inputs_are_those_of_no_pair() -> None:
    """What is left is of each pair by itself: a derivative that the user's text gives."""
    with wp.Tape() as tape:
        for n in range(6):
            wp.launch(kinked, 3, [floats([0.5, 1.0 + n, 2.0])], [floats(np.zeros(3))])
    alone = check_tape(tape)
    assert not any(p.joint or p.worst is None for x in alone.launches for p in x.pairs)
    found = check_tape(steps(6, dt=0.5))
    assert {x.index for x in found.launches if any(p.joint for p in x.pairs)} == {2, 3, 5}
    for x in found.launches:
        shown = [(p.output, p.worst.ad, p.worst.oracle) for p in x.pairs if p.worst is not None]
        assert len(set(shown)) == len(shown)
        assert all((p.worst is None) >= p.joint and p.max_rel_error < 1e-6 for p in x.pairs)
    # Where the step is short, all but one count for little, and are moved by themselves.
    assert not any(p.joint for x in check_tape(steps(6)).launches for p in x.pairs)


@pytest.mark.parametrize("late", [3, 5, 7, 11])
def test_what_is_wrong_in_a_late_launch_alone_is_found(late: int) -> None:
    """By one part in ten thousand, in a derivative that counts for a thousandth of the others."""
    found = check_tape(steps(12, late))
    wrong = {(x.index, p.input) for x in found.launches for p in x.pairs if p.verdict == "fail"}
    assert wrong == {(late, "k")}


def test_kinks_and_nan_of_late_launches_are_what_they_are() -> None:
    values = [floats([0.5, 1.0, -2.0]) for _ in range(6)] + [floats([0.5, 0.0, -2.0])]
    with wp.Tape() as tape:
        for x in values:
            wp.launch(kinked, 3, [x], [floats(np.zeros(3))])
        for x in (*(floats([1.0, 2.0]) for _ in range(6)), floats([1.0, 0.0])):
            wp.launch(rooted, 2, [x], [floats(np.zeros(2))])
    verdicts = [x.pairs[0].verdict for x in check_tape(tape).launches]
    assert verdicts == [*6 * ["pass"], verdicts[6], *6 * ["pass"], "nan"]
    assert verdicts[6] in ("kink", "pass")  # the adjoint's side, or the middle of both


def test_other_shapes_and_roles_are_other_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = looks(monkeypatch)
    with wp.Tape() as tape:
        for at, n in ((1.0, 3), (1.0, 4), (1.5, 3)):
            wp.launch(kinked, n, [floats(at * np.ones(n))], [floats(np.zeros(n))])
    check_tape(tape)
    assert [e for e, _ in seen] == [True, True, False]
