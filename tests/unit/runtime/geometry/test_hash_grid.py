"""Hash grids beside brute force: what is found, gradients, checks, and what is refused."""

import gc
import threading

import numpy as np
import pytest
from scipy.spatial import cKDTree

import engine as wp
from engine.autograd import gradcheck, gradcheck_tape

pytestmark = pytest.mark.host("what kernels query is memory of the host")

RADIUS = 0.35


def counter(vec, scalar):
    @wp.kernel(name=f"count_{scalar.__name__}")
    def count(grid: wp.uint64, radius: scalar, x: wp.array(dtype=vec), out: wp.array(dtype=int)):
        i = wp.hash_grid_point_id(grid, wp.tid())
        p = x[i]
        for j in wp.hash_grid_query(grid, p, radius):
            if wp.length(p - x[j]) <= radius:
                out[i] += 1

    return count


COUNT = {
    wp.float16: (wp.vec3h, counter(wp.vec3h, wp.float16)),
    wp.float32: (wp.vec3, counter(wp.vec3, float)),
    wp.float64: (wp.vec3d, counter(wp.vec3d, wp.float64)),
}


@wp.func
def weight(d: wp.vec3, r: float):
    w = r * r - wp.dot(d, d)
    return wp.where(w > 0.0, w * w * w, 0.0)


@wp.kernel
def density(grid: wp.uint64, r: float, x: wp.array(dtype=wp.vec3), rho: wp.array(dtype=float)):
    i = wp.hash_grid_point_id(grid, wp.tid())
    query = wp.hash_grid_query(id=grid, point=x[i], max_dist=r)
    j = 0
    s = float(0.0)
    while wp.hash_grid_query_next(query, j):
        s += weight(x[i] - x[j], r)
    rho[i] = s


@wp.func
def halved(d: wp.vec3, r: float):
    return weight(d, r)


@wp.func_grad(halved)
def adj_halved(d: wp.vec3, r: float, adj_ret: float):
    w = wp.max(r * r - wp.dot(d, d), 0.0)
    wp.adjoint[d] += -3.0 * w * w * d * adj_ret  # a factor of 2 is missing


@wp.kernel
def spoiled(grid: wp.uint64, r: float, x: wp.array(dtype=wp.vec3), rho: wp.array(dtype=float)):
    i = wp.tid()
    for j in wp.hash_grid_query(grid, x[i], r):
        rho[i] += halved(x[i] - x[j], r)


@wp.func
def nearest(query: wp.HashGridQuery, p: wp.vec3, x: wp.array(dtype=wp.vec3)) -> int:
    best = -1
    least = float(1.0e9)
    j = 0
    while wp.hash_grid_query_next(query, j):
        d = wp.length(x[j] - p)
        if d < least:
            least = d
            best = j
    return best


@wp.kernel
def pulled(grid: wp.uint64, at: wp.array(dtype=wp.vec3), x: wp.array(dtype=wp.vec3),
           out: wp.array(dtype=float)):  # fmt: skip
    """A function takes the query; the distance to what it found is differentiated."""
    i = wp.tid()
    k = nearest(wp.hash_grid_query(grid, at[i], 0.8), at[i], x)
    if k >= 0:
        out[i] = wp.length(x[k] - at[i])


@wp.kernel
def seen(ids: wp.array(dtype=wp.uint64), p: wp.vec3, r: float, group: int,
         out: wp.array2d(dtype=int)):  # fmt: skip
    """Marks what each of several grids has near a point, all of it and that of a group."""
    k = wp.tid()
    for j in wp.hash_grid_query(ids[k], p, r):
        out[2 * k, j] += 1
    for j in wp.hash_grid_query(ids[k], p, r, group):
        out[2 * k + 1, j] += 1


def cloud(n, seed=0, size=1.0):
    return np.random.default_rng(seed).uniform(-size, size, (n, 3)).astype(np.float32)


def grid_of(x, radius=RADIUS, dims=(8, 8, 8), **named):
    grid = wp.HashGrid(*dims, dtype=named.pop("dtype", None))
    grid.build(x, radius, **named)
    return grid


@pytest.mark.parametrize("dtype", list(COUNT))
@pytest.mark.parametrize("dims", [(8, 8, 8), (1, 2, 1), (64, 3, 17)])
def test_every_neighbour_is_found_once(dtype, dims):
    vec, kernel = COUNT[dtype]
    points = cloud(300, size=2.0)
    x = wp.array(points, dtype=vec)
    grid = grid_of(x, dims=dims, dtype=dtype)
    out = wp.zeros(300, dtype=int)
    wp.launch(kernel, 300, inputs=[grid.id, dtype(RADIUS), x], outputs=[out])
    exact = x.numpy().astype(float)
    tree = cKDTree(exact)
    slack = {wp.float16: 5e-3, wp.float32: 1e-6, wp.float64: 1e-12}[dtype]
    least = [len(a) for a in tree.query_ball_point(exact, float(dtype(RADIUS)) - slack)]
    most = [len(a) for a in tree.query_ball_point(exact, float(dtype(RADIUS)) + slack)]
    assert np.all(least <= out.numpy()) and np.all(out.numpy() <= most)
    assert sum(least) > 500


def exact_gradient(points, r):
    pairs = cKDTree(points).query_pairs(r, output_type="ndarray")
    d = points[pairs[:, 0]] - points[pairs[:, 1]]
    w = r * r - np.sum(d * d, axis=1)
    out = np.zeros_like(points)
    np.add.at(out, pairs[:, 0], -12.0 * (w * w)[:, None] * d)
    np.add.at(out, pairs[:, 1], 12.0 * (w * w)[:, None] * d)
    return out


def test_gradients_are_those_of_the_grid_that_ran():
    """Launches of one tape keep their neighbours, whatever the grid is built of later."""
    points = cloud(200)
    x = wp.array(points, dtype=wp.vec3, requires_grad=True)
    rho = [wp.zeros(200, dtype=float, requires_grad=True) for _ in range(2)]
    grid = grid_of(x)
    with wp.Tape() as tape:
        wp.launch(density, 200, inputs=[grid.id, RADIUS, x], outputs=[rho[0]])
        grid.build(x, 0.2)
        wp.launch(density, 200, inputs=[grid.id, 0.2, x], outputs=[rho[1]])
    grid.build(wp.zeros(5, dtype=wp.vec3), 1.0)
    del grid
    gc.collect()
    tape.backward(grads={r: wp.ones_like(r) for r in rho})
    exact = sum(exact_gradient(points.astype(float), float(np.float32(r))) for r in (RADIUS, 0.2))
    np.testing.assert_allclose(x.grad.numpy(), exact, atol=1e-6 * np.abs(exact).max())


def test_checks_pass_right_programs_and_find_wrong_ones():
    x = wp.array(cloud(30), dtype=wp.vec3, requires_grad=True)
    grid = grid_of(x, 0.6)
    rho = wp.zeros(30, dtype=float, requires_grad=True)
    assert gradcheck(density, dim=30, inputs=[grid.id, 0.6, x], outputs=[rho])
    assert not gradcheck(spoiled, dim=30, inputs=[grid.id, 0.6, x], outputs=[rho],
                         raise_exception=False)  # fmt: skip
    at = wp.array(cloud(9, seed=3), dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(9, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(pulled, 9, inputs=[grid.id, at, x], outputs=[out])
    grid.build(wp.zeros(5, dtype=wp.vec3), 1.0)
    assert gradcheck_tape(tape, raise_exception=False)
    tape.backward(grads={out: wp.ones_like(out)})
    _, k = cKDTree(x.numpy()).query(at.numpy())
    away = at.numpy() - x.numpy()[k]
    unit = away / np.linalg.norm(away, axis=1)[:, None]
    np.testing.assert_allclose(at.grad.numpy(), unit, rtol=1e-5)


def test_forward_mode():
    x = wp.array(cloud(40), dtype=wp.vec3, requires_grad=True)
    grid = grid_of(x)
    rho = wp.zeros(40, dtype=float, requires_grad=True)
    along = cloud(40, seed=5)
    found = wp.autograd.jvp(density, 40, [grid.id, RADIUS, x], [rho], tangents={x: along})
    exact = np.sum(exact_gradient(x.numpy().astype(float), float(np.float32(RADIUS))) * along)
    np.testing.assert_allclose(found[rho].numpy().sum(), exact, rtol=1e-5)


def test_groups_and_many_grids():
    points, groups = cloud(50), np.random.default_rng(1).integers(-2, 2, 50).astype(np.int32)
    x = wp.array(points, dtype=wp.vec3)
    grids = [
        grid_of(x, 0.5, (4, 4, 4), groups=wp.array(groups, dtype=int)),
        grid_of(x, 0.3),
        wp.HashGrid(2, 2, 2),
    ]
    ids = wp.array([g.id for g in grids], dtype=wp.uint64)
    for group in (-1, 1, 7):
        out = wp.zeros((6, 50), dtype=int)
        wp.launch(seen, 3, inputs=[ids, wp.vec3(), 5.0, group], outputs=[out])
        assert np.all(out.numpy()[[0, 2, 3]] == 1)  # without groups, all are of any
        np.testing.assert_array_equal(out.numpy()[1], groups == group)
        assert not out.numpy()[4:].any()


def test_odd_points():
    """NaN, infinities and far away points are in some cell, and do no harm."""
    points = np.array([[np.nan] * 3, [np.inf, 0, 0], [1e30, -1e30, 0], [0.1, 0, 0]], np.float32)
    x = wp.array(points, dtype=wp.vec3)
    grid = grid_of(x, 1e-3)
    out = wp.zeros(4, dtype=int)
    wp.launch(COUNT[wp.float32][1], 4, inputs=[grid.id, 0.5, x], outputs=[out])
    assert out.numpy().tolist() == [0, 0, 1, 1]
    grid.build(wp.empty(0, dtype=wp.vec3), 1.0)
    grid.reserve(10)
    ids = wp.array([grid.id, 12345], dtype=wp.uint64)
    hits = wp.zeros((4, 4), dtype=int)
    wp.launch(seen, 2, inputs=[ids, wp.vec3(), 5.0, 0], outputs=[hits])
    assert not hits.numpy().any()


def test_launches_at_once():
    x = wp.array(cloud(400), dtype=wp.vec3)
    kernel = COUNT[wp.float32][1]
    outs = [wp.zeros(400, dtype=int) for _ in range(4)]

    def work(k):
        grid = grid_of(x, 0.2 + 0.05 * k)
        for _ in range(5):
            outs[k].zero_()
            grid.build(x, 0.2 + 0.05 * k)
            wp.launch(kernel, 400, inputs=[grid.id, RADIUS, x], outputs=[outs[k]])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for o in outs[1:]:
        np.testing.assert_array_equal(o.numpy(), outs[0].numpy())


def test_a_command_sees_the_grid_as_it_is():
    x = wp.array(cloud(100), dtype=wp.vec3)
    grid = wp.HashGrid(8, 8, 8)
    grid.build(wp.zeros(100, dtype=wp.vec3), 0.1)
    out = wp.zeros(100, dtype=int)
    kernel = COUNT[wp.float32][1]
    command = wp.launch(kernel, 100, inputs=[grid.id, RADIUS, x], outputs=[out], record_cmd=True)
    grid.build(x, RADIUS)
    command.launch()
    found = [len(a) for a in cKDTree(x.numpy()).query_ball_point(x.numpy(), RADIUS)]
    np.testing.assert_array_equal(out.numpy(), found)


# ---- what is refused


@wp.kernel
def mistyped(grid: wp.uint64, p: wp.vec3d, out: wp.array(dtype=int)):
    for j in wp.hash_grid_query(grid, p, wp.float32(1.0)):
        out[j] = 1


@wp.kernel
def no_variable(grid: wp.uint64, p: wp.vec3, out: wp.array(dtype=int)):
    q = wp.hash_grid_query(grid, p, 1.0)
    while wp.hash_grid_query_next(q, 3):
        out[0] = 1


@wp.func
def crowd(grid: wp.uint64, p: wp.vec3, x: wp.array(dtype=wp.vec3)):
    s = float(0.0)
    for j in wp.hash_grid_query(grid, p, 0.5):
        s += weight(p - x[j], 0.5)
    return s


@wp.func
def own(grid: wp.uint64, p: wp.vec3, x: wp.array(dtype=wp.vec3)):
    return crowd(grid, p, x)


@wp.func_grad(own)
def adj_own(grid: wp.uint64, p: wp.vec3, x: wp.array(dtype=wp.vec3), adj_ret: float):
    wp.adjoint[p] += p * adj_ret


@wp.kernel
def ascending(grid: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    _, d = wp.grad(crowd)(grid, x[i], x)
    out[i] = d


@wp.kernel
def customised(grid: wp.uint64, x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    out[wp.tid()] = own(grid, x[wp.tid()], x)


def test_gradients_inside_of_kernels():
    x = wp.array(cloud(40), dtype=wp.vec3)
    grid = grid_of(x, 0.5)
    out = wp.zeros(40, dtype=wp.vec3)
    wp.launch(ascending, 40, inputs=[grid.id, x], outputs=[out])
    exact = exact_gradient(x.numpy().astype(float), 0.5) / 2
    np.testing.assert_allclose(out.numpy(), exact, atol=1e-6 * np.abs(exact).max())
    with pytest.raises(wp.KernelError, match=r"E112.*`own` queries"):
        wp.launch(customised, 40, inputs=[grid.id, x], outputs=[wp.zeros(40, dtype=float)])


def test_wrong_calls():
    out = wp.zeros(1, dtype=int)
    with pytest.raises(wp.KernelError, match=r"E104.*does not take") as e:
        wp.launch(mistyped, 1, inputs=[1, wp.vec3d()], outputs=[out])
    assert "vec<3,float64>" in str(e.value) and e.value.diagnostics[0].span.file == __file__
    with pytest.raises(wp.KernelError, match=r"E106.*`index`"):
        wp.launch(no_variable, 1, inputs=[1, wp.vec3()], outputs=[out])
    with pytest.raises(wp.EngineError, match="outside a kernel"):
        wp.hash_grid_point_id(1, 2)


def test_wrong_grids():
    for dims in ((0, 1, 1), (2**16, 2**16, 1), ("a", 1, 1)):
        with pytest.raises(wp.LaunchError, match=r"E202.*HashGrid"):
            wp.HashGrid(*dims)
    with pytest.raises(TypeError, match="dtype"):
        wp.HashGrid(1, 1, 1, dtype=int)
    grid = wp.HashGrid(4, 4, 4)
    x = wp.zeros(3, dtype=wp.vec3)
    for points, radius, groups in (
        (wp.zeros(3, dtype=float), 1.0, None),
        (x, 0.0, None),
        (x, None, None),
        (x, "1", None),
        (x, 1.0, wp.zeros(2, dtype=int)),
        (x, 1.0, wp.zeros(3, dtype=float)),
    ):
        with pytest.raises(wp.LaunchError, match=r"E202.*HashGrid.build"):
            grid.build(points, radius, groups)


def test_a_grid_that_is_gone_is_told():
    x = wp.zeros(3, dtype=wp.vec3)
    number = grid_of(x).id
    gc.collect()
    with pytest.raises(wp.LaunchError, match=r"E212.*HashGrid") as e:
        wp.launch(density, 3, inputs=[number, 1.0, x], outputs=[wp.zeros(3, dtype=float)])
    assert e.value.diagnostics[0].span.file == __file__
