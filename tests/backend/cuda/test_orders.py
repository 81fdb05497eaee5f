"""Programs that depend on a GPU's order of threads get the findings that they get on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.archive import pack, unpack
from engine.autograd import Witness, check_tape
from tests.backend.cuda.emulated import PLACES, place
from tests.unit.archive.test_round_trip import Memory

N = 300
F, I = wp.array(dtype=float), wp.array(dtype=int)


@wp.func
def handed_out(counter: I, places: I, thread: int) -> int:
    at = wp.atomic_add(counter, 0, 1)
    places[thread] = at
    return at


@wp.func_replay(handed_out)
def handed_out_again(counter: I, places: I, thread: int) -> int:
    return places[thread]


@wp.kernel
def compacted(x: F, gain: F, counter: I, places: I, y: F):
    i = wp.tid()
    if x[i] > 0.0:
        y[handed_out(counter, places, i)] = gain[i % 3] * x[i] * x[i]


@wp.kernel
def weighted(y: F, z: F):
    i = wp.tid()
    z[i] = float(i % 7) * y[i]


@wp.kernel
def summed(z: F, loss: F):
    wp.atomic_add(loss, 0, z[wp.tid()])


@wp.kernel
def scaled(x: F, index: I, gain: F, loss: F):
    """Its adjoint adds the gradients of all threads up, and needs `x`."""
    i = wp.tid()
    wp.atomic_add(loss, 0, gain[index[i]] * wp.sin(x[i] * 1000.0))


@wp.kernel
def scaled_by_number(x: F, index: I, numbers: F, gain: F, loss: F):
    """Its adjoint reads `numbers`, of which no gradient depends on what it holds."""
    i = wp.tid()
    g = gain[index[i]]
    wp.atomic_add(loss, 0, g * wp.sin(x[i] * 1000.0) + g * 0.0 * numbers[i])


@wp.kernel
def filled(value: float, x: F):
    x[wp.tid()] = value


@wp.kernel
def numbered(counter: I, x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * float(wp.atomic_add(counter, 0, 1))


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[wp.Device]:
    with place(request.param) as device, wp.ScopedDevice(device):
        yield device


def floats(*more: Any, grad: bool = True) -> Any:
    values = np.random.default_rng(5).standard_normal(N).astype(np.float32)
    return wp.array(values, dtype=float, requires_grad=grad)


def zeros(n: int = N) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=True)


def compaction() -> None:
    x, y, z, loss = floats(), zeros(), zeros(), zeros(1)
    gain = wp.ones(3, dtype=float, requires_grad=True)
    counter, places = wp.zeros(1, dtype=int), wp.zeros(N, dtype=int)
    with wp.Tape() as tape:
        wp.launch(compacted, N, [x, gain, counter, places, y])
        wp.launch(weighted, N, [y, z])
        wp.launch(summed, N, [z, loss])
    tape.backward(loss)


def test_places_that_a_counter_hands_out(there: Any) -> None:
    """The replay of the tape has others, and each is right: nothing came from outside."""
    with wp.capturing(watcher=Witness()) as capture:
        for k in range(4):  # emulated threads run in either order
            compaction()
            if k % 2:
                wp.launch(filled, 1, [0.0], [zeros(1)])
    store = Memory()
    away = unpack(pack(capture.tapes, store)[0], store)  # for the CPU of another machine
    for tape in (*capture.tapes, *away):
        found = check_tape(tape)
        assert found.whole is not None and found.whole.verdict == "pass", found.whole
        assert found.facts_of("Overwritten") == ()


def test_what_is_written_beside_the_tape_is_still_seen(there: Any) -> None:
    """Where a launch of the tape has no order, but has nothing to do with it."""
    with wp.capturing(watcher=Witness()) as capture:
        x, y, z, loss = floats(), zeros(), zeros(), zeros(1)
        with wp.Tape() as tape:
            wp.launch(numbered, N, [wp.zeros(1, dtype=int), floats(), zeros()])
            wp.launch(weighted, N, [x, y])
            wp.launch(filled, N, [2.0, y], record_tape=False)
            wp.launch(weighted, N, [y, z])
            wp.launch(summed, N, [z, loss])
        tape.backward(loss)
    (captured,) = capture.tapes
    whole = check_tape(captured).whole
    assert whole is not None and whole.cause is not None
    assert (whole.cause.kind, whole.cause.kernel, whole.cause.argument) == (
        "outside", "weighted", "y",
    )  # fmt: skip


@pytest.mark.parametrize(("kernel", "needed"), [(scaled, True), (scaled_by_number, False)])
def test_whether_a_gradient_needs_what_was_overwritten(
    there: Any, kernel: Any, needed: bool
) -> None:
    """Sums of floats are others each time: that does not make it needed."""
    with wp.capturing(watcher=Witness()) as capture:
        x, gain, loss = floats(), wp.ones(3, dtype=float, requires_grad=True), zeros(1)
        index, numbers = wp.array(np.arange(N) * 7 % 3, dtype=int), floats(grad=False)
        args = [x, index, gain] if needed else [x, index, numbers, gain]
        with wp.Tape() as tape:
            wp.launch(kernel, N, [*args, loss])
            wp.launch(filled, N, [2.0], [x if needed else numbers])
        tape.backward(loss)
    (tape,) = capture.tapes
    kinds = {f.kind for f in tape.facts if isinstance(f, wp.autograd.Overwritten)}
    assert ("restored" in kinds) is needed, kinds
