"""`array_scan` and `array_cast`: values by NumPy, gradients by what scans and casts are."""

import numpy as np
import pytest

import engine as wp
from engine.utils import UtilityError, array_cast, array_scan

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("inclusive", [True, False])
@pytest.mark.parametrize(("kind", "inner"), [(wp.float32, ()), (wp.float64, ()), (wp.vec3, (3,))])
def test_scan_with_gradient(kind, inner, inclusive) -> None:
    x = wp.array(RNG.standard_normal((9, *inner)), dtype=kind, requires_grad=True)
    y = wp.zeros(18, dtype=kind, requires_grad=True)[::2]
    want = np.cumsum(x.numpy(), 0) - (0 if inclusive else x.numpy())
    array_scan(x, y, inclusive)
    np.testing.assert_allclose(y.numpy(), want, atol=1e-6)
    y.zero_()
    with wp.Tape() as tape:
        array_scan(x, y, inclusive)
    np.testing.assert_allclose(y.numpy(), want, atol=1e-6)
    seed = RNG.standard_normal((9, *inner)).astype(x._parts.dtype)
    tape.backward(grads={y: seed})
    behind = np.cumsum(seed[::-1], 0)[::-1] - (0 if inclusive else seed)
    np.testing.assert_allclose(x.grad.numpy(), behind, atol=1e-6)


def test_scan_in_place_with_gradient() -> None:
    x = wp.array([1.0, 2.0, 4.0], dtype=wp.float64, requires_grad=True)
    y = wp.clone(x)
    with wp.Tape() as tape:
        wp.copy(y, x)
        array_scan(y, y)
    np.testing.assert_array_equal(y.numpy(), [1.0, 3.0, 7.0])
    tape.backward(grads={y: np.array([1.0, 10.0, 100.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [111.0, 110.0, 100.0])


def test_scan_of_integers_wraps_as_kernels_do() -> None:
    x = wp.array([[2**31 - 1, 1], [1, 5]], dtype=wp.int32)
    array_scan(x, x)
    np.testing.assert_array_equal(x.numpy(), [[2**31 - 1, -(2**31)], [-(2**31) + 1, -(2**31) + 6]])
    v = wp.array([[1, 2], [3, 4]], dtype=wp.vec2l)
    array_scan(v, v, False)
    np.testing.assert_array_equal(v.numpy(), [[0, 0], [1, 2]])
    array_scan(wp.zeros(0, dtype=int), wp.zeros(0, dtype=int))


def test_scan_refuses() -> None:
    a, b = wp.zeros(3, dtype=int), wp.zeros(4, dtype=int)
    with pytest.raises(RuntimeError, match="3 elements do not fit 4"):
        array_scan(a, b)
    with pytest.raises(RuntimeError, match="int32 cannot be stored as float32"):
        array_scan(a, wp.zeros(3, dtype=float))
    with pytest.raises(UtilityError, match="got vec3h"):
        array_scan(wp.zeros(3, dtype=wp.vec3h), wp.zeros(3, dtype=wp.vec3h))


def test_cast_between_floats_has_a_gradient() -> None:
    x = wp.array([0.5, 1.5, 2.5], dtype=wp.float32, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        array_cast(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy())
    tape.backward(grads={y: np.array([1.0, 2.0, 3.0])})
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 2.0, 3.0])


def test_cast_of_components_has_a_gradient() -> None:
    x = wp.array(np.arange(6.0).reshape(2, 3), dtype=wp.vec3, requires_grad=True)
    y = wp.zeros((3, 2), dtype=wp.float64, requires_grad=True)
    back = wp.zeros(2, dtype=wp.vec3d, requires_grad=True)
    with wp.Tape() as tape:
        array_cast(x, y)
        array_cast(y, back)
    np.testing.assert_array_equal(y.numpy(), np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(back.numpy(), x.numpy())
    tape.backward(grads={back: np.arange(6.0).reshape(2, 3)})
    np.testing.assert_array_equal(x.grad.numpy(), np.arange(6.0).reshape(2, 3))


def test_cast_of_integers_and_parts() -> None:
    x = wp.array([1.7, -1.7, 3.0], dtype=float)
    y = wp.full(4, 9, dtype=int)
    array_cast(x, y)
    np.testing.assert_array_equal(y.numpy(), [1, -1, 3, 9])
    array_cast(y, x, count=1)
    z = wp.zeros(3, dtype=float)
    array_cast(wp.array([[1, 2], [3, 4]], dtype=wp.vec2), z[:2], count=1)
    np.testing.assert_array_equal(z.numpy(), [1.0, 2.0, 0.0])
    m = wp.zeros((2, 3), dtype=wp.int64)
    array_cast(wp.array(np.arange(6).reshape(2, 3), dtype=wp.int32), m)
    np.testing.assert_array_equal(m.numpy(), np.arange(6).reshape(2, 3))


def test_cast_refuses() -> None:
    x = wp.zeros((2, 3), dtype=float)
    with pytest.raises(RuntimeError, match=r"shape \(2, 3\) does not fit shape \(3, 2\)"):
        array_cast(x, wp.zeros((3, 2), dtype=wp.float64))
    with pytest.raises(RuntimeError, match="6 elements do not exist, or do not fit: from 6 to 5"):
        array_cast(x.flatten(), wp.zeros(5, dtype=int))
    with pytest.raises(RuntimeError, match="works only with arrays of one dimension"):
        array_cast(x, wp.zeros((2, 3), dtype=wp.float64), count=1)


def test_transform_expand() -> None:
    t = wp.transform_expand((1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0))
    assert t == wp.transform((1.0, 2.0, 3.0), (0.0, 0.0, 0.0, 1.0))
