"""Arrays of structs that hold arrays: memory, launches, tapes, what is refused."""

import copy
import gc
import pickle

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError, TapeError
from engine.autograd import gradcheck_tape


@wp.struct
class Point:
    at: wp.vec3
    near: wp.array(dtype=float)


@wp.struct
class Group:
    scale: float
    x: wp.array(dtype=float)
    grid: wp.array(dtype=wp.vec2, ndim=2)
    points: wp.array(dtype=Point)


@wp.struct
class Wide:
    x: wp.array(dtype=wp.float64)
    n: int


@wp.struct
class Outer:
    groups: wp.array(dtype=Group)
    inner: Wide


@wp.func
def total(x: wp.array(dtype=float), power: float):
    out = float(0.0)
    for k in range(x.shape[0]):
        out += x[k] ** power
    return out


@wp.kernel
def measure(groups: wp.array(dtype=Group), out: wp.array(dtype=float)):
    i = wp.tid()
    g = groups[i]
    t = total(groups[i].x, 2.0) * g.scale
    if g.grid:
        row = g.grid[-1]
        for k in range(row.shape[0]):
            t += row[k][0] * g.grid[0, k].y
    for k in range(len(groups[i].points)):
        p = groups[i].points[k]
        t += wp.length_sq(p.at) * total(p.near[1:], 3.0)
    out[i] = t


@wp.kernel
def change(groups: wp.array(dtype=Group)):
    i = wp.tid()
    groups[i].x[0] = groups[i].x[1] * groups[i].x[0]
    wp.atomic_add(groups[i].x, -1, groups[i].scale)
    groups[i].points[0].at *= 2.0


@wp.kernel
def through_a_struct(s: Outer, out: wp.array(dtype=wp.float64)):
    arr = s.groups[0].x
    for k in range(2):
        arr = s.groups[k].x
        out[0] += s.inner.x[k] * wp.float64(arr[0])
    t = s.groups[1]
    u = s.groups[0]
    u = t if s.inner.n > 0 else u
    out[0] += wp.float64(u.x[0])


@wp.kernel
def share(groups: wp.array(dtype=Group), x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = groups[0].x[i]


def arrays(seed: int = 0):
    rng = np.random.default_rng(seed)

    def made(*shape, dtype=float):
        return wp.array(rng.uniform(0.5, 1.5, shape), dtype=dtype, requires_grad=True)

    x, y, near, other = made(3), made(2), made(3), made(4)
    grid = made(2, 2, 2, dtype=wp.vec2)
    points = wp.array([Point((1, 2, 3), near), Point((0, 1, 0.5), other)], dtype=Point,
                      requires_grad=True)  # fmt: skip
    single = wp.array([Point((1, 1, 0), near)], dtype=Point, requires_grad=True)
    groups = wp.array([Group(2.0, x, grid, points), Group(3.0, y, points=single)], dtype=Group,
                      requires_grad=True)  # fmt: skip
    return groups, [x, y, near, other, grid, points, single]


def expected(xs, scales, grid, at, nears):
    """What `measure` does, in float64."""
    out = []
    for i in range(2):
        t = (xs[i] ** 2).sum() * scales[i]
        if i == 0:
            t += (grid[1, :, 0] * grid[0, :, 1]).sum()
        t += sum((a @ a) * (n[1:] ** 3).sum() for a, n in zip(at[i], nears[i], strict=True))
        out.append(t)
    return np.array(out)


def refused(action, code: str, *words: str) -> None:
    with pytest.raises((LaunchError, KernelError, TapeError)) as caught:
        action()
    d = caught.value.diagnostics[0]
    text = str(caught.value)
    assert d.code == code and all(w in text for w in words), text
    assert d.span is None or d.span.file == __file__


def test_memory_refers_to_arrays():
    groups, (x, *_, points, single) = arrays()
    assert groups[0].x is x and groups[1].points is single and groups[1].grid is None
    record = groups.numpy()[0]
    assert (record["x"]["data"], record["x"]["shape"][0]) == (x.ptr, 3)
    assert [g.scale for g in groups.list()] == [2.0, 3.0]
    b = wp.zeros(2, dtype=Group)
    assert b[0].x is None
    b.assign([groups[1], groups[0]])
    assert b[1].x is x
    b[0] = groups[0]
    assert b[0].x is x and copy.deepcopy(b)[1].points is points
    b.fill_(Group(x=x))
    assert b[1].x is x and b[1].points is None
    b.zero_()
    assert b[0].x is None and wp.zeros_like(groups)[1].x is None
    records = np.array([g.numpy_value() for g in groups], Group.numpy_dtype())
    assert wp.array(records, dtype=Group)[1].points is single
    refused(lambda: pickle.dumps(groups), "E206", "cannot be pickled")


def test_arrays_live_as_long_as_records():
    groups, made = arrays()
    want = [made[0].numpy().tolist(), made[5].list()[1].at]
    again = wp.clone(groups)
    del made, groups
    gc.collect()
    assert again[0].x.list() == want[0] and again[0].points[1].at == want[1]
    s = Wide(wp.zeros(2, dtype=wp.float64))
    record = np.array([s.numpy_value()], Wide.numpy_dtype())
    del s
    gc.collect()
    lost = wp.array(record, dtype=Wide)
    refused(lambda: lost[0], "E206", "field 'x'", "gone")


def test_values_and_gradients():
    groups, (x, y, near, other, grid, points, single) = arrays()
    out = wp.zeros(2, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(measure, dim=2, inputs=[groups], outputs=[out])
    n = [a.numpy().astype(float) for a in (x, y, near, other, grid)]
    at = points.numpy()["at"].astype(float), single.numpy()["at"].astype(float)

    def value(n=n, scales=(2.0, 3.0), at=at):
        return expected(n[:2], scales, n[4], at, ((n[2], n[3]), (n[2],)))

    np.testing.assert_allclose(out.numpy(), value(), rtol=1e-5)
    tape.backward(grads={out: np.array([1.0, 0.5], np.float32)})

    def slopes(k):
        got = np.zeros(n[k].size)
        for j in range(got.size):
            ends = []
            for h in (1e-6, -1e-6):
                moved = [a.copy() for a in n]
                moved[k].ravel()[j] += h
                ends.append(value(moved) @ [1.0, 0.5])
            got[j] = (ends[0] - ends[1]) / 2e-6
        return got.reshape(n[k].shape)

    for k, a in enumerate((x, y, near, other, grid)):
        np.testing.assert_allclose(a.grad.numpy(), slopes(k), rtol=2e-5, atol=1e-7)
    squares = [float((n[0] ** 2).sum()), float((n[1] ** 2).sum()) * 0.5]
    np.testing.assert_allclose(groups.grad.numpy()["scale"], squares, rtol=1e-5)
    cubes = (n[2][1:] ** 3).sum()
    np.testing.assert_allclose(single.grad.numpy()["at"][0], at[1][0] * cubes, rtol=1e-5)
    before = x.grad.numpy().copy()
    tape.zero()
    tape.backward(grads={out: np.array([1.0, 0.5], np.float32)})
    np.testing.assert_array_equal(x.grad.numpy(), before)


def test_what_a_kernel_changes():
    groups, (x, y, *_, points, single) = arrays()
    n, scales = [x.numpy().astype(float), y.numpy().astype(float)], (2.0, 3.0)
    tape = wp.Tape()
    with tape:
        start = [wp.clone(x), wp.clone(y)]
        both = [Group(2.0, start[0], points=points), Group(3.0, start[1], points=single)]
        groups = wp.array(both, dtype=Group, requires_grad=True)
        wp.launch(change, dim=2, inputs=[groups])
    for a, was, s in zip(start, n, scales, strict=True):
        was = was.copy()
        was[0] *= was[1]
        was[-1] += s
        np.testing.assert_allclose(a.numpy(), was, rtol=1e-6)
    assert points[0].at == wp.vec3(2.0, 4.0, 6.0) and single[0].at == wp.vec3(2.0, 2.0, 0.0)
    tape.backward(grads={a: np.ones(a.shape, np.float32) for a in start})
    np.testing.assert_allclose(x.grad.numpy(), [n[0][1], 1.0 + n[0][0], 1.0], rtol=1e-6)
    np.testing.assert_allclose(y.grad.numpy(), [n[1][1], 1.0 + n[1][0]], rtol=1e-6)
    assert groups.grad.numpy()["scale"].tolist() == [1.0, 1.0]
    untaped = groups[0].x.numpy().copy()
    wp.launch(change, dim=2, inputs=[groups], record_tape=False)
    assert start[0].numpy()[0] == np.float32(untaped[0] * untaped[1])


def test_inside_of_structs():
    groups, (x, y, *_) = arrays()
    inner = wp.array([2.0, 3.0], dtype=wp.float64, requires_grad=True)
    s = Outer(groups, Wide(inner, 1))
    out = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(through_a_struct, dim=1, inputs=[s], outputs=[out])
    a, b = float(x.numpy()[0]), float(y.numpy()[0])
    assert out.numpy()[0] == pytest.approx(2 * a + 3 * b + b, rel=1e-12)
    tape.backward(grads={out: np.ones(1)})
    np.testing.assert_allclose(inner.grad.numpy(), [a, b], rtol=1e-6)
    assert (x.grad.numpy()[0], y.grad.numpy()[0]) == (2.0, 4.0)


def test_checks_know_them():
    groups, _ = arrays()
    loss = wp.zeros(2, dtype=float, requires_grad=True)

    def run(groups, loss):
        wp.launch(change, dim=2, inputs=[groups])
        wp.launch(measure, dim=2, inputs=[groups], outputs=[loss])

    with wp.Tape() as tape:
        run(groups, loss)
    assert gradcheck_tape(tape)


def test_what_cannot_be_is_refused():
    groups, (x, *_) = arrays()
    refused(lambda: wp.launch(share, dim=1, inputs=[groups, x]), "E206", "shares memory", "'x'")
    two = wp.array([Group(x=x, points=groups[0].points), Group(x=x[1:], points=groups[1].points)],
                   dtype=Group)  # fmt: skip
    refused(lambda: wp.launch(change, dim=2, inputs=[two]), "E206", "shares memory")
    grad = wp.zeros(2, dtype=Group)
    out = wp.zeros(2, dtype=float)
    refused(
        lambda: wp.launch(measure, dim=2, inputs=[groups], outputs=[out], adjoint=True,
                          adj_inputs=[grad], adj_outputs=[out]),
        "E401", "structs in an array",
    )  # fmt: skip
    with wp.Tape() as tape:
        pass
    refused(lambda: tape.record_launch(measure, dim=2, inputs=[groups], outputs=[out]), "E401")


def test_commands_and_graphs_take_arrays_as_they_are():
    groups, (x, y, *_) = arrays()
    n = x.numpy().astype(float)
    command = wp.launch(change, dim=2, inputs=[groups], record_cmd=True)
    assert x.numpy().tolist() == n.astype(np.float32).tolist()
    with wp.ScopedCapture() as capture:
        wp.launch(change, dim=2, inputs=[groups])
    assert x.numpy().tolist() == n.astype(np.float32).tolist()
    command.launch()
    wp.capture_launch(capture.graph)
    np.testing.assert_allclose(x.numpy(), [n[0] * n[1] ** 2, n[1], n[2] + 4.0], rtol=1e-6)
    assert groups[0].points[0].at == wp.vec3(4.0, 8.0, 12.0)
    x.assign(np.array([1.0, 2.0, 3.0]))
    wp.capture_launch(capture.graph)
    assert x.numpy().tolist() == [2.0, 2.0, 5.0]


@wp.kernel
def fill_and_fail(groups: wp.array(dtype=Group)):
    i = wp.tid()
    groups[i].x[0] = 7.0
    wp.expect_eq(groups[i].scale, 0.0)


def test_what_a_launch_wrote_is_there_where_an_expectation_failed():
    xs = [wp.zeros(2, dtype=float), wp.ones(3, dtype=float)]
    groups = []
    for x in xs:
        g = Group()
        g.scale, g.x = 1.0, x
        groups.append(g)
    given = wp.array(groups, dtype=Group)
    with pytest.raises(LaunchError, match="E210"):
        wp.launch(fill_and_fail, 2, [given])
    assert [x.list()[0] for x in xs] == [7.0, 7.0]
