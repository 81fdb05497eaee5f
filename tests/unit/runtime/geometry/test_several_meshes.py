"""Gradients of geometry by every door: several meshes in a launch, and captured graphs."""

import numpy as np
import pytest

import engine as wp
from engine.autograd.gradcheck import check_function
from tests.unit.runtime.geometry.brute import differences, nearest_on_faces, sphere

pytestmark = pytest.mark.host("what kernels query is memory of the host")

FAR = wp.constant(1.0e6)


@wp.func
def wrong(d: float):
    return d * d


@wp.func_grad(wrong)
def adj_wrong(d: float, adj_ret: float):
    wp.adjoint[d] += d * adj_ret


@wp.kernel
def of_several(ids: wp.array(dtype=wp.uint64), p: wp.array(dtype=wp.vec3),
               d: wp.array(dtype=float)):  # fmt: skip
    """Distance to the nearest point of each mesh, and what moves there."""
    i = wp.tid()
    id = ids[i % 3]
    q = wp.mesh_query_point_no_sign(id, p[i], FAR)
    d[i] = wp.length(wp.mesh_eval_position(id, q.face, q.u, q.v) - p[i])
    if i % 3 > 0:
        d[i] += wp.dot(p[i], wp.mesh_eval_velocity(id, 0, 0.25, 0.5))


@wp.kernel
def spoiled(ids: wp.array(dtype=wp.uint64), d: wp.array(dtype=float)):
    i = wp.tid()
    d[i] = wrong(wp.length(wp.mesh_eval_position(ids[i], 0, 0.3, 0.3)))


@wp.kernel
def grown(x: wp.array(dtype=wp.vec3), by: wp.array(dtype=float), y: wp.array(dtype=wp.vec3)):
    y[wp.tid()] = x[wp.tid()] * by[0]


@wp.kernel
def distance(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), d: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, p[i], FAR)
    d[i] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - p[i])


@wp.kernel
def crowd(grid: wp.uint64, r: float, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], r):
        d = x[i] - x[j]
        if wp.dot(d, d) < r * r:
            out[i] += r * r - wp.dot(d, d)


def some(n, seed=0, size=1.3):
    return np.random.default_rng(seed).uniform(-size, size, (n, 3)).astype(np.float32)


def vec3s(data):
    return wp.array(data, dtype=wp.vec3, requires_grad=True)


POINTS, FACES = sphere(1)
COUNT = 12


def three():
    """The first has no velocities; the others share theirs."""
    shared = vec3s(some(len(POINTS), 3))
    shapes = [POINTS, 0.5 * POINTS[:, ::-1] + 0.1, POINTS * [2.0, 0.7, 1.0]]
    faces = wp.array(FACES.ravel(), dtype=int)
    meshes = [wp.Mesh(vec3s(x), faces, shared if k else None) for k, x in enumerate(shapes)]
    return meshes, shared, wp.array([m.id for m in meshes], dtype=wp.uint64)


def distances(x, p):
    return sum(float(nearest_on_faces(x[FACES], q)[1].min()) for q in p)


def exact_sum(points, velocities, p):
    """The sum of all that `of_several` writes."""
    out = 0.0
    for k, x in enumerate(points):
        mine = p[k::3]
        out += distances(x, mine)
        if k:
            out += (mine @ (np.array([0.25, 0.5, 0.25]) @ velocities[FACES[0]])).sum()
    return out


def launched(how, ids, p, d):
    """The gradient of the sum of `d`, by one of the ways to it."""
    if how == "tape":
        with wp.Tape() as tape:
            wp.launch(of_several, COUNT, inputs=[ids, p], outputs=[d])
        tape.backward(grads={d: wp.ones_like(d)})
        return
    given = {"inputs": [ids, p], "outputs": [d], "adjoint": True}
    if how == "graph":
        before = p.grad.numpy()
        with wp.ScopedCapture() as capture:
            d.grad.fill_(1.0)
            wp.launch(of_several, COUNT, **given)
        assert np.array_equal(p.grad.numpy(), before)
        wp.capture_launch(capture.graph)
        return
    d.grad.fill_(1.0)
    if how == "on a tape":
        with wp.Tape() as tape:
            wp.launch(of_several, COUNT, **given)
        tape.backward(grads={d: wp.ones_like(d)})  # nothing of it is on the tape
    elif how == "command":
        wp.launch(of_several, COUNT, **given, record_cmd=True).launch()
    else:
        wp.launch(of_several, COUNT, **given)


@pytest.mark.parametrize("how", ["tape", "adjoint", "on a tape", "command", "graph"])
def test_gradients_arrive_in_each_mesh(how):
    meshes, shared, ids = three()
    p, d = vec3s(some(COUNT)), wp.zeros(COUNT, dtype=float, requires_grad=True)
    launched(how, ids, p, d)
    held = [m.points.numpy().astype(float) for m in meshes]
    v, q = shared.numpy().astype(float), p.numpy().astype(float)
    for k, m in enumerate(meshes):
        exact = differences(lambda y, k=k: exact_sum([*held[:k], y, *held[k + 1 :]], v, q), held[k])
        np.testing.assert_allclose(m.points.grad.numpy(), exact, atol=2e-5)
    exact = differences(lambda y: exact_sum(held, y, q), v)
    assert np.abs(exact).max() > 0.1
    np.testing.assert_allclose(shared.grad.numpy(), exact, atol=2e-5)
    launched(how, ids, p, d)
    np.testing.assert_allclose(shared.grad.numpy(), 2 * exact, atol=4e-5)  # it is added to


def test_the_check_sees_the_points_of_all_meshes():
    meshes, _, ids = three()
    p, d = vec3s(some(COUNT)), wp.zeros(COUNT, dtype=float, requires_grad=True)
    found = check_function(of_several, COUNT, [ids, p], [d])
    assert found.passed
    (launch,) = found.launches
    assert {q.input for q in launch.pairs} == {"p", "mesh_data.points", "mesh_data.velocities"}
    assert all(q.checked for q in launch.pairs)
    found = check_function(spoiled, 3, [ids], [d])
    assert [q.verdict for q in found.launches[0].pairs if q.input == "mesh_data.points"] == ["fail"]
    del meshes


@pytest.mark.parametrize("adjoint", [False, True])
def test_a_graph_differentiates_the_mesh_of_each_run(adjoint):
    """What is captured moves a mesh, refits it, asks for distances and differentiates them."""
    x, by, y = vec3s(POINTS), wp.array([1.0], dtype=float, requires_grad=True), vec3s(0 * POINTS)
    p, d = vec3s(some(COUNT)), wp.zeros(COUNT, dtype=float, requires_grad=True)
    mesh = wp.Mesh(y, wp.array(FACES.ravel(), dtype=int))
    tape = wp.Tape()
    with wp.ScopedCapture() as capture:
        if adjoint:
            wp.launch(grown, len(POINTS), inputs=[x, by], outputs=[y])
            mesh.refit()
            d.grad.fill_(1.0)
            wp.launch(distance, COUNT, inputs=[mesh.id, p], outputs=[d], adjoint=True)
            wp.launch(grown, len(POINTS), inputs=[x, by], outputs=[y], adjoint=True)
        else:
            with tape:
                wp.launch(grown, len(POINTS), inputs=[x, by], outputs=[y])
                mesh.refit()
                wp.launch(distance, COUNT, inputs=[mesh.id, p], outputs=[d])
            tape.backward(grads={d: wp.ones_like(d)})
    for scale in (1.0, 0.4, 3.0):
        for a in (x, by, y, p):
            a.grad.zero_()
        by.fill_(scale)
        wp.capture_launch(capture.graph)
        q = p.numpy().astype(float)

        def total(s, at, q=q):
            return distances(s * at, q)

        at, s = POINTS.astype(np.float32).astype(float), np.array([np.float32(scale)], float)
        exact = differences(lambda z: total(z[0], at), s)
        np.testing.assert_allclose(by.grad.numpy(), exact, rtol=1e-4, atol=1e-4)
        exact = differences(lambda z: total(s[0], z), at)
        np.testing.assert_allclose(x.grad.numpy(), exact, atol=1e-4)


def test_a_graph_differentiates_the_neighbours_of_each_run():
    points = some(60, 4, 0.8)
    x, by, y = vec3s(points), wp.array([1.0], dtype=float, requires_grad=True), vec3s(0 * points)
    out = wp.zeros(60, dtype=float, requires_grad=True)
    grid, tape = wp.HashGrid(4, 4, 4), wp.Tape()
    grid.build(x, 0.5)
    with wp.ScopedCapture() as capture:
        with tape:
            wp.launch(grown, 60, inputs=[x, by], outputs=[y])
            grid.build(y, 0.5)
            out.zero_()
            wp.launch(crowd, 60, inputs=[grid.id, 0.5, y], outputs=[out])
        tape.backward(grads={out: wp.ones_like(out)})

    def total(s):
        z = s[0] * points.astype(float)
        d = z[:, None] - z[None]
        return np.maximum(0.25 - (d * d).sum(2), 0.0).sum()

    for scale in (1.0, 0.5, 2.0):
        for a in (x, by, y):
            a.grad.zero_()
        by.fill_(scale)
        wp.capture_launch(capture.graph)
        s = np.array([scale])
        np.testing.assert_allclose(out.numpy().sum(), total(s), rtol=1e-4)
        np.testing.assert_allclose(by.grad.numpy(), differences(total, s), rtol=1e-4)
