"""Watched launches on a GPU, real or emulated: what is told is what is told of the CPU's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
import tests.unit.runtime.test_races as r
import tests.unit.runtime.test_watch as w
from engine import Fault, LaunchError, ad
from engine.codegen import cuda
from engine.compile.cuda import runner
from engine.runtime import races
from tests.backend.cuda.emulated import PLACES, emulated, place
from tests.backend.cuda.fake_cupy import FakeCupy
from tests.backend.cuda.kernels import made

N = 8


@wp.kernel
def squares(
    x: wp.array(dtype=float), c: wp.array(dtype=float), n: wp.array(dtype=int), by: int,
    y: wp.array(dtype=float),
):  # fmt: skip
    """What a loop of unknown length overwrites is kept for the adjoint."""
    i = wp.tid()
    a = float(0.0)
    for k in range(n[i]):
        x[i] = x[i] * x[i] + 0.1
        a = a * c[i + by * k] + x[i]
    y[i] = a * a


@wp.kernel
def taken(index: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[index[i], j] = x[i] + float(j)


@wp.func_native("__threadfence(); return x + 1.0f;")
def fenced(x: float) -> float: ...


@wp.kernel
def of_gpus(index: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[index[i]] = fenced(x[i])


@pytest.fixture(params=PLACES)
def there(request: Any) -> Iterator[wp.Device]:
    with place(request.param) as device:
        yield device


def floats(n: int = N, **more: Any) -> Any:
    return wp.array(np.arange(1.0, n + 1.0), dtype=float, **more)


def zeros(n: Any = N, dtype: Any = float, **more: Any) -> Any:
    return wp.zeros(n, dtype=dtype, **more)


def ints(*values: int) -> Any:
    return wp.array(values, dtype=int)


def chosen(*places: int) -> Any:
    index = ints(0, 1, 2)
    made = wp.indexedarray(floats(), [index])
    index.assign(places)
    return made


def table() -> Any:
    t = w.Table()
    t.values, t.n = zeros(), 3
    return t


Case = Callable[[], tuple[Any, Any, list[Any]]]

# Kernel, grid and arguments, made on the current device.
OUTSIDE: dict[str, Case] = {
    "load": lambda: (w.shifted, N, [floats(), 1, zeros()]),
    "from the end": lambda: (w.shifted, N, [floats(), -N - 2, zeros()]),
    "store": lambda: (w.scattered, N, [floats(), 1 << 29, zeros()]),
    "slice": lambda: (w.scattered, N, [floats(2 * N)[:N], -(N + 3), zeros(4 * N)[N : 2 * N]]),
    "strided": lambda: (w.shifted, N, [floats(2 * N)[::2], 3, zeros(2 * N)[1::2]]),
    "backwards": lambda: (w.shifted, N, [floats()[::-1], 2, zeros()]),
    "atomic": lambda: (w.counted, 6, [ints(0, 1, 4, -4, -5, 4), zeros(4)]),
    "two axes": lambda: (w.next_row, (2, 4), [wp.ones((2, 3), dtype=float), zeros(2)]),
    "function": lambda: (w.called, N, [floats(), zeros()]),
    "components": lambda: (w.components, 1, [zeros(1, wp.mat33), 3, zeros(1)]),
    "view": lambda: (w.part, 4, [wp.ones((2, 6), dtype=float), zeros(4)]),
    "local array": lambda: (w.local_row, 1, [3, zeros(1)]),
    "structs": lambda: (w.structs, N, [zeros(N, w.Body), table(), zeros()]),
    "none": lambda: (w.optional, 2, [None, 1, zeros(2)]),
    "empty": lambda: (w.optional, 2, [zeros(0), 1, zeros(2)]),
    "no element": lambda: (w.indexed, 4, [chosen(0, 1, 2), zeros(4)]),
    "no index": lambda: (w.indexed, 3, [chosen(0, 8, -1), zeros(4)]),
}
INSIDE: dict[str, Case] = {
    "from the end": lambda: (w.shifted, N, [floats(), -N, zeros()]),
    "atomic": lambda: (w.counted, 6, [ints(0, 1, 3, -4, -1, 2), zeros(4)]),
    "components": lambda: (w.components, 1, [zeros(1, wp.mat33), -3, zeros(1)]),
    "view": lambda: (w.part, 2, [wp.ones((2, 6), dtype=float), zeros(4)]),
    "none": lambda: (w.optional, 2, [None, 0, zeros(2)]),
    "guarded": lambda: (w.guarded, N, [floats(), zeros()]),
    "indexed": lambda: (w.indexed, 3, [chosen(0, 7, 2), zeros(4)]),
    "native text": lambda: (w.native, 2, [floats(), zeros(2)]),
    "large": lambda: (w.shifted, 70_000, [floats(70_001), 1, zeros(70_000)]),
}


def shared(by: int) -> list[Any]:
    x = floats(2 * N)
    return [x[: N + 1], x[:N], by]


RACES: dict[str, Case] = {
    "stores": lambda: (r.last_wins, N, [floats(), zeros(2)]),
    "store and load": lambda: (r.summed, N, [floats(), zeros(1)]),
    "neighbours": lambda: (r.in_place, N, [floats()]),
    "indices": lambda: (r.scattered, N, [ints(0, 1, 2, 3, 4, 5, 2, 7), zeros()]),
    "strided": lambda: (r.scattered, N, [ints(0, 1, 2, 3, 4, 5, 6, 6), zeros(2 * N)[1::2]]),
    "one memory": lambda: (r.two_arrays, N, shared(1)),
    "a sum that is read": lambda: (r.normalised, N, [floats(), zeros(1), zeros()]),
    "minimum": lambda: (r.least, N, [floats()[::-1], wp.full(1, 99.0)]),
    "equal": lambda: (r.last_wins, N, [wp.ones(N, dtype=float), zeros(1)]),
    "two axes": lambda: (taken, (4, 3), [ints(0, 2, 1, 2), floats(), zeros((3, 3))]),
}
APART: dict[str, Case] = {
    "indices": lambda: (r.scattered, N, [ints(0, 1, 2, 3, 4, 5, 7, 6), zeros()]),
    "one memory": lambda: (r.two_arrays, N, shared(0)),
    "flag": lambda: (r.flagged, N, [floats(), zeros(1)]),
    "numbers": lambda: (r.numbered, N, [zeros(1, int), zeros()]),
    "vectors": lambda: (r.halves, 2 * N, [zeros(N, wp.vec2)]),
    "one thread": lambda: (r.last_wins, 1, [floats(), zeros(1)]),
}


def seen(device: Any, case: Case, **shape: Any) -> tuple[list[Fault], list[Any]]:
    """What is told of a launch, and what is in its arrays afterwards."""
    told: list[Fault] = []
    with wp.ScopedDevice(device), wp.watching(told.append, races=True):
        kernel, dim, args = case()
        kernel.plan.variants.derived.clear()  # what was looked at before
        wp.launch(kernel, dim=dim, inputs=args, **shape)
        return told, [a.numpy() for a in args if isinstance(a, wp.array)]


def same(a: list[Any], b: list[Any]) -> bool:
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("case", OUTSIDE)
def test_accesses_outside(there: Any, case: str) -> None:
    want, results = seen("cpu", OUTSIDE[case])
    got, arrays = seen(there, OUTSIDE[case])
    assert got == want and {f.kind for f in got} == {"outside"}
    assert same(arrays, results)
    for shape in ({"block_dim": 32}, {"block_dim": 64, "max_blocks": 1}):
        again, arrays = seen(there, OUTSIDE[case], **shape)
        assert again == want and same(arrays, results)


@pytest.mark.parametrize("case", INSIDE)
def test_no_false_alarm(there: Any, case: str) -> None:
    got, arrays = seen(there, INSIDE[case], block_dim=64)
    assert got == []
    assert same(arrays, seen("cpu", INSIDE[case])[1])


def test_memory_around_a_slice_stays(there: Any) -> None:
    with wp.ScopedDevice(there), wp.watching(lambda f: told.append(f)):
        told: list[Fault] = []
        whole = floats(4 * N)
        part = whole[N : 2 * N]
        for by in (N, -2 * N, 1 << 29, -(1 << 29)):
            wp.launch(w.scattered, dim=N, inputs=[floats(), by, part])
        assert [f.count for f in told] == [N] * 4
        assert whole.numpy().tolist() == list(range(1, 4 * N + 1))


@pytest.mark.parametrize("by", [N, -2 * N, 1 << 29, -(1 << 29)])
def test_memory_around_gradients_stays(there: Any, by: int, monkeypatch: Any) -> None:
    """An adjoint takes the gradient of what was stored, and leaves zeros there."""
    # Threads that count from the end are not known to keep apart.
    monkeypatch.setattr(wp.config, "deterministic", by < 0)
    with wp.ScopedDevice(there), wp.watching():
        whole = floats(4 * N)
        x, y = floats(requires_grad=True), zeros(requires_grad=True)
        y.grad = whole[N : 2 * N]
        with wp.Tape() as tape:
            wp.launch(w.scattered, dim=N, inputs=[x, by, y])
        tape.backward()
        assert whole.numpy().tolist() == list(range(1, 4 * N + 1))
        assert x.grad.numpy().tolist() == [0.0] * N


def test_every_access_is_looked_at() -> None:
    """In the text: one that is not shows where memory ends, at the latest."""
    found = 0
    for name, fn in made("selftest").functions:
        if name.endswith("_accesses"):
            continue
        for line in cuda.emit(ad.watch(fn, "bounds"), name).splitlines():
            found += ".at(" in line
            assert ".at(" not in line or "eng::inside(" in line, (name, line)
    assert found > 1000


def test_of_many_threads_the_first_is_told(there: Any) -> None:
    n = 3000
    index = np.arange(n) % 5 + 4
    told, _ = seen(there, lambda: (w.counted, n, [wp.array(index, dtype=int), zeros(4)]))
    assert [(f.thread, f.index, f.count) for f in told] == [((0,), (4,), n)]
    index[:1234] = 0
    told, (_, y) = seen(there, lambda: (w.counted, n, [wp.array(index, dtype=int), zeros(4)]))
    at = int(index[1234])
    assert [(f.thread, f.index, f.count) for f in told] == [((1234,), (at,), n - 1234)]
    assert y.tolist() == [1234, 0, 0, 0]


def test_the_second_of_two_gpus() -> None:
    with emulated(FakeCupy(2)) as (_, second):
        for cases in (OUTSIDE, RACES):
            case = next(iter(cases.values()))
            assert seen(second, case)[0] == seen("cpu", case)[0] != []


def test_arrays_of_others(there: Any) -> None:
    with wp.ScopedDevice(there):
        x, y = floats(), zeros()

        class Other:
            __cuda_array_interface__ = x.__cuda_array_interface__

        told: list[Fault] = []
        with wp.watching(told.append, races=True):
            wp.launch(w.shifted, dim=N, inputs=[Other(), 2, y])
            wp.launch(r.scattered, dim=N, inputs=[ints(0, 1, 2, 3, 4, 5, 5, 7), y])
        assert [(f.kind, f.name, f.index) for f in told] == [
            ("outside", "x", (8,)), ("race", "y", (5,)),
        ]  # fmt: skip


# ---- tapes


def taped(device: Any, by: int, most: int) -> tuple[list[Fault], list[Any]]:
    told: list[Fault] = []
    counts = [most, 0, 3, most - 1, 1, 2, 5, most]
    with wp.ScopedDevice(device), wp.watching(told.append):
        x = wp.array(np.linspace(0.1, 0.6, N), dtype=float, requires_grad=True)
        c, y = wp.full(N, 0.5, dtype=float), zeros(requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(squares, dim=N, inputs=[x, c, ints(*counts), by, y])
        tape.backward(grads={y: wp.ones_like(y)})
        return told, [x.numpy(), y.numpy(), x.grad.numpy()]


@pytest.mark.parametrize("most", [4, 400], ids=["small frames", "frames that grow"])
def test_recorded_launches_and_adjoints(there: Any, most: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(runner, "FIRST", 64)
    for by in (1 << 20, 0):  # frames are right for what comes second
        want, results = taped("cpu", by, most)
        got, arrays = taped(there, by, most)
        key = [(f.span, f.form, f.access, f.name, f.thread, f.index, f.shape) for f in want]
        assert key == [(f.span, f.form, f.access, f.name, f.thread, f.index, f.shape) for f in got]
        forward = [f for f in got if f.form == "forward"]
        assert forward == [f for f in want if f.form == "forward"]
        assert bool(forward) is bool(by)
        assert all(np.allclose(a, b, 1e-5) for a, b in zip(arrays, results, strict=True))


def test_an_index_that_changes_before_the_backward_pass(there: Any) -> None:
    def run(device: Any) -> tuple[list[Fault], Any, Any]:
        told: list[Fault] = []
        with wp.ScopedDevice(device), wp.watching(told.append):
            index = ints(0, 1, 2, 3)
            x, y = floats(12, requires_grad=True), zeros(4, requires_grad=True)
            with wp.Tape() as tape:
                wp.launch(w.total, dim=4, inputs=[x, index, y])
            assert told == []
            tape.backward(grads={y: wp.ones_like(y)})
            assert told == []
            first = x.grad.numpy().copy()
            index.assign([1 << 27, 1, 5, -9])
            tape.zero()
            tape.backward(grads={y: wp.ones_like(y)})
            return told, first, x.grad.numpy()

    want, got = run("cpu"), run(there)
    assert got[0] == want[0] and {f.form for f in got[0]} == {"adjoint"}
    assert np.allclose(got[1], want[1]) and np.allclose(got[2], want[2]) and got[1].any()


def test_a_kernel_with_a_race_has_a_gradient_while_somebody_watches(there: Any) -> None:
    with wp.ScopedDevice(there):
        r.last_wins.plan.variants.derived.clear()
        x, y = floats(requires_grad=True), zeros(1, requires_grad=True)
        told: list[Fault] = []
        with wp.Tape() as tape:
            wp.launch(r.last_wins, dim=N, inputs=[x, y])
        with pytest.raises(wp.EngineError) as caught:
            tape.backward(y)
        assert caught.value.diagnostics[0].code == "E407"
        with wp.watching(told.append):
            tape.backward(y)
        assert {f.kind for f in told} == {"race"}
        with pytest.raises(wp.EngineError):
            tape.backward(y)


# ---- debug mode


def test_debug_mode(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")

    @wp.kernel
    def debugged(x: wp.array(dtype=float), k: int, y: wp.array(dtype=float)):
        i = wp.tid()
        assert k < 100
        y[i] = x[i * k]

    def problems(device: Any) -> tuple[Any, ...]:
        with wp.ScopedDevice(device):
            x, y = floats(requires_grad=True), zeros(requires_grad=True)
            wp.launch(debugged, dim=N, inputs=[x, 1, y])
            assert y.numpy().tolist() == x.numpy().tolist()
            with wp.Tape() as tape, pytest.raises(LaunchError) as caught:
                wp.launch(debugged, dim=N, inputs=[x, 2, y])
            assert y.numpy().tolist() == [1, 3, 5, 7, 0, 0, 0, 0]
            with pytest.raises(LaunchError) as asserted:
                wp.launch(debugged, dim=N, inputs=[x, 100, y])
            assert asserted.value.diagnostics[0].code == "E210"
            assert len(tape.records) == 1
            return caught.value.diagnostics

    (want,), (got,) = problems("cpu"), problems(there)
    assert got == want and got.code == "E211"


def test_debug_mode_in_a_captured_sequence(there: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wp.config, "mode", "debug")

    @wp.kernel
    def gathered(x: wp.array(dtype=float), index: wp.array(dtype=int), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] += x[index[i]]

    with wp.ScopedDevice(there):
        x, index, y = floats(), ints(*range(N)), zeros()
        with wp.ScopedCapture() as capture:
            wp.launch(gathered, dim=N, inputs=[x, index, y])
        for _ in range(4):
            wp.capture_launch(capture.graph)
        assert y.numpy().tolist() == (4 * x.numpy()).tolist()
        assert capture.graph.left_to_python
        index.assign([0, 1, 2, 3, 4, 5, 6, N])
        with pytest.raises(LaunchError) as caught:
            wp.capture_launch(capture.graph)
        assert caught.value.diagnostics[0].code == "E211"


# ---- races


@pytest.mark.parametrize("case", RACES)
def test_races(there: Any, case: str) -> None:
    want, _ = seen("cpu", RACES[case])
    got, _ = seen(there, RACES[case])
    assert got == want != []


@pytest.mark.parametrize("case", APART)
def test_threads_that_keep_apart(there: Any, case: str) -> None:
    got, arrays = seen(there, APART[case])
    assert got == []
    want = seen("cpu", APART[case])[1]
    # Looking at a launch leaves no trace: nothing is counted twice.
    assert same([np.sort(a, None) for a in arrays], [np.sort(a, None) for a in want])


def test_indices_decide_which_launches_are_looked_at(there: Any) -> None:
    with wp.ScopedDevice(there), wp.watching(lambda f: told.append(f), races=True):
        told: list[Fault] = []
        r.scattered.plan.variants.derived.clear()
        index, y = ints(*range(N)), zeros()
        with wp.ScopedCapture() as capture:
            wp.launch(r.scattered, dim=N, inputs=[index, y])
        for _ in range(4):
            wp.capture_launch(capture.graph)
        assert told == []
        index.assign([0, 1, 2, 3, 4, 5, 6, 0])
        wp.capture_launch(capture.graph)
        assert [(f.kind, f.index) for f in told] == [("race", (0,))]


def test_what_only_gpus_can_run_is_not_looked_at_for_races(there: Any) -> None:
    for index in ((0, 1, 2, 3), (0, 1, 2, 9)):
        args = index
        told, arrays = seen(there, lambda: (of_gpus, 4, [ints(*args), floats(4), zeros(4)]))
        assert [f.kind for f in told] == ["unseen"] + ["outside"] * (9 in index)
        assert arrays[-1].tolist() == [2, 3, 4, 0 if 9 in index else 5]


@pytest.mark.parametrize("limit", ["SHADOW_BYTES", "COPIED_BYTES"])
def test_arrays_that_are_too_large_for_the_look(there: Any, monkeypatch: Any, limit: str) -> None:
    monkeypatch.setattr(races, limit, 60)
    told, _ = seen(there, RACES["indices"])
    assert [f.kind for f in told] == ["unwatched"]


def test_unwatched_kernels_have_nothing_of_it() -> None:
    v = w.shifted.for_arguments([floats(), 1, zeros()]).plan.variants
    assert "watch" not in cuda.emit(v.ir, "k") and "fault_t" not in cuda.preamble([v.ir])
