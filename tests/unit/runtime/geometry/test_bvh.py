"""Trees of boxes beside brute force: every kind of query, groups, refit, what is refused."""

import numpy as np
import pytest

import engine as wp

pytestmark = pytest.mark.host("what kernels query is memory of the host")


@wp.kernel
def listed(tree: wp.uint64, a: wp.vec3, b: wp.vec3, r: float, reach: float, group: int,
           out: wp.array2d(dtype=int)):  # fmt: skip
    root = wp.bvh_get_group_root(tree, group)
    k = 0
    boxes = wp.bvh_query_aabb(tree, a, b, root=root)
    while wp.bvh_query_next(boxes, k):
        out[0, k] += 1
    for k in wp.bvh_query_sphere(tree, a, r, root):
        out[1, k] += 1
    ray = wp.bvh_query_ray(tree, a, b, root)
    while wp.bvh_query_next(ray, k, reach):
        out[2, k] += 1
    swept = wp.bvh_query_capsule(tree, a, b, r, root)
    while wp.bvh_query_next(swept, k, max_dist=reach):
        out[3, k] += 1
    wp.atomic_add(out, 4, 0, root)


@wp.kernel
def shadow(tree: wp.uint64, lowers: wp.array(dtype=wp.vec3), p: wp.array(dtype=wp.vec3),
           out: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    for k in wp.bvh_query_ray(tree, p[i], wp.vec3(0.0, 0.0, 1.0)):
        out[i] += wp.length(lowers[k] - p[i])


def meets(low, high, start, dir, reach):
    """Boxes that a ray meets, by the intervals along each axis."""
    with np.errstate(all="ignore"):
        t = np.stack([(low - start) / dir, (high - start) / dir])
    still = dir == 0.0
    inside = np.all(((low <= start) & (start <= high))[:, still], axis=1)
    first, last = t.min(axis=0)[:, ~still], t.max(axis=0)[:, ~still]
    return inside & (np.maximum(first.max(axis=1), 0.0) <= np.minimum(last.min(axis=1), reach))


def boxes(n, seed=0):
    low = np.random.default_rng(seed).uniform(-1, 1, (n, 3))
    return low, low + np.random.default_rng(seed + 1).uniform(0, 0.3, (n, 3))


def vec3s(data):
    return wp.array(data.astype(np.float32), dtype=wp.vec3)


def ask(tree, n, a, b, r, reach, group):
    out = wp.zeros((5, n), dtype=int)
    wp.launch(listed, 1, inputs=[tree.id, wp.vec3(*a), wp.vec3(*b), r, reach, group, out])
    return out.numpy()


@pytest.mark.parametrize("leaf_size", [1, 3, 500])
@pytest.mark.parametrize("grouped", [False, True])
def test_all_queries(leaf_size, grouped):
    n = 300
    low, high = boxes(n)
    by = np.random.default_rng(7).integers(-3, 9, n).astype(np.int32)
    groups = wp.array(by, dtype=int) if grouped else None
    tree = wp.Bvh(vec3s(low), vec3s(high), constructor="median", groups=groups,
                  leaf_size=leaf_size)  # fmt: skip
    low, high = tree.lowers.numpy().astype(float), tree.uppers.numpy().astype(float)
    found = 0
    for k in range(8):
        a, b = boxes(1, 20 + k)
        a, b = a[0].astype(np.float32).astype(float), b[0].astype(np.float32).astype(float)
        if k == 3:
            b[:2] = 0.0  # along an axis
        of = by == 4 if grouped else np.ones(n, bool)
        got = ask(tree, n, a, b, 0.25, 2.5, 4 if grouped else 77)
        wide = np.float32(0.25).astype(float)
        away = np.maximum(np.maximum(low - a, a - high), 0.0)
        want = [
            np.all((low <= b) & (a <= high), axis=1),
            np.linalg.norm(away, axis=1) <= wide,
            meets(low, high, a, b, 2.5),
            meets(low - wide, high + wide, a, b, 2.5),
        ]
        for row, exact in zip(got, want, strict=False):
            np.testing.assert_array_equal(row, exact & of)
            found += exact.sum()
        assert (got[4, 0] >= 0) == grouped
        if grouped:
            assert ask(tree, n, a, b, 0.25, 2.5, 55)[4, 0] == -1
    assert found > 50


def test_refit_and_rebuild():
    low, high = boxes(50)
    tree = wp.Bvh(vec3s(low), vec3s(high))
    everywhere = [-9.0] * 3, [9.0] * 3
    for change in (tree.refit, tree.rebuild):
        tree.lowers.assign(tree.lowers.numpy() + 20.0)
        tree.uppers.assign(tree.uppers.numpy() + 20.0)
        change()
        assert not ask(tree, 50, *everywhere, 1.0, 1.0, 0)[0].any()
        tree.lowers.assign(tree.lowers.numpy() - 20.0)
        tree.uppers.assign(tree.uppers.numpy() - 20.0)
        assert not ask(tree, 50, *everywhere, 1.0, 1.0, 0)[0].any()  # as they were
        change()
        assert ask(tree, 50, *everywhere, 1.0, 1.0, 0)[0].all()


def test_gradients_of_what_was_found():
    low, high = boxes(40)
    tree = wp.Bvh(vec3s(low), vec3s(high))
    lowers = wp.array(low.astype(np.float32), dtype=wp.vec3, requires_grad=True)
    p = wp.array(boxes(10, 5)[0].astype(np.float32), dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(10, dtype=float, requires_grad=True)
    assert wp.autograd.gradcheck(shadow, dim=10, inputs=[tree.id, lowers, p], outputs=[out])
    with wp.Tape() as tape:
        wp.launch(shadow, 10, inputs=[tree.id, lowers, p], outputs=[out])
    tape.backward(grads={out: wp.ones_like(out)})
    x, y = lowers.numpy().astype(float), p.numpy().astype(float)
    high = tree.uppers.numpy().astype(float)
    hit = np.array([meets(x, high, q, np.array([0.0, 0.0, 1.0]), np.inf) for q in y])
    away = x[None] - y[:, None]
    unit = np.where(hit[..., None], away / np.linalg.norm(away, axis=2)[..., None], 0.0)
    np.testing.assert_allclose(p.grad.numpy(), -unit.sum(axis=1), atol=1e-5)
    np.testing.assert_allclose(lowers.grad.numpy(), unit.sum(axis=0), atol=1e-5)
    assert hit.any()


def test_odd_trees():
    low, high = boxes(20)
    low[3] = high[3] = np.nan
    high[5] = np.inf
    tree = wp.Bvh(vec3s(low), vec3s(high), leaf_size=2)
    got = ask(tree, 20, [-9.0] * 3, [9.0] * 3, 1.0, 1.0, 0)
    assert got[0].tolist() == [k != 3 for k in range(20)]
    empty = wp.Bvh(wp.zeros(0, dtype=wp.vec3), wp.zeros(0, dtype=wp.vec3))
    assert not ask(empty, 1, [-9.0] * 3, [9.0] * 3, 1.0, 1.0, 0)[:4].any()
    same = wp.Bvh(wp.zeros(100, dtype=wp.vec3), wp.zeros(100, dtype=wp.vec3))
    assert ask(same, 100, [0.0] * 3, [0.0] * 3, 1.0, 1.0, 0)[0].all()


def test_wrong_trees():
    low, high = (vec3s(x) for x in boxes(4))
    for args, named, words in (
        ((low, wp.zeros(3, dtype=wp.vec3)), {}, "same length"),
        ((low, wp.zeros(4, dtype=float)), {}, "uppers"),
        ((low, high), {"groups": wp.zeros(3, dtype=int)}, "groups"),
        ((low, high), {"constructor": "best"}, "constructor"),
        ((low, high), {"constructor": "cubql", "groups": wp.zeros(4, dtype=int)}, "grouped"),
        ((low, high), {"leaf_size": 0}, "leaf_size"),
    ):
        with pytest.raises(ValueError, match=f"E202.*{words}"):
            wp.Bvh(*args, **named)
    with pytest.warns(UserWarning, match="LBVH"):
        wp.Bvh(low, high, constructor="lbvh")
