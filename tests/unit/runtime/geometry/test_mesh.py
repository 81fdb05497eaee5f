"""Meshes beside brute force: nearest points, signs, rays, and derivatives by all they depend on."""

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck, gradcheck_tape
from tests.unit.runtime.geometry.brute import differences, nearest_on_faces, ray_times, sphere

pytestmark = pytest.mark.host("what kernels query is memory of the host")

FAR = wp.constant(1.0e6)


@wp.kernel
def ask(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), near: wp.array(dtype=wp.vec3),
        sign: wp.array2d(dtype=float), face: wp.array(dtype=int)):  # fmt: skip
    i = wp.tid()
    q = wp.mesh_query_point(mesh, p[i], FAR)
    face[i] = -1
    if q.result:
        near[i] = wp.mesh_eval_position(mesh, q.face, q.u, q.v)
        face[i] = q.face
        sign[i, 0] = q.sign
        sign[i, 1] = wp.mesh_query_point_sign_normal(mesh, p[i], FAR).sign
        sign[i, 2] = wp.mesh_query_point_sign_parity(mesh, p[i], FAR, n_sample=3).sign
        sign[i, 3] = wp.mesh_query_point_sign_winding_number(mesh, p[i], max_dist=FAR).sign


@wp.kernel
def ask_by_reference(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), far: float,
                     out: wp.array2d(dtype=float)):  # fmt: skip
    i = wp.tid()
    face = -1
    u = float(0.25)
    v = float(0.5)
    sign = float(0.0)
    if wp.mesh_query_point(mesh, p[i], far, sign, face, u, v):
        out[i, 0] = sign
    wp.mesh_query_point_no_sign(mesh, p[i], far, face, u, v)
    out[i, 1] = float(face)
    out[i, 2] = u
    out[i, 3] = v
    t = float(-1.0)
    n = wp.vec3()
    wp.mesh_query_ray(mesh, p[i], wp.vec3(0.1, 0.2, 1.0), far, t, u, v, sign, n, face)
    out[i, 4] = t
    out[i, 5] = n[2]
    wp.mesh_query_furthest_point_no_sign(mesh, p[i], 0.0, face, u, v)
    out[i, 6] = wp.length(wp.mesh_eval_position(mesh, face, u, v) - p[i])


@wp.kernel
def distance(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), d: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, p[i], FAR)
    if q.result:
        d[i] = wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - p[i])


@wp.kernel
def cast(mesh: wp.uint64, start: wp.array(dtype=wp.vec3), dir: wp.array(dtype=wp.vec3),
         out: wp.array2d(dtype=float), n: wp.array(dtype=wp.vec3)):  # fmt: skip
    i = wp.tid()
    q = wp.mesh_query_ray(mesh, start[i], dir[i], FAR)
    if q.result:
        out[i, 0] = q.t
        out[i, 1] = q.u
        out[i, 2] = q.v
        n[i] = q.normal


@wp.kernel
def tell(mesh: wp.uint64, start: wp.array(dtype=wp.vec3), dir: wp.array(dtype=wp.vec3),
         root: int, out: wp.array2d(dtype=int)):  # fmt: skip
    i = wp.tid()
    q = wp.mesh_query_ray(mesh, start[i], dir[i], FAR, root)
    out[i, 0] = q.face
    if not q.result:
        out[i, 0] = -1
    out[i, 1] = int(q.sign)
    out[i, 2] = int(wp.mesh_query_ray_anyhit(mesh, start[i], dir[i], FAR, root))
    out[i, 3] = wp.mesh_query_ray_count_intersections(mesh, start[i], dir[i], root=root)


@wp.kernel
def parts(mesh: wp.uint64, uv: wp.array(dtype=wp.vec2), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    m = wp.mesh_get(mesh)
    out[0] += m.points[m.indices[3 * i]]
    if m.velocities:
        out[1] += m.velocities[m.indices[3 * i + 1]]
    out[2] += wp.mesh_get_point(mesh, 3 * i + 2) * float(wp.mesh_get_index(mesh, 3 * i))
    out[3] += wp.mesh_get_velocity(mesh, 3 * i)
    out[4] += wp.mesh_eval_velocity(mesh, i, uv[i][0], uv[i][1])
    out[5] += wp.mesh_eval_position(mesh, i, uv[i][0], uv[i][1])
    out[6] += wp.mesh_eval_face_normal(mesh, i)


@wp.kernel
def guarded(mesh: wp.uint64, face: int, out: wp.array(dtype=wp.vec3)):
    out[0] = wp.mesh_eval_position(mesh, face, 0.5, 0.5)
    out[1] = wp.mesh_eval_velocity(mesh, face, 0.5, 0.5)
    out[2] = wp.mesh_eval_face_normal(mesh, face)
    out[3] = wp.mesh_get_point(mesh, 3 * face)
    out[4] = wp.vec3(float(wp.mesh_get_index(mesh, 3 * face)))


@wp.kernel
def listed(mesh: wp.uint64, low: wp.vec3, high: wp.vec3, r: float, out: wp.array2d(dtype=int)):
    for k in wp.mesh_query_aabb(mesh, low, high):
        out[0, k] += 1
    q = wp.mesh_query_sphere(mesh, low, r)
    k = 0
    while wp.mesh_query_next(q, k):
        out[1, k] += 1
    for k in wp.bvh_query_aabb(wp.mesh_get_bvh(mesh), low, high):
        out[2, k] += 1


@wp.kernel
def of_several(ids: wp.array(dtype=wp.uint64), p: wp.array(dtype=wp.vec3),
               d: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(ids[i % 2], p[i], FAR)
    d[i] = wp.length(wp.mesh_eval_position(ids[i % 2], q.face, q.u, q.v) - p[i])


@wp.func
def wrong(d: float):
    return d * d


@wp.func_grad(wrong)
def adj_wrong(d: float, adj_ret: float):
    wp.adjoint[d] += d * adj_ret


@wp.kernel
def spoiled(mesh: wp.uint64, p: wp.array(dtype=wp.vec3), d: wp.array(dtype=float)):
    i = wp.tid()
    q = wp.mesh_query_point_no_sign(mesh, p[i], FAR)
    d[i] = wrong(wp.length(wp.mesh_eval_position(mesh, q.face, q.u, q.v) - p[i]))


def made(points, faces, grad=True, **named):
    points = wp.array(points.astype(np.float32), dtype=wp.vec3, requires_grad=grad)
    return wp.Mesh(points, wp.array(faces.ravel(), dtype=int), **named)


def some(n, seed=0, size=1.3):
    return np.random.default_rng(seed).uniform(-size, size, (n, 3)).astype(np.float32)


def vec3s(data, grad=True):
    return wp.array(data, dtype=wp.vec3, requires_grad=grad)


@pytest.mark.parametrize("leaf_size", [1, 4, 100])
@pytest.mark.parametrize("winding", [False, True])
def test_nearest_points_and_signs(leaf_size, winding):
    points, faces = sphere(2)
    mesh = made(points, faces, bvh_leaf_size=leaf_size, support_winding_number=winding)
    p = some(100)
    near, face = vec3s(np.zeros((100, 3))), wp.zeros(100, dtype=int)
    sign = wp.zeros((100, 4), dtype=float)
    wp.launch(ask, 100, inputs=[mesh.id, vec3s(p)], outputs=[near, sign, face])
    corners = mesh.points.numpy().astype(float)[faces]
    for k in range(100):
        best, d = nearest_on_faces(corners, p[k].astype(float))
        assert np.linalg.norm(near.numpy()[k] - p[k]) == pytest.approx(d.min(), abs=2e-6)
        assert d[face.numpy()[k]] == pytest.approx(d.min(), abs=2e-6)
        q = best[np.argmin(d)]
        inside = -1 if np.linalg.norm(p[k]) < np.linalg.norm(q) else 1
        assert np.all(sign.numpy()[k] == inside)
    assert len(np.unique(np.sign(sign.numpy()))) == 2


def test_results_in_variables():
    mesh = made(*sphere(1))
    p = some(20)
    out = wp.zeros((20, 7), dtype=float)
    wp.launch(ask_by_reference, 20, inputs=[mesh.id, vec3s(p), 1e6], outputs=[out])
    near, face = vec3s(np.zeros((20, 3))), wp.zeros(20, dtype=int)
    sign = wp.zeros((20, 4), dtype=float)
    wp.launch(ask, 20, inputs=[mesh.id, vec3s(p)], outputs=[near, sign, face])
    np.testing.assert_array_equal(out.numpy()[:, 0], sign.numpy()[:, 0])
    np.testing.assert_array_equal(out.numpy()[:, 1], face.numpy())
    corners = mesh.points.numpy().astype(float)[sphere(1)[1]]
    times = [ray_times(corners, x.astype(float), np.array([0.1, 0.2, 1.0])).min() for x in p]
    found = np.where(np.isinf(times), -1.0, times)
    np.testing.assert_allclose(out.numpy()[:, 4], found, rtol=1e-5, atol=1e-6)
    most = np.linalg.norm(mesh.points.numpy()[None] - p[:, None], axis=2).max(axis=1)
    np.testing.assert_allclose(out.numpy()[:, 6], most, rtol=1e-5)
    wp.launch(ask_by_reference, 20, inputs=[mesh.id, vec3s(p), 0.0], outputs=[out])
    assert np.all(out.numpy()[:, 1:5] == [-1.0, 0.25, 0.5, -1.0])  # as they were


def test_rays():
    points, faces = sphere(2)
    groups = wp.array((np.arange(len(faces)) % 3).astype(np.int32), dtype=int)
    for mesh in (made(points, faces), made(points, faces, groups=groups, bvh_leaf_size=2)):
        start, dir = some(100, 1, 1.5), some(100, 2)
        dir[:10] *= [1, 0, 0]  # along an axis
        out = wp.zeros((100, 4), dtype=int)
        wp.launch(tell, 100, inputs=[mesh.id, vec3s(start), vec3s(dir), -1], outputs=[out])
        corners = mesh.points.numpy().astype(float)[faces]
        for k in range(100):
            t = ray_times(corners, start[k].astype(float), dir[k].astype(float))
            face, sign, any_hit, count = out.numpy()[k]
            assert count == np.isfinite(t).sum()
            assert any_hit == (count > 0) == (face >= 0)
            if count:
                assert t[face] == pytest.approx(t.min(), rel=1e-5)
                n = np.cross(*(corners[face][1:] - corners[face][0]))
                assert sign == (1 if n @ dir[k] < 0 else -1)
    root = wp.zeros(2, dtype=int)
    wp.launch(roots, 1, inputs=[mesh.id], outputs=[root])
    assert root.numpy()[1] == -1
    wp.launch(tell, 100, inputs=[mesh.id, vec3s(start), vec3s(dir), int(root.numpy()[0])],
              outputs=[out])  # fmt: skip
    assert np.all((out.numpy()[:, 0] == -1) | (out.numpy()[:, 0] % 3 == 1))
    assert 0 < out.numpy()[:, 2].sum() < 100


@wp.kernel
def roots(mesh: wp.uint64, out: wp.array(dtype=int)):
    out[0] = wp.mesh_get_group_root(mesh, 1)
    out[1] = wp.mesh_get_group_root(mesh, 5)


def test_a_ray_through_an_edge_meets_a_face():
    points = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0.3], [0, 1, 0]], float)
    mesh = made(points, np.array([[0, 1, 2], [0, 2, 3]], np.int32))
    start = np.array([[k / 64, k / 64, 1.0 + k] for k in range(65)], np.float32)
    out = wp.zeros((65, 4), dtype=int)
    down = np.tile(np.float32([0, 0, -1]), (65, 1))
    wp.launch(tell, 65, inputs=[mesh.id, vec3s(start), vec3s(down), -1], outputs=[out])
    assert np.all(out.numpy()[:, 2] == 1)


# ---- derivatives


def exact_distances(points, faces, p):
    return sum(nearest_on_faces(points[faces], x)[1].min() for x in p)


def test_distances_have_exact_gradients():
    """By the points that are asked for and by those of the mesh, in corners, on sides, in faces."""
    points, faces = sphere(1)
    mesh = made(points, faces)
    p = vec3s(some(40))
    d = wp.zeros(40, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(distance, 40, inputs=[mesh.id, p], outputs=[d])
    tape.backward(grads={d: wp.ones_like(d)})
    held = mesh.points.numpy().astype(float), p.numpy().astype(float)
    by_p = differences(lambda x: exact_distances(held[0], faces, x), held[1])
    by_mesh = differences(lambda x: exact_distances(x, faces, held[1]), held[0])
    np.testing.assert_allclose(p.grad.numpy(), by_p, atol=2e-5)
    np.testing.assert_allclose(mesh.points.grad.numpy(), by_mesh, atol=2e-5)
    assert np.abs(by_mesh).max() > 0.5


def test_rays_have_exact_gradients():
    points, faces = sphere(1)
    mesh = made(points, faces)
    start, dir = vec3s(some(12, 1, 0.3)), vec3s(some(12, 2))
    out = wp.zeros((12, 3), dtype=float, requires_grad=True)
    n = vec3s(np.zeros((12, 3)))
    with wp.Tape() as tape:
        wp.launch(cast, 12, inputs=[mesh.id, start, dir], outputs=[out, n])
    w, m = np.random.default_rng(0).normal(size=(12, 3)), np.random.default_rng(1).normal(size=3)
    tape.backward(grads={out: wp.array(w, dtype=float),
                         n: wp.array(np.tile(m, (12, 1)), dtype=wp.vec3)})  # fmt: skip
    held = [x.numpy().astype(float) for x in (mesh.points, start, dir)]

    def total(v, o, d):
        found = 0.0
        for k in range(12):
            t = ray_times(v[faces], o[k], d[k])
            a, b, c = v[faces][np.argmin(t)]
            x = o[k] + t.min() * d[k]
            normal = np.cross(b - a, c - a)
            u, s, _ = np.linalg.solve(np.stack([a, b, c], axis=1), x)
            found += w[k] @ [t.min(), u, s] + m @ normal / np.linalg.norm(normal)
        return found

    for k, x in enumerate((mesh.points, start, dir)):
        exact = differences(lambda y, k=k: total(*held[:k], y, *held[k + 1 :]), held[k])
        np.testing.assert_allclose(x.grad.numpy(), exact, atol=1e-4 * max(1, np.abs(exact).max()))


def test_parts_of_a_mesh():
    points, faces = sphere(0)
    n = len(faces)
    mesh = made(points, faces, velocities=vec3s(some(6, 3)))
    uv = wp.array(np.random.default_rng(4).random((n, 2)), dtype=wp.vec2, requires_grad=True)
    out = vec3s(np.zeros((7, 3)))
    with wp.Tape() as tape:
        wp.launch(parts, n, inputs=[mesh.id, uv], outputs=[out])
    w = some(7, 5)
    tape.backward(grads={out: vec3s(w, grad=False)})

    def values(x, v, s):
        a, b, c = (x[faces][:, k] for k in range(3))
        w = np.column_stack([s, 1 - s.sum(1)])[..., None]
        normals = np.cross(b - a, c - a)
        return np.array([
            a.sum(0), v[faces[:, 1]].sum(0), (c * faces[:, :1]).sum(0), v[faces[:, 0]].sum(0),
            (w * v[faces]).sum((0, 1)), (w * x[faces]).sum((0, 1)),
            (normals / np.linalg.norm(normals, axis=1)[:, None]).sum(0),
        ])  # fmt: skip

    given = mesh.points, mesh.velocities, uv
    held = [x.numpy().astype(float) for x in given]
    np.testing.assert_allclose(out.numpy(), values(*held), atol=1e-5)
    for k, x in enumerate(given):
        exact = differences(
            lambda y, k=k: np.sum(w * values(*held[:k], y, *held[k + 1 :])), held[k]
        )
        np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-4, atol=1e-5)


def test_checks_pass_right_programs_and_find_wrong_ones():
    mesh = made(*sphere(1))
    p = vec3s(some(8))
    d = wp.zeros(8, dtype=float, requires_grad=True)
    assert gradcheck(distance, dim=8, inputs=[mesh.id, p], outputs=[d])
    out, n = wp.zeros((8, 3), dtype=float, requires_grad=True), vec3s(np.zeros((8, 3)))
    assert gradcheck(cast, dim=8, inputs=[mesh.id, p, vec3s(some(8, 7))], outputs=[out, n])
    assert not gradcheck(spoiled, dim=8, inputs=[mesh.id, p], outputs=[d], raise_exception=False)


def test_a_tape_keeps_the_tree_that_it_had():
    """The mesh moves on while a program records: each launch is differentiated as it was."""
    points, faces = sphere(1)
    states = [vec3s(points * k) for k in (1.0, 1.5)]
    mesh = made(points, faces)
    p = vec3s(some(10))
    d = [wp.zeros(10, dtype=float, requires_grad=True) for _ in states]
    with wp.Tape() as tape:
        for x, y in zip(states, d, strict=True):
            mesh.points = x
            wp.launch(distance, 10, inputs=[mesh.id, p], outputs=[y])
    mesh.points = vec3s(points * 9.0)
    assert gradcheck_tape(tape, raise_exception=False)
    tape.backward(grads={y: wp.ones_like(y) for y in d})
    for x in states:
        held = x.numpy().astype(float)
        exact = differences(lambda y: exact_distances(y, faces, p.numpy().astype(float)), held)
        np.testing.assert_allclose(x.grad.numpy(), exact, atol=2e-5)


def test_gradients_arrive_in_each_of_several_meshes():
    points, faces = sphere(1)
    meshes = [made(points, faces), made(0.5 * points[:, ::-1] + 0.1, faces[:, ::-1].copy())]
    ids = wp.array([m.id for m in meshes], dtype=wp.uint64)
    p = vec3s(some(10))
    d = wp.zeros(10, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(of_several, 10, inputs=[ids, p], outputs=[d])
    tape.backward(grads={d: wp.ones_like(d)})
    for k, m in enumerate(meshes):
        f = m.indices.numpy().reshape(-1, 3)
        held = m.points.numpy().astype(float)
        mine = p.numpy().astype(float)[k::2]
        exact = differences(lambda y, f=f, q=mine: exact_distances(y, f, q), held)
        np.testing.assert_allclose(m.points.grad.numpy(), exact, atol=2e-5)


# ---- boxes, odd meshes, errors


def test_faces_in_boxes_and_balls():
    points, faces = sphere(2)
    mesh = made(points, faces, bvh_leaf_size=3)
    low, high, r = np.array([0.1, 0.2, 0.3]), np.array([0.9, 0.8, 0.9]), 0.8
    out = wp.zeros((3, len(faces)), dtype=int)
    wp.launch(listed, 1, inputs=[mesh.id, wp.vec3(*low), wp.vec3(*high), r], outputs=[out])
    corners = mesh.points.numpy().astype(float)[faces]
    meets = np.all((corners.min(axis=1) <= high) & (corners.max(axis=1) >= low), axis=1)
    np.testing.assert_array_equal(out.numpy()[0], meets)
    np.testing.assert_array_equal(out.numpy()[2], meets)
    np.testing.assert_array_equal(out.numpy()[1], nearest_on_faces(corners, low)[1] <= r)
    assert 0 < meets.sum() < len(faces)


def test_odd_meshes():
    """Faces without area, points that are NaN, meshes without faces: found, or not found."""
    p = vec3s(np.array([[0.2, 0.1, 1.0], [np.nan, 0, 0]], np.float32))
    near, face = vec3s(np.zeros((2, 3))), wp.zeros(2, dtype=int)
    sign = wp.zeros((2, 4), dtype=float)
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [np.nan] * 3, [0, 0, 5]], float)
    faces = np.array([[0, 0, 1], [0, 3, 4], [0, 1, 2], [3, 3, 3]], np.int32)
    mesh = made(points, faces)
    wp.launch(ask, 2, inputs=[mesh.id, p], outputs=[near, sign, face])
    assert face.numpy().tolist() == [2, -1]
    np.testing.assert_allclose(near.numpy()[0], [0.2, 0.1, 0.0], atol=1e-6)
    empty = wp.Mesh(wp.zeros(0, dtype=wp.vec3), wp.zeros(0, dtype=int))
    wp.launch(ask, 2, inputs=[empty.id, p], outputs=[near, sign, face])
    assert face.numpy().tolist() == [-1, -1]
    wp.launch(ask, 2, inputs=[99, p], outputs=[near, sign, face])
    assert face.numpy().tolist() == [-1, -1]
    for m, face in ((empty.id, 0), (99, 0), (mesh.id, 77), (mesh.id, -1)):
        out = vec3s(np.ones((5, 3)))
        wp.launch(guarded, 1, inputs=[m, face], outputs=[out])
        assert np.all(out.numpy()[:4] == 0.0)
        assert out.numpy()[4, 0] == -1.0


def test_wrong_meshes():
    points, faces = wp.zeros(3, dtype=wp.vec3), wp.array([0, 1, 2], dtype=int)
    for args, named, words in (
        ((wp.zeros(3, dtype=float), faces), {}, "points"),
        ((points, wp.zeros(3, dtype=float)), {}, "indices"),
        ((points, wp.array([0, 1, 3], dtype=int)), {}, "face 0 has the point 3"),
        ((points, faces), {"velocities": wp.zeros(2, dtype=wp.vec3)}, "velocity"),
        ((points, faces), {"groups": wp.zeros(2, dtype=int)}, "groups"),
        ((points, faces), {"bvh_constructor": "best"}, "constructor"),
        ((points, faces), {"bvh_leaf_size": 0}, "bvh_leaf_size"),
        ((points, faces), {"bvh_leaf_size": 2.5}, "bvh_leaf_size must be an integer"),
        ((points, wp.array([0, 1, 2, 0], dtype=int)), {}, "three for each face"),
        ((points, wp.array([0, 1], dtype=int)), {}, "three for each face"),
    ):
        with pytest.raises(wp.LaunchError, match=f"E202.*{words}") as e:
            wp.Mesh(*args, **named)
        assert e.value.diagnostics[0].span.file == __file__
    mesh = wp.Mesh(points, faces)
    with pytest.raises(RuntimeError, match="new points"):
        mesh.points = wp.zeros(4, dtype=wp.vec3)
