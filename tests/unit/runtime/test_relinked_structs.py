"""Kernels that make fields of structs in an array hold other arrays."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError, autograd
from engine.autograd import gradcheck_tape
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.struct
class Point:
    near: Floats
    at: wp.vec2d


@wp.struct
class Item:
    a: Floats
    k: float
    grid: wp.array(dtype=wp.vec2d, ndim=2)
    points: wp.array(dtype=Point)


@wp.struct
class Source:
    item: Item
    b: Floats


Items = wp.array(dtype=Item)


@wp.kernel
def fill(f: Items, s: Source, x: Floats):
    i = wp.tid()
    local = Item()
    local.a = s.item.a
    local.grid = s.item.grid
    local.points = s.item.points
    local.k = x[i] * x[i]
    if i == 1:
        local.a = s.b
    f[i] = local


@wp.func
def pick(data: Items, index: wp.array(dtype=int), out: Items, i: int):
    k = index[i]
    if k < 0:
        out[i].k = -1.0
    else:
        out[i] = data[k]


@wp.kernel
def map_items(data: Items, index: wp.array(dtype=int), out: Items):
    pick(data, index, out, wp.tid())


@wp.kernel
def one_field(data: Items, b: Floats, out: Items):
    i = wp.tid()
    if i == 0:
        out[i].a = data[1].a
    elif i == 1:
        out[i].a = b
    else:
        none = Item()
        out[i].a = none.a


@wp.kernel
def use_at_once(data: Items, out: Items, o: Floats):
    i = wp.tid()
    out[i].a = data[1 - i].a
    for k in range(len(out[i].a)):
        o[i] += out[i].a[k] * out[i].a[k] * data[i].k


@wp.kernel
def turn(f: Items):
    i = wp.tid()
    if i == 0:
        first = f[0]
        f[0] = f[1]
        f[1] = first


@wp.kernel
def weigh(f: Items, loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    t = wp.float64(0.0)
    for k in range(len(f[i].a)):
        t += wp.float64(f[i].a[k] * f[i].k) * wp.float64(k + 1 + i)
    for k in range(f[i].grid.shape[1]):
        t += f[i].grid[0, k][1] * wp.float64(f[i].k)
    for k in range(len(f[i].points)):
        t += wp.length_sq(f[i].points[k].at) * wp.float64(f[i].points[k].near[0])
    wp.atomic_add(loss, 0, t)


def floats(*values, dtype=float):
    return wp.array(np.array(values), dtype=dtype, requires_grad=True)


def source():
    grid = wp.array(np.array([[[1.0, 2.0], [0.5, -1.0]]]), dtype=wp.vec2d, requires_grad=True)
    near = floats(0.75, 2.0)
    points = wp.array([Point(near=near, at=wp.vec2d(1.0, -2.0))], dtype=Point, requires_grad=True)
    a, b = floats(1.5, -0.5, 2.0), floats(0.25, 3.0)
    s = Source(item=Item(a=a, grid=grid, points=points), b=b)
    return s, (a, b, grid, near)


def test_a_local_struct_with_arrays_is_stored():
    s, (a, b, grid, near) = source()
    x = floats(1.25, -0.75, 0.5)
    f = wp.zeros(3, dtype=Item, requires_grad=True)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(fill, 3, [f, s, x])
        wp.launch(weigh, 3, [f, loss])
    assert [f[i].a is (b if i == 1 else a) for i in range(3)] == [True] * 3
    assert all(f[i].grid is grid and f[i].points is s.item.points for i in range(3))

    def want(p):
        own = {0: p[0:3], 1: p[3:5], 2: p[0:3]}
        k = p[10:13] ** 2
        total = 3 * 5.0 * p[9]
        for i in range(3):
            total += sum(v * k[i] * (n + 1 + i) for n, v in enumerate(own[i]))
            total += (p[6] + p[8]) * k[i]
        return total

    arrays = (a, b, grid, near[:1], x)
    at = np.concatenate([v.numpy().astype(float).ravel() for v in arrays])
    assert loss.numpy()[0] == pytest.approx(want(at), rel=1e-6)
    tape.backward(loss)
    found = np.concatenate([v.grad.numpy().astype(float).ravel() for v in arrays])
    steps = np.eye(len(at)) * 1e-5
    expected = [(want(at + d) - want(at - d)) / 2e-5 for d in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)
    assert gradcheck_tape(tape, show_summary=False)
    moved = np.random.default_rng(2).normal(size=len(at))
    parts = np.split(moved, np.cumsum([v.numpy().size for v in arrays])[:-1])
    along = {v: t.reshape(v.numpy().shape) for v, t in zip(arrays, parts, strict=True)}
    (slope,) = autograd.jvp(tape, tangents=along)[loss].numpy()
    assert slope == pytest.approx(expected @ moved, rel=1e-5)


def test_structs_are_passed_on_from_one_array_to_another():
    rows = [floats(1.0, 2.0), floats(3.0), floats(-1.0, 0.5, 4.0)]
    data = wp.array([Item(a=r, k=n + 1.0) for n, r in enumerate(rows)], dtype=Item)
    out = wp.array([Item(a=rows[0], k=5.0)] * 4, dtype=Item)
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    index = wp.array([2, -1, 1, 2], dtype=int)
    with wp.Tape() as tape:
        wp.launch(map_items, 4, [data, index, out])
        wp.launch(weigh, 4, [out, loss])
    assert [out[i].a is rows[k] for i, k in enumerate((2, 0, 1, 2))] == [True] * 4
    assert out.numpy()["k"].tolist() == [3.0, -1.0, 2.0, 3.0]
    tape.backward(loss)
    # Thread i has the slope k (n + 1 + i) at element n of its array.
    want = [[-2.0, -3.0], [2.0 * 3.0], [3.0 * (1 + 4), 3.0 * (2 + 5), 3.0 * (3 + 6)]]
    assert [r.grad.numpy().tolist() for r in rows] == want


@pytest.mark.parametrize("record_cmd", [False, True])
def test_single_fields_arguments_and_none(record_cmd):
    rows = [floats(1.0, 2.0), floats(), floats(5.0)]
    data = wp.array([Item(a=r) for r in rows], dtype=Item)
    out = wp.array([Item(a=rows[0], k=2.0)] * 3, dtype=Item)
    b = floats(7.0)
    command = wp.launch(one_field, 3, [data, b, out], record_cmd=record_cmd)
    if record_cmd:
        assert all(out[i].a is rows[0] for i in range(3))
        command.launch()
    assert (out[0].a is rows[1], out[1].a is b, out[2].a) == (True, True, None)
    assert out.numpy()["k"].tolist() == [2.0] * 3
    assert all(data[i].a is r for i, r in enumerate(rows))
    if record_cmd:
        command.set_param_by_name("b", rows[2])
        command.launch()
        assert out[1].a is rows[2]


def test_what_a_field_holds_is_read_by_the_same_kernel():
    rows = [floats(1.0, 2.0), floats(3.0, -1.0, 0.5)]
    data = wp.array([Item(a=r, k=n + 2.0) for n, r in enumerate(rows)], dtype=Item)
    out = wp.zeros(2, dtype=Item)
    o = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(use_at_once, 2, [data, out, o])
    squares = [sum(r.numpy() ** 2) for r in rows]
    assert o.numpy().tolist() == [2.0 * squares[1], 3.0 * squares[0]]
    tape.backward(grads={o: np.array([1.0, 10.0])})
    np.testing.assert_allclose(rows[0].grad.numpy(), 60.0 * rows[0].numpy())
    np.testing.assert_allclose(rows[1].grad.numpy(), 4.0 * rows[1].numpy())
    assert gradcheck_tape(tape, show_summary=False)


def test_structs_of_one_array_change_places_and_keep_what_they_hold():
    f = wp.array([Item(a=floats(1.0), k=1.0), Item(a=floats(2.0, 3.0), k=2.0)], dtype=Item)
    wp.launch(turn, 2, [f])
    gc.collect()
    assert [f[i].a.numpy().tolist() for i in range(2)] == [[2.0, 3.0], [1.0]]
    wp.launch(turn, 2, [f[::-1]])
    gc.collect()
    assert [f[i].a.numpy().tolist() for i in range(2)] == [[1.0], [2.0, 3.0]]
    assert f.numpy()["k"].tolist() == [1.0, 2.0]


@wp.kernel
def swap(f: Items):
    f[0].a, f[1].a = f[1].a, f[0].a


@wp.kernel
def chosen(f: Items, b: Floats, c: Floats, first: bool):
    local = Item()
    if first:
        local.a = b
    f[0] = local
    f[1].a = b if not first else c


@wp.kernel
def spread(f: wp.array2d(dtype=Item), data: Items):
    i, j = wp.tid()
    f[i, j].a = data[(i + 2 * j) % 3].a


@wp.kernel
def first_elements(f: Items, loss: Floats):
    i = wp.tid()
    wp.atomic_add(loss, 0, f[i].a[0] * float(i + 1))


def test_a_tape_goes_on_with_what_the_structs_hold_by_then():
    rows = [floats(1.0), floats(2.0), floats(3.0)]
    f = wp.array([Item(a=r) for r in rows], dtype=Item)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(first_elements, 3, [f, loss])
        wp.launch(swap, 1, [f])
        wp.launch(first_elements, 3, [f, loss])
    assert loss.numpy().tolist() == [1.0 + 4.0 + 9.0 + 2.0 + 2.0 + 9.0]
    tape.backward(loss)
    assert [r.grad.numpy().tolist() for r in rows] == [[1.0 + 2.0], [2.0 + 1.0], [3.0 + 3.0]]


def test_an_array_that_is_chosen_by_the_kernel():
    old, b, c = floats(1.0), floats(2.0), floats(3.0)
    f = wp.array([Item(a=old)] * 3, dtype=Item)
    wp.launch(chosen, 1, [f, b, c, True])
    assert (f[0].a is b, f[1].a is c, f[2].a is old) == (True, True, True)
    wp.launch(chosen, 1, [f, b, None, False])
    assert (f[0].a, f[1].a is b) == (None, True)
    wp.launch(chosen, 1, [f, b, None, True])
    assert (f[0].a is b, f[1].a) == (True, None)


def test_views_of_two_dimensions():
    rows = [floats(1.0), floats(2.0, 3.0), floats()]
    data = wp.array([Item(a=r) for r in rows], dtype=Item)
    whole = wp.zeros((4, 6), dtype=Item)
    part = whole[::2, 1::2].transpose()
    wp.launch(spread, part.shape, [part, data])
    held = {(2 * j, 1 + 2 * i): rows[(i + 2 * j) % 3] for i in range(3) for j in range(2)}
    for at in np.ndindex(4, 6):
        assert whole[at].a is held.get(at)


@wp.kernel
def changed_in_place(f: Items, b: Floats, o: Floats):
    i = wp.tid()
    local = f[i]
    if not local.a or i == 1:
        local.a = b
    local.k += 1.0
    f[i] = local
    for k in range(len(f[i].a)):
        o[i] += f[i].a[k] * f[i].k * float(k + 1)


def test_a_struct_is_taken_changed_and_read_again():
    a, b = floats(2.0, -1.0, 0.5), floats(3.0, 4.0)
    f = wp.array([Item(a=a, k=1.0), Item(a=a, k=2.0), Item(k=3.0)], dtype=Item)
    o = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(changed_in_place, 3, [f, b, o])
    assert [f[0].a is a, f[1].a is b, f[2].a is b] == [True] * 3
    assert o.numpy().tolist() == [2.0 * 1.5, 3.0 * 11.0, 4.0 * 11.0]
    tape.backward(grads={o: np.array([1.0, 10.0, 100.0])})
    assert a.grad.numpy().tolist() == [2.0, 4.0, 6.0]
    assert b.grad.numpy().tolist() == [430.0, 860.0]
    assert gradcheck_tape(tape, show_summary=False)


@wp.func
def store(f: Items, b: Floats):
    f[0].a = b


@wp.kernel
def in_a_function(f: Items, b: Floats):
    store(f, b)


@wp.kernel
def a_part(f: Items, b: Floats):
    f[0].a = b[1:]


@wp.kernel
def inner(f: Items, b: Floats):
    f[0].points[0].near = b


@wp.kernel
def inner_of_another(f: Items):
    f[0].a = f[0].points[0].near


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (in_a_function, "where the argument of the kernel is unknown"),
        (a_part, "would refer to a part of an array"),
        (inner, "in its own structs"),
        (inner_of_another, "in its own structs"),
    ],
)
def test_what_is_refused(kernel, words):
    with pytest.raises(KernelError, match="E101") as error:
        lower_kernel(kernel.func)
        kernel.plan  # noqa: B018
    assert words in str(error.value)
    assert all(d.span.file == __file__ for d in error.value.diagnostics)


def test_launches_that_are_refused():
    rows = [floats(1.0), floats(2.0)]
    f = wp.array([Item(a=r) for r in rows], dtype=Item)
    o = wp.zeros(2, dtype=float)
    with pytest.raises(LaunchError, match=r"E206.*'out' and 'data' share memory"):
        wp.launch(use_at_once, 2, [f, f, o])
    with pytest.raises(LaunchError, match="E213"), wp.ScopedCapture():
        wp.launch(turn, 2, [f])
    with pytest.raises(LaunchError, match=r"E206.*shares memory with argument 'o'"):
        wp.launch(changed_in_place, 2, [f, o, o])
    with pytest.raises(LaunchError, match=r"E202.*not an array of the engine"):
        wp.launch(changed_in_place, 2, [f, o.numpy(), o])
    assert [f[i].a is r for i, r in enumerate(rows)] == [True, True]
    assert not o.numpy().any()
