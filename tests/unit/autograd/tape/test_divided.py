"""Checks that are divided by kernels find what checks of one tape after another find."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import CheckInterrupted, DividedCheck, Experience, TapeResult, check_tape
from engine.autograd.launch.experience import EACH
from engine.autograd.tape import whole as tape_whole

F = wp.array(dtype=float)
LONG = EACH + 6


@wp.func
def bent(x: float):
    return x * x


@wp.func_grad(bent)
def adj_bent(x: float, adj_ret: float):
    wp.adjoint[x] += 2.1 * x * adj_ret


@wp.kernel
def step(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 0.01 * wp.sin(x[i]) * x[0]


@wp.kernel
def scaled(x: F, y: F):
    i = wp.tid()
    y[i] = 1.01 * x[i]


@wp.kernel
def wrong(x: F, y: F):
    i = wp.tid()
    y[i] = bent(x[i])


@wp.kernel
def rooted(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])


@wp.kernel
def looped(x: F, y: F):
    i = wp.tid()
    for k in range(200):
        y[i] = y[i] * 0.5 + wp.sin(x[i]) * float(k)


@wp.kernel
def marked(n: int, out: wp.array(dtype=int)):
    out[wp.tid()] = n


def floats(x: Any) -> Any:
    return wp.array(np.array(x), dtype=float, requires_grad=True)


def rollout(start: Any, kernels: list[Any], overwrite: bool = False) -> None:
    states = [floats(start) for _ in range(len(kernels) + 1)]
    flags = wp.zeros(len(start), dtype=int)
    with wp.Tape() as tape:
        for n, (kernel, (a, b)) in enumerate(zip(kernels, pairwise(states), strict=True)):
            wp.launch(kernel, len(start), [a], [b])
            wp.launch(marked, len(start), [n], [flags])
    if overwrite:
        states[2].fill_(7.0)  # an input of `step`
    tape.backward(grads={states[-1]: wp.ones_like(states[-1])})


def programs() -> list[Any]:
    """Tapes of all kinds: right, with a wrong launch, overwritten, with what is not finite."""
    both = [step, scaled] * LONG
    with wp.capturing() as capture:
        rollout([0.3, -0.2], both)
        rollout([0.5, 0.4], both)
        rollout([0.1, 0.7], [*both, wrong])
        rollout([0.2, 0.6], both, overwrite=True)
        rollout([0.0, 0.6], [*both, rooted])
    return list(capture.tapes)


def divided(tapes: list[Any], backwards: bool) -> list[TapeResult]:
    check = DividedCheck(tapes, seed=3)
    found: dict[int, list[Any]] = {n: [] for n in range(len(tapes))}
    kernels = check.kernels()
    if backwards:
        kernels.reverse()
    else:
        for n in range(len(tapes)):
            check.whole(n)
    for kernel in kernels:
        for number, result in check.launches(kernel, lambda *_: None):
            found[number].append(result)
    return [replace(check.result(n, found[n]), tape=n) for n in range(len(tapes))]


@pytest.mark.parametrize("backwards", [False, True])
def test_the_order_of_pieces_does_not_matter(
    backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wp.config, "overwrites", "present")
    experience = Experience()
    expected = [
        replace(check_tape(t, seed=3, experience=experience), tape=n)
        for n, t in enumerate(programs())
    ]
    assert [x.whole and x.whole.verdict for x in expected] == [
        "pass",
        "pass",
        "fail",
        "fail",
        "nan",
    ]
    assert any(p.by_whole for x in expected[0].launches for p in x.pairs)
    assert any(p.verdict == "fail" for x in expected[2].launches for p in x.pairs)
    for mine, theirs in zip(divided(programs(), backwards), expected, strict=True):
        assert told(mine) == told(theirs)


def told(x: TapeResult) -> Any:
    """What a user sees of it, numbers as text: NaN is not equal to itself."""
    pairs = [
        (
            r.index,
            r.kernel,
            r.skipped,
            [(p.input, p.output, p.verdict, p.by_whole) for p in r.pairs],
        )
        for r in x.launches
    ]
    whole = x.whole
    assert whole is not None
    return pairs, whole.verdict, whole.reason, repr(whole.cause), repr(whole.oracle), x.unchecked


def test_kernels_are_in_the_order_of_what_their_checks_may_take() -> None:
    x, y = floats(np.ones(4096)), floats(np.zeros(4096))
    with wp.capturing() as capture, wp.Tape():
        wp.launch(scaled, 4096, [x], [y])
        wp.launch(looped, 4096, [x], [y])
        wp.launch(scaled, 4096, [x], [y])
    check = DividedCheck(capture.tapes)
    assert check.kernels() == ["looped", "scaled"]
    assert check.largest == 2 * 4096 * 4


def test_an_interrupted_whole_gives_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with wp.capturing() as capture:
        rollout([0.3, -0.2], [step] * LONG)
    check = DividedCheck(capture.tapes)
    found = [r for k in check.kernels() for _, r in check.launches(k, lambda *_: None)]

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(tape_whole, "check_end_to_end", interrupted)
    with pytest.raises(CheckInterrupted) as stopped:
        check.result(0, found)
    kept = [x for x in stopped.value.result.launches if x.kernel == "step"]
    assert len(kept) == EACH  # those that were left to the whole are not told of
    assert [x.index for x in check.part(0, found).launches if x.kernel == "step"] == [
        x.index for x in kept
    ]
