"""Cotangents that the last adjoint takes from where they lie: the same bits as if copied before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cpu import pool, runner, schedule, seeded
from engine.compile.pipeline import Variants
from engine.runtime import blank
from engine.runtime.guards import Guard
from engine.tape import seeding, tape
from tests.parts import SMALL

pytestmark = pytest.mark.whole
F, V, D = wp.array(dtype=float), wp.array(dtype=wp.vec3), wp.array(dtype=wp.float64)
F2, H = wp.array2d(dtype=float), wp.array(dtype=wp.float16)


@wp.kernel
def plain(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * s + x[i] * x[i]


@wp.kernel
def guarded(x: F, y: F, s: float):
    i = wp.tid()
    if i % 3 == 1 or x[i] < 0.0:
        return
    y[i] = x[i] * s


@wp.kernel
def adds(x: F, y: F, s: float):
    i = wp.tid()
    y[i] += x[i] * s


@wp.kernel
def in_place(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * s
    y[i] *= x[i]
    y[i] = wp.sin(y[i])


@wp.kernel
def spins(x: F, y: F, s: float):
    i = wp.tid()
    v = x[i]
    n = int(wp.abs(x[i]) * 20.0) + 1
    k = wp.int32(0)
    while k < n:
        v = wp.sin(v) + s * v
        k += 1
    y[i] = v


@wp.kernel
def climbs(x: F, y: F, s: float):
    i = wp.tid()
    v = x[i]
    for _ in range(1000 * (i % 6)):
        v = wp.sin(v) + x[i] * s
    y[i] = v


@wp.kernel
def vectors(x: V, y: V, s: float):
    i = wp.tid()
    y[i] = wp.cross(x[i], x[i] * x[i][0]) * s + wp.normalize(x[i])


@wp.kernel
def doubles(x: D, y: D, s: float):
    i = wp.tid()
    y[i] = wp.exp(x[i]) * wp.float64(s)


@wp.kernel
def halves(x: H, y: H, s: float):
    i = wp.tid()
    y[i] = x[i] * x[i] * wp.float16(s)


@wp.kernel
def grids(x: F2, y: F2, s: float):
    i, j = wp.tid()
    y[i, j] = x[i, j] * s * float(j)


@wp.kernel
def turned(x: F2, y: F2, s: float):
    i, j = wp.tid()
    y[j, i] = x[j, i] * s


@wp.kernel
def neighbours(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] + s * x[wp.min(i + 1, x.shape[0] - 1)]


@wp.kernel
def reverses(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[x.shape[0] - 1 - i] * s


@wp.kernel
def shared(x: F, y: F, s: float):
    i = wp.tid()
    y[i] = x[i] * x[0] * s


@wp.kernel
def shifted(x: F, y: F, s: float):
    i = wp.tid()
    y[(i + 1) % x.shape[0]] = x[i] * s


TAKEN = {  # those whose cotangents are taken from where they lie
    plain: (4099,), guarded: (3000,), adds: (2049,), spins: (1100,), climbs: (1100,),
    vectors: (1300,), doubles: (1025,), halves: (4099,), grids: (37, 71),
}  # fmt: skip
OTHERS = {
    in_place: (2600,),
    turned: (40, 40),
    neighbours: (3000,),
    shared: (3000,),
    shifted: (3000,),
}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launches and cotangents that are small are taken to be large."""
    for name, value in SMALL.items():
        monkeypatch.setattr(schedule, name, value)
    monkeypatch.setattr(tape, "seed_at_once", lambda loss, grads: None)  # which does small ones
    monkeypatch.setattr(Guard, "made", False)  # as other tests may have left it
    monkeypatch.setattr(seeding, "VAST", 1)
    monkeypatch.setattr(blank, "VAST", 1)
    monkeypatch.setattr(seeded, "NEAR", 1024)
    yield


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the gradient was known to be zero, of each pass that went the short way."""
    found: list[bool] = []
    run = runner.run_seeded

    def noted(*args: Any) -> Any:
        head, _ = args[-1][1][:96], found.append(False)
        found[-1] = int.from_bytes(head[64:72], "little") != 0  # where the memory near by is
        return run(*args)

    monkeypatch.setattr(runner, "run_seeded", noted)
    return found


def _inputs(kernel: Any, shape: tuple[int, ...], seed: int = 0) -> tuple[Any, ...]:
    dtype = {vectors: wp.vec3, doubles: wp.float64, halves: wp.float16}.get(kernel, wp.float32)
    numbers = {doubles: np.float64, halves: np.float16}.get(kernel, np.float32)
    inner = (3,) if kernel is vectors else ()
    rng = np.random.default_rng(seed)
    draw = lambda: rng.normal(size=(*shape, *inner)).astype(numbers)  # noqa: E731
    x = wp.array(draw(), dtype=dtype, requires_grad=True)
    y = wp.array(draw(), dtype=dtype, requires_grad=True)
    return x, y, draw(), draw()


def _grads(kernel: Any, shape: tuple[int, ...], passes: int = 3) -> list[np.ndarray[Any, Any]]:
    x, y, *cotangents = _inputs(kernel, shape)
    recorded = wp.Tape()
    with recorded:
        wp.launch(kernel, dim=shape, inputs=[x, y, 0.75])
    out = []
    for k in range(passes):
        given: Any = cotangents[k % 2]
        if k != 1:  # arrays, and what NumPy has
            given = wp.array(given, dtype=y.dtype)
        recorded.backward(grads={y: given})
        out += [np.array(x.grad.numpy()), np.array(wp.clone(y.grad).numpy())]
    return out


def _same(a: list[np.ndarray[Any, Any]], b: list[np.ndarray[Any, Any]]) -> None:
    for p, q in zip(a, b, strict=True):
        assert p.tobytes() == q.tobytes()


def _as_before(monkeypatch: pytest.MonkeyPatch, kernel: Any, shape: tuple[int, ...]) -> Any:
    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        return _grads(kernel, shape)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("kernel", TAKEN, ids=lambda k: k.key)
def test_gradients_are_the_same_bits(
    kernel: Any, threads: int, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wp.config, "num_threads", threads)
    expected = _as_before(monkeypatch, kernel, TAKEN[kernel])
    assert not taken
    _same(_grads(kernel, TAKEN[kernel]), expected)
    assert taken, "the cotangent was copied"


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda k: k.key)
def test_others_get_a_copy(kernel: Any, taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _as_before(monkeypatch, kernel, OTHERS[kernel])
    _same(_grads(kernel, OTHERS[kernel]), expected)
    assert not taken


def _tape(kernel: Any, shape: tuple[int, ...]) -> tuple[wp.Tape, Any, Any, Any]:
    x, y, c, _ = _inputs(kernel, shape)
    recorded = wp.Tape()
    with recorded:
        wp.launch(kernel, dim=shape, inputs=[x, y, 0.75])
    recorded.backward(grads={y: c})  # compiles the adjoint
    recorded.zero()
    return recorded, x, y, wp.array(c, dtype=y.dtype)


def test_memory_of_a_gradient_that_is_zero_is_left_alone(taken: list[bool]) -> None:
    recorded, x, y, c = _tape(plain, (3000,))
    recorded.backward(grads={y: c})
    recorded.backward(grads={y: c})
    assert taken[-1] is True
    assert not y.grad.numpy().any()


def test_a_gradient_that_others_may_write_is_not_known(taken: list[bool]) -> None:
    recorded, x, y, c = _tape(plain, (3000,))
    recorded.backward(grads={y: c})
    seen = y.grad.numpy()
    seen[5] = 3.0
    recorded.backward(grads={y: c})
    assert taken[-1] is False
    assert not y.grad.numpy().any()


def test_a_gradient_that_was_written_is_not_known(taken: list[bool]) -> None:
    recorded, x, y, c = _tape(guarded, (3000,))
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
    recorded, x, y, c = _tape(guarded, (3000,))
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
    expected = _as_before(monkeypatch, climbs, (1100,))
    asked: list[str] = []
    entry = Variants.entry

    def noted(self: Variants, backend: Any, form: Any, *rest: Any) -> Any:
        asked.append(form)
        return entry(self, backend, form, *rest)

    monkeypatch.setattr(Variants, "entry", noted)
    monkeypatch.setattr(seeded, "NEAR", near)
    monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
    _same(_grads(climbs, (1100,)), expected)
    assert True in taken
    assert "checkpointed" in asked


def test_a_cotangent_that_is_a_gradient_is_copied(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    def grads() -> list[np.ndarray[Any, Any]]:
        recorded, x, y, _ = _tape(plain, (3000,))
        x.grad.fill_(2.0)
        recorded.backward(grads={y: x.grad})  # is added to, where it is read
        return [np.array(x.grad.numpy())]

    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        expected = grads()
    taken.clear()
    found = grads()
    assert len(taken) <= 1  # but for the first pass
    _same(found, expected)


def _shared_gradient(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x.grad
    return [x, y, 2.0], y, x


def _shared_memory(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x.grad[:]
    return [x, y, 2.0], y, x


def _gradient_as_input(n: int) -> tuple[Any, ...]:
    y = wp.array(np.full(n, 0.5, np.float32), requires_grad=True)
    x = y.grad
    x.requires_grad = True
    return [x, y, 2.0], y, x


def _input_as_gradient(n: int) -> tuple[Any, ...]:
    x, y = (wp.array(np.full(n, 0.5, np.float32), requires_grad=True) for _ in range(2))
    y.grad = x
    return [x, y, 2.0], y, x


@pytest.mark.parametrize(
    "make", [_shared_gradient, _shared_memory, _gradient_as_input, _input_as_gradient]
)
@pytest.mark.parametrize("kernel", [plain, adds, guarded, reverses], ids=lambda k: k.key)
def test_gradients_that_others_have_too(
    kernel: Any, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their memory is another array's of the launch: it must have what it would have had."""

    def grads() -> list[np.ndarray[Any, Any]]:
        args, y, x = make(3000)
        recorded = wp.Tape()
        with recorded:
            wp.launch(kernel, 3000, args)
        out = []
        for k in range(6):
            recorded.backward(grads={y: np.full(3000, 1.0 + k, np.float32)})
            out += [np.array(wp.clone(a).numpy()) for a in (x.grad, y.grad)]
        return out

    with monkeypatch.context() as m:
        m.setattr(seeding, "VAST", 1 << 60)
        expected = grads()
    _same(grads(), expected)


@wp.kernel
def two_names(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]
    z[i] = 3.0 * x[i]


def test_results_with_two_names() -> None:
    x, y = (wp.array(np.full(3000, 0.5, np.float32), requires_grad=True) for _ in range(2))
    z = y.reshape(3000)
    recorded = wp.Tape()
    with recorded:
        wp.launch(two_names, 3000, [x, y, z])
    for k in range(1, 7):
        recorded.backward(grads={y: np.ones(3000, np.float32)})
        np.testing.assert_array_equal(x.grad.numpy(), np.full(3000, 3.0 * k, np.float32))


@wp.kernel
def unused(x: F, y: F, z: F):
    i = wp.tid()
    y[x.shape[0] - 1 - i] = 3.0 * x[i]


def test_a_gradient_that_goes_by_another_name() -> None:
    """The cotangent is that of an argument that the kernel does not touch."""
    x, y, z = (wp.array(np.full(3000, 0.5, np.float32), requires_grad=True) for _ in range(3))
    z.grad = y.grad
    recorded = wp.Tape()
    with recorded:
        wp.launch(unused, 3000, [x, y, z])
    c = np.linspace(0, 1, 3000, dtype=np.float32)
    for k in range(1, 5):
        recorded.backward(grads={z: c})
        np.testing.assert_allclose(x.grad.numpy(), 3 * k * c[::-1], rtol=1e-6)


@wp.kernel
def both(x: F, y: F, z: F):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * z[i]
    if x[i] > 0.0:
        z[i] = x[i] * 2.0


@wp.kernel
def ahead(x: F, y: F, z: F):
    i = wp.tid()
    if i + 1 < x.shape[0]:
        y[i + 1] = x[i] * 0.5
    z[i] = x[i] * x[i]


RANDOM = (two_names, unused, both, ahead)


def _random_passes(seed: int) -> list[np.ndarray[Any, Any]]:
    """Arrays and gradients that may meet each other, and passes with writes between them."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([256, 700, 1024]))
    one_of = lambda *of: of[int(rng.integers(len(of)))]  # noqa: E731
    values, grads = (wp.array(rng.normal(size=4 * n).astype(np.float32)) for _ in range(2))
    arrays: list[Any] = []
    for _ in range(3):
        how = one_of("own", "own", "own", "part", "view")
        if how == "part":
            at = int(rng.integers(3 * n))
            a = values[at : at + n]
        elif how == "view" and arrays:
            a = one_of(*arrays).reshape(n)
        else:
            a = wp.array(rng.normal(size=n).astype(np.float32))
        a.requires_grad = bool(rng.integers(6))
        if a.requires_grad and a._origin is None:
            where = one_of("own", "own", "own", "part", "shared", "input")
            if where == "part":
                at = int(rng.integers(3 * n))
                a.grad = grads[at : at + n]
            elif where == "shared" and arrays and arrays[-1].requires_grad:
                a.grad = arrays[-1].grad
            elif where == "input" and arrays:
                a.grad = one_of(*arrays)
        arrays.append(a)
    recorded, kernel, of = wp.Tape(), one_of(*RANDOM), one_of(*arrays)
    of.requires_grad = True
    with recorded:
        wp.launch(kernel, n, arrays)
    cotangent = wp.array(rng.normal(size=n).astype(np.float32))
    cotangent = one_of(cotangent, cotangent, cotangent, one_of(*arrays), grads[n // 2 : n // 2 + n])
    out = []
    for _ in range(4):
        recorded.backward(grads={of: cotangent})
        action = one_of("none", "none", "zero", "fill", "see", "address")
        gradient = of.grad
        if action == "zero":
            recorded.zero()
        elif action == "fill":
            gradient[1:7].fill_(2.0)
        elif action == "see":
            gradient.numpy()[3] = 5.0
        elif action == "address" and gradient.is_contiguous:
            wp.array(ptr=gradient.ptr, shape=(3,), dtype=float).fill_(7.0)
        made = [values, grads, *arrays, *(a.grad for a in arrays if a.grad is not None)]
        out += [np.array(wp.clone(a).numpy()) for a in made]
    return out


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", range(0, 240, 120))
def test_random_arrays_that_meet(
    first: int, taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(first, first + 120):
        with monkeypatch.context() as m:
            m.setattr(seeding, "VAST", 1 << 60)
            expected = _random_passes(seed)
        _same(_random_passes(seed), expected)
    assert True in taken and False in taken


def test_writes_through_an_address(taken: list[bool]) -> None:
    recorded, x, y, c = _tape(plain, (3000,))
    recorded.backward(grads={y: c})
    recorded.backward(grads={y: c})
    assert taken[-1] is True
    wp.array(ptr=y.grad.ptr, shape=(3000,), dtype=float).fill_(5.0)
    recorded.backward(grads={y: c})
    assert taken[-1] is False
    assert not y.grad.numpy().any()


def test_parts_of_a_larger_array(taken: list[bool]) -> None:
    whole = wp.array(np.linspace(-1, 1, 6000, dtype=np.float32), requires_grad=True)
    y = wp.zeros(6000, dtype=float, requires_grad=True)
    recorded = wp.Tape()
    with recorded:
        wp.launch(plain, dim=3000, inputs=[whole[1000:4000], y[2000:5000], 0.5])
    c = np.ones(6000, np.float32)
    for _ in range(2):
        recorded.backward(grads={y: c})  # of the array of which a part was written
    np.testing.assert_allclose(
        whole.grad.numpy()[1000:4000],
        2 * (0.5 * np.cos(whole.numpy()[1000:4000]) + 2 * whole.numpy()[1000:4000]),
        atol=1e-6,
    )
    assert (y.grad.numpy() == np.r_[np.ones(2000), np.zeros(3000), np.ones(1000)]).all()


def test_launches_before_it_run_backward_too(taken: list[bool]) -> None:
    x = wp.array(np.linspace(0, 1, 3000, dtype=np.float32), requires_grad=True)
    y, z = (wp.zeros(3000, dtype=float, requires_grad=True) for _ in range(2))
    recorded = wp.Tape()
    with recorded:
        wp.launch(plain, dim=3000, inputs=[x, y, 0.0])
        wp.launch(plain, dim=3000, inputs=[y, z, 0.0])
    for k in range(1, 4):
        recorded.backward(grads={z: np.ones(3000, np.float32)})
        np.testing.assert_allclose(x.grad.numpy(), 4 * k * x.numpy() ** 3, rtol=2e-6)
    assert len(taken) >= 2  # but for the first pass, which compiles


def test_no_memory_near_by(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    def none(step: int, reach: int) -> Any:
        raise MemoryError

    monkeypatch.setattr(seeded, "_Room", none)
    monkeypatch.setattr(seeded, "_rooms", [])
    expected = _as_before(monkeypatch, plain, (3000,))
    _same(_grads(plain, (3000,)), expected)
    assert taken and not any(taken)


def test_places_that_others_have(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = _as_before(monkeypatch, plain, (3000,))
    room = seeded._room(1 << 16, 1 << 20)
    assert room is not None
    room.taken[:] = [1] * len(room.taken)
    try:
        _same(_grads(plain, (3000,)), expected)
    finally:
        room.taken[:] = [0] * len(room.taken)
    assert True in taken
    recorded, _, y, c = _tape(plain, (3000,))
    recorded.backward(grads={y: c})
    assert not any(room.taken)


def test_gradients_that_are_retained(taken: list[bool]) -> None:
    recorded, x, y, c = _tape(plain, (3000,))
    y.retain_grad = True
    taken.clear()
    recorded.backward(grads={y: c})
    np.testing.assert_array_equal(y.grad.numpy(), c.numpy())
    assert not taken


def test_who_watches_sees_the_cotangent_being_written(
    taken: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.runtime import storage

    recorded, _, y, c = _tape(plain, (3000,))
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(storage, "watchers", [lambda s, lo, hi: told.append((lo, hi))])
    taken.clear()
    recorded.backward(grads={y: c})
    assert (y.grad.lo, y.grad.hi) in told
    assert not taken


def test_large_gradients_as_they_are(taken: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(Guard, "made", False)
    passes: list[bool] = []
    run = seeded.run
    monkeypatch.setattr(seeded, "run", lambda *args: (passes.append(args[-1]), run(*args))[1])
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
