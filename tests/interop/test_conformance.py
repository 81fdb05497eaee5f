"""One suite for all frameworks: what is shared, what is refused, how long memory lives."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.interop.base import names
from tests.interop.drivers import DRIVERS, ELSEWHERE, Driver, drivers, says_what_to_do

pytestmark = [
    # Frameworks' own words.
    pytest.mark.filterwarnings("ignore:No ccache found:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|paddle|jax|google).*"),
]

GRADIENTS = [d for d in DRIVERS if d.gradients]
REFUSED = [(d, name) for d in (*DRIVERS, *ELSEWHERE) for name in d.refused]


def scalar(name: str) -> Any:
    return wp.bool if name == "bool" else getattr(wp, name)


@wp.kernel
def pass_on(x: wp.array(dtype=Any), y: wp.array(dtype=Any)):
    i = wp.tid()
    y[i] = x[i]


@wp.kernel
def add_one(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def norms(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.dot(x[i], x[i])


@wp.kernel
def traces(x: wp.array(dtype=wp.mat22, ndim=2), y: wp.array(dtype=float, ndim=2)):
    i, j = wp.tid()
    y[i, j] = wp.trace(x[i, j])


def test_no_adapter_is_left_out() -> None:
    """A new file in engine/interop needs a driver."""
    assert set(names()) <= {d.name for d in (*DRIVERS, *ELSEWHERE)}


# ---- types and layouts


@pytest.mark.parametrize(("d", "kind"), [(d, k) for d in DRIVERS for k in d.kinds], ids=str)
def test_every_type_is_shared(d: Driver, kind: str) -> None:
    """Taken by name and by a launch, which compiles an open kernel for it."""
    values = (np.arange(12).reshape(3, 4) % 2).astype(kind)
    x = d.make(values)
    a = d.take(x)
    assert (a.shape, a.dtype) == ((3, 4), scalar(kind))
    assert np.array_equal(a.numpy(), values)
    assert np.array_equal(d.take(x, dtype=scalar(kind)).numpy(), values)
    flat = d.make(values.ravel())
    y = wp.zeros(12, dtype=scalar(kind))
    if d.name not in ("dlpack", "interface"):  # what they are, a launch has to be told
        wp.launch(pass_on, dim=12, inputs=[flat], outputs=[y])
        assert np.array_equal(y.numpy(), values.ravel())
    if d.give is not None:
        back = d.give(wp.array(values, dtype=scalar(kind)))
        assert np.array_equal(d.read(back) if d.name != "dlpack" else back, values)


@drivers(lambda d: d.written)
def test_what_launches_write_is_there(d: Driver) -> None:
    x = d.make(np.zeros(5, np.float32))
    wp.launch(add_one, dim=5, inputs=[x])
    a = d.take(x)
    wp.launch(add_one, dim=5, inputs=[a])
    assert (d.read(x) == 2.0).all()
    wp.copy(a, wp.full(5, 7.0, dtype=float))
    assert (d.read(x) == 7.0).all()


@drivers(lambda d: d.sliced is not None)
def test_steps_are_kept(d: Driver) -> None:
    values = np.arange(24, dtype=np.float32).reshape(8, 3)
    x = d.make(values)
    part = d.sliced(x)
    a = d.take(part)
    assert (a.shape, a.strides) == ((4, 3), (24, 4))
    y = wp.zeros(4, dtype=float)
    wp.launch(norms, dim=4, inputs=[part], outputs=[y])
    assert np.allclose(y.numpy(), (values[::2] ** 2).sum(1))
    if d.written:
        a.zero_()
        assert not d.read(x)[::2].any()
        assert np.array_equal(d.read(x)[1::2], values[1::2])


@drivers()
def test_last_axes_are_components(d: Driver) -> None:
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    a = d.take(d.make(values), dtype=wp.mat22)
    assert (a.shape, a.dtype) == ((2, 3), wp.mat22)
    y = wp.zeros((2, 3), dtype=float)
    wp.launch(traces, dim=(2, 3), inputs=[d.make(values)], outputs=[y])
    assert np.array_equal(y.numpy(), values[..., 0, 0] + values[..., 1, 1])
    one = d.take(d.make(np.array([1, 2, 3], np.float32)), dtype=wp.vec3)
    assert (one.shape, one.list()) == ((1,), [wp.vec3(1.0, 2.0, 3.0)])
    high = np.zeros((1, 2, 1, 2, 3), np.float32)  # five axes, four dimensions
    assert d.take(d.make(high), dtype=wp.vec3).shape == (1, 2, 1, 2)


@drivers()
def test_nothing_and_one_number(d: Driver) -> None:
    for shape in [(0,), (0, 3), (3, 0), (1, 0, 3)]:
        x = d.make(np.zeros(shape, np.float32))
        assert d.take(x).shape == shape
        assert d.take(x).size == 0
    wp.launch(norms, dim=0, inputs=[d.make(np.zeros((0, 3), np.float32))], outputs=[wp.zeros(0)])
    if d.name != "dlpack":
        assert d.take(d.make(np.zeros((0, 3), np.float32)), dtype=wp.vec3).shape == (0,)
    if d.name != "interface":
        assert d.take(d.make(np.array(5.0, np.float32))).numpy().tolist() == [5.0]
    if d.give is not None:
        assert tuple(np.shape(d.give(wp.zeros((1, 0), dtype=wp.vec2)))) == (1, 0, 2)


@drivers()
def test_functions_of_the_host_take_them(d: Driver) -> None:
    values = np.array([1, 2, 3], np.float32)
    x = d.make(values)
    assert np.array_equal(wp.array(x).numpy(), values)
    assert wp.array(x, dtype=wp.vec3).shape == (1,)
    assert np.array_equal(wp.array(x, dtype=wp.float64).numpy(), values)
    assert (wp.zeros_like(x).shape, wp.zeros_like(x).dtype) == ((3,), wp.float32)
    a = wp.zeros(3, dtype=float, requires_grad=True)
    a.assign(x)
    assert np.array_equal(a.numpy(), values)
    if d.name == "dlpack":  # an object that has no more than that is taken by from_dlpack
        return
    a[1:] = d.make(np.array([8, 9], np.float32))
    assert a.numpy().tolist() == [1.0, 8.0, 9.0]
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[a], outputs=[y])
    tape.backward(grads={y: x})
    assert np.array_equal(a.grad.numpy(), 2.0 * values * a.numpy())
    if d.package:
        wp.copy(a, x)
        assert np.array_equal(a.numpy(), values)
        grad = wp.zeros(3, dtype=float)
        wp.launch(square, dim=3, inputs=[a], outputs=[y], adjoint=True, adj_inputs=[grad],
                  adj_outputs=[x])  # fmt: skip
        assert np.array_equal(grad.numpy(), 2.0 * values * values)


@drivers(lambda d: d.frozen is not None)
def test_read_only_memory_is_read_and_not_written(d: Driver) -> None:
    values = np.array([1, 2, 3], np.float32)
    x = d.frozen(values)
    y = wp.zeros(3, dtype=float)
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
    assert np.array_equal(y.numpy(), values**2)
    for write in (
        lambda: wp.launch(add_one, dim=3, inputs=[x]),
        lambda: d.take(x).zero_(),
        lambda: wp.copy(d.take(x), y),
    ):
        with pytest.raises(wp.LaunchError, match="E206") as e:
            write()
        says_what_to_do(e.value)
    assert np.array_equal(d.read(x), values)


# ---- lifetimes


@drivers()
def test_the_array_outlives_what_it_is_made_of(d: Driver) -> None:
    values = np.arange(1000, dtype=np.float32)
    x = d.make(values)
    a = d.take(x)
    seen = weakref.ref(x)
    del x
    gc.collect()
    rubbish = [np.full(1000, -1.0, np.float32) for _ in range(50)]
    assert np.array_equal(a.numpy(), values)
    gone = weakref.ref(a.storage)
    del a, rubbish
    gc.collect()
    assert seen() is None
    assert gone() is None


@drivers(lambda d: d.give is not None)
def test_what_is_made_of_an_array_outlives_it(d: Driver) -> None:
    values = np.arange(1000, dtype=np.float32)
    a = wp.array(values, dtype=float)
    x = d.give(a)
    storage, array = weakref.ref(a.storage), weakref.ref(a)
    del a
    gc.collect()
    assert array() is None
    rubbish = [np.full(1000, -1.0, np.float32) for _ in range(50)]
    assert np.array_equal(d.read(x) if d.name != "dlpack" else x, values)
    del x, rubbish
    gc.collect()
    assert storage() is None


@drivers(lambda d: d.give is not None and d.name not in ("dlpack", "jax"))
def test_what_is_made_of_an_array_may_die_first(d: Driver) -> None:
    """And what comes back is the same memory, not another block in its place."""
    a = wp.zeros(100, dtype=float)
    x = d.give(a)
    back = d.take(x)
    assert back.storage is a.storage
    del x, back
    gc.collect()
    a.fill_(3.0)
    assert (a.numpy() == 3.0).all()


# ---- gradients


def both(d: Driver) -> list[Any]:
    """The ways in which a tensor comes into a launch: as it is, and as an array."""
    return [lambda x: x, d.take]


@pytest.mark.parametrize("way", [0, 1], ids=["direct", "taken"])
@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_gradients_are_one(d: Driver, way: int) -> None:
    """A backward pass adds to the tensor's gradient; forgotten, it begins with zeros."""
    assert d.gradients is not None
    values = np.array([1, 2, 3], np.float32)
    x = d.gradients.ask(d.make(values))
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[both(d)[way](x)], outputs=[y])
    tape.backward(grads={y: np.ones(3, np.float32)})
    assert np.array_equal(d.read(d.gradients.of(x)), 2 * values)
    y.grad.zero_()
    tape.backward(grads={y: np.ones(3, np.float32)})  # it is added to
    assert np.array_equal(d.read(d.gradients.of(x)), 4 * values)
    tape.zero()
    assert not d.read(d.gradients.of(x)).any()
    tape.backward(grads={y: np.ones(3, np.float32)})
    d.gradients.forget(x)
    assert d.gradients.of(x) is None
    tape.backward(grads={y: np.ones(3, np.float32)})
    assert np.array_equal(d.read(d.gradients.of(x)), 2 * values)


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_gradients_of_arrays_are_tensors_too(d: Driver) -> None:
    assert d.gradients is not None and d.give is not None
    values = np.array([1, 2, 3], np.float32)
    a = wp.array(values, dtype=float, requires_grad=True)
    x, other = d.give(a), d.give(a)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[a], outputs=[y])
    for _ in range(3):
        d.gradients.forget(x)
        tape.backward(grads={y: np.ones(3, np.float32)})
        assert np.array_equal(a.grad.numpy(), 2 * values)
        for t in (x, other):
            assert np.array_equal(d.read(d.gradients.of(t)), 2 * values)


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_another_gradient_is_followed(d: Driver) -> None:
    """What the framework, or the program, puts there is what the array has."""
    assert d.gradients is not None
    x = d.gradients.ask(d.make(np.ones(3, np.float32)))
    a = d.take(x)
    x.grad = d.make(np.full(3, 5.0, np.float32))
    assert a.grad.numpy().tolist() == [5.0] * 3
    a.grad = wp.full(3, 8.0, dtype=float)
    assert d.read(d.gradients.of(x)).tolist() == [8.0] * 3
    assert a[1:].grad.numpy().tolist() == [8.0] * 2
    a.requires_grad = False
    assert a.grad is None


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_gradients_outlive_what_they_are_of(d: Driver) -> None:
    assert d.gradients is not None and d.give is not None
    x = d.gradients.ask(d.make(np.ones(3, np.float32)))
    a = d.take(x)
    a.grad.fill_(4.0)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    assert d.read(d.gradients.of(x)).tolist() == [4.0] * 3
    a = d.take(x)
    del x
    gc.collect()
    assert a.grad.numpy().tolist() == [4.0] * 3
    b = wp.zeros(3, dtype=float, requires_grad=True)
    t = d.give(b)
    b.grad.fill_(2.0)
    seen = weakref.ref(t)
    del t
    gc.collect()
    assert seen() is None
    assert b.grad.numpy().tolist() == [2.0] * 3
    t = d.give(b)
    del b
    gc.collect()
    assert d.read(d.gradients.of(t)).tolist() == [2.0] * 3


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_a_computed_tensor_is_told(d: Driver) -> None:
    """Passed to a launch on a tape, its gradient would end there: without a word elsewhere."""
    assert d.gradients is not None
    x = d.gradients.computed(d.gradients.ask(d.make(np.ones(3, np.float32))))
    y = wp.zeros(3, dtype=float, requires_grad=True)
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
    with wp.Tape(), pytest.warns(UserWarning, match="its gradient ends there"):
        wp.launch(square, dim=3, inputs=[x], outputs=[y])
    a = d.take(x)
    with wp.Tape() as tape:
        wp.launch(square, dim=3, inputs=[a], outputs=[y])
    tape.backward(grads={y: np.ones(3, np.float32)})
    assert a.grad.numpy().tolist() == [4.0] * 3


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_vectors_have_their_gradients(d: Driver) -> None:
    assert d.gradients is not None
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = d.gradients.ask(d.make(values))
    loss = d.gradients.ask(d.make(np.zeros(2, np.float32)))
    with wp.Tape() as tape:
        wp.launch(norms, dim=2, inputs=[x], outputs=[loss])
    tape.backward(grads={loss: d.make(np.array([1, 2], np.float32))})
    assert np.array_equal(d.read(d.gradients.of(x)), values * [[2], [4]])
    assert d.take(x, dtype=wp.vec3).grad.dtype == wp.vec3


# ---- errors


@drivers(lambda d: d.name not in ("dlpack", "interface"))
def test_what_does_not_fit_is_told(d: Driver) -> None:
    y = wp.zeros(3, dtype=float)
    for bad, code in [
        (np.zeros(3, np.int32), "E202"),
        (np.zeros((3, 1), np.float32), "E203"),
        (np.zeros((), np.float32), "E203"),
        (np.zeros((1, 1, 1, 1, 3), np.float32), "E203"),
    ]:
        with pytest.raises(wp.LaunchError, match=code) as e:
            wp.launch(square, dim=3, inputs=[d.make(bad)], outputs=[y])
        if d.name != "numpy" or code == "E202":
            says_what_to_do(e.value)
        assert "argument 'x'" in str(e.value)
    with pytest.raises(wp.LaunchError, match=r"E20[26]") as e:
        wp.launch(norms, dim=3, inputs=[d.make(np.zeros((3, 2), np.float32))], outputs=[y])
    with pytest.raises(wp.LaunchError, match="E201") as e:
        wp.launch(square, dim=3, inputs=d.make(np.zeros(3, np.float32)), outputs=[y])
    says_what_to_do(e.value)


@drivers(lambda d: d.package in ("torch", "paddle", "jax"))
def test_what_cannot_be_taken_is_told(d: Driver) -> None:
    for bad, dtype in [
        (np.zeros(3, np.float32), wp.int32),
        (np.zeros((3, 2), np.float32), wp.vec3),
        (np.zeros((1, 1, 1, 1, 1), np.float32), None),
    ]:
        with pytest.raises(wp.LaunchError) as e:
            d.take(d.make(bad), dtype=dtype)
        says_what_to_do(e.value)
        assert isinstance(e.value, (TypeError, RuntimeError))
    for a in (wp.zeros(4, dtype=float)[::-1], 3.0):
        if d.give is not None and d.package != "jax":
            with pytest.raises(wp.LaunchError) as e:
                d.give(a)
            says_what_to_do(e.value)


@pytest.mark.parametrize(("d", "name"), REFUSED, ids=str)
def test_what_is_no_block_of_memory_is_told(d: Driver, name: str) -> None:
    x = d.refused[name]()
    y = wp.zeros(3, dtype=float)
    for use in (
        lambda: wp.launch(square, dim=3, inputs=[x], outputs=[y]),
        lambda: d.take(x),
        lambda: wp.array(x),
        lambda: wp.copy(y, x),
    ):
        with pytest.raises(wp.LaunchError, match=r"E20[246]") as e:
            use()
        says_what_to_do(e.value)


# ---- threads


@drivers(lambda d: d.name not in ("dlpack", "interface"))
def test_threads_take_and_launch_at_once(d: Driver) -> None:
    shared = d.make(np.arange(8, dtype=np.float32))
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for k in range(50):
                own = d.make(np.full(8, seed + k, np.float32))
                y = wp.zeros(8, dtype=float)
                wp.launch(square, dim=8, inputs=[own], outputs=[y])
                assert (y.numpy() == float(seed + k) ** 2).all()
                assert d.take(shared).numpy()[3] == 3.0
                wp.launch(square, dim=8, inputs=[shared], outputs=[y])
                assert y.numpy()[3] == 9.0
        except BaseException as e:
            failed.append(e)

    threads = [threading.Thread(target=work, args=(10 * k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


@pytest.mark.parametrize("d", GRADIENTS, ids=repr)
def test_threads_share_one_gradient(d: Driver) -> None:
    """Asked for by many at once, it is made once."""
    assert d.gradients is not None
    for _ in range(20):
        x = d.gradients.ask(d.make(np.ones(3, np.float32)))
        start, found = threading.Barrier(4), []

        def work(x: Any = x, start: Any = start, found: Any = found) -> None:
            start.wait()
            found.append(d.take(x).grad.ptr)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 4
        assert len(set(found)) == 1
