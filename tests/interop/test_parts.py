"""Tensors that are made of views of an array: each has its part of the array's gradient."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.interop.drivers import Driver, drivers

pytestmark = [
    pytest.mark.filterwarnings("ignore:No ccache found:UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|paddle|jax|google).*"),
]
frameworks = drivers(lambda d: d.gradients is not None and d.give is not None)


@wp.kernel
def energy(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


def recorded(x: Any) -> Any:
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(energy, x.shape[0], [x], [out])
    return lambda: tape.backward(out)


def numbers(n: int = 6) -> Any:
    return wp.array(np.arange(float(n)), dtype=float, requires_grad=True)


VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda a: a[2:5],
    "steps": lambda a: a[::2],
    "slice of slice": lambda a: a[1:][1:3],
    "shape": lambda a: a.reshape((2, 3)),
    "row of shape": lambda a: a.reshape((2, 3))[1],
    "transposed": lambda a: a.reshape((2, 3)).transpose(),
}


@frameworks
@pytest.mark.parametrize("name", VIEWS)
def test_a_part_that_is_forgotten_is_zero_and_comes_back(d: Driver, name: str) -> None:
    """The optimizer would do nothing from then on, without a word."""
    a, view = numbers(), VIEWS[name]
    t, g = d.give(view(a)), d.gradients
    backward = recorded(a)
    want = view(wp.array(2 * np.arange(6.0), dtype=float)).numpy()
    for _ in range(3):
        g.forget(t)
        backward()
        assert (np.asarray(d.read(g.of(t))) == want).all()
    every = a.grad.numpy().copy()
    view(a.grad).zero_()
    assert not np.asarray(d.read(g.of(t))).any()  # one memory
    assert sorted(every)[:1] == [0.0]
    assert every.sum() >= want.sum()


@frameworks
def test_a_launch_of_the_view_itself(d: Driver) -> None:
    a = numbers()
    v = a[2:5]
    t, backward = d.give(v), recorded(v)
    for _ in range(3):
        d.gradients.forget(t)
        backward()
        assert d.read(d.gradients.of(t)).tolist() == [4.0, 6.0, 8.0]
    assert a.grad.list() == [0.0, 0.0, 4.0, 6.0, 8.0, 0.0]


@frameworks
def test_whole_and_parts_at_once(d: Driver) -> None:
    a, g = numbers(), d.gradients
    parts = [d.give(x) for x in (a[2:5], a, a[3:])]
    backward = recorded(a)
    for forgotten in (parts, parts[:1], parts[1:2], parts[2:]):
        a.grad.zero_()
        for t in forgotten:
            g.forget(t)
        backward()
        for t, part in zip(parts, (slice(2, 5), slice(0, 6), slice(3, 6)), strict=True):
            assert d.read(g.of(t)).tolist() == (2 * np.arange(6.0)[part]).tolist()


@frameworks
def test_a_new_gradient_of_the_array_is_that_of_its_parts(d: Driver) -> None:
    a = numbers()
    t = d.give(a[2:5])
    a.grad = wp.ones(6, dtype=float)
    assert d.read(d.gradients.of(t)).tolist() == [1.0] * 3
    recorded(a)()
    assert d.read(d.gradients.of(t)).tolist() == a.grad.list()[2:5]


@frameworks
def test_what_the_framework_puts_there_is_the_arrays(d: Driver) -> None:
    a, g = numbers(), d.gradients
    t = d.give(a[2:5])
    (t * 2.0).sum().backward()
    assert a.grad.list() == [0.0, 0.0, 2.0, 2.0, 2.0, 0.0]
    g.forget(t)
    (t * 3.0).sum().backward()  # into memory of its own
    assert a.grad.list() == [0.0, 0.0, 3.0, 3.0, 3.0, 0.0]
    a.grad.fill_(5.0)
    assert d.read(g.of(t)).tolist() == [5.0] * 3


@frameworks
def test_vectors(d: Driver) -> None:
    a = wp.ones((3, 4), dtype=wp.vec2, requires_grad=True)
    t = d.give(a[1])
    a.grad.fill_(3.0)
    assert (np.asarray(d.read(d.gradients.of(t))) == 3.0).all()
    d.gradients.forget(t)
    assert a.grad.numpy().sum(axis=(1, 2)).tolist() == [24.0, 0.0, 24.0]


@frameworks
def test_nothing_lives_longer_than_who_uses_it(d: Driver) -> None:
    a = numbers()
    t, alive = d.give(a[2:5]), weakref.ref(a)
    del a
    gc.collect()
    assert d.read(d.gradients.of(t)).tolist() == [0.0] * 3
    del t
    gc.collect()
    assert alive() is None


def test_a_stretch_of_pytorch_has_its_gradient_in_any_mode() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    for mode in (torch.inference_mode, torch.no_grad, torch.enable_grad):
        x = wp.ones(3, dtype=float, requires_grad=True)
        with mode(), wp.Tape() as tape:
            out = wp.record_torch(lambda t: (t * t).sum(), [x])
            tape.backward(out)
        assert x.grad.list() == [2.0] * 3
