"""Builtins called with arguments by name, and numbers that a cast has to wrap."""

import math

import numpy as np
import pytest

import engine as wp
from engine.builtins.argument_names import argument_names, placed
from engine.builtins.stubs import BUILTINS

F = wp.float64
Z = wp.vec3d(0.0, 0.0, 1.0)


@wp.kernel
def named(x: wp.array(dtype=F), y: wp.array(dtype=F), m: wp.array2d(dtype=F)):
    y[0] = wp.clamp(x[0], low=F(0.0), high=F(0.5))
    y[1] = wp.lerp(a=x[0], t=F(0.5), b=x[1])
    wp.atomic_add(y, 2, value=x[1])
    wp.atomic_add(arr=m, j=1, i=0, value=x[1])
    y[3] = wp.where(x[0] > F(0.0), value_if_false=x[0], value_if_true=x[1])
    q = wp.quat_from_axis_angle(angle=F(1.0), axis=Z)
    y[4] = wp.quat_rotate(quat=q, vec=wp.vec3d(F(1.0), F(0.0), F(0.0)))[0]
    wp.atomic_cas(y, 5, compare=F(0.0), value=F(5.0))
    U = wp.mat33d()
    s = wp.vec3d()
    V = wp.mat33d()
    wp.svd3(A=wp.diag(vec=wp.vec3d(F(3.0), F(2.0), F(1.0))), sigma=s, U=U, V=V)
    y[6] = s[0]
    y[7] = wp.transform_point(xform=wp.transform_identity(dtype=F), point=Z)[2] + wp.sin(x=x[0])


@wp.kernel
def drawn(y: wp.array(dtype=float)):
    s = wp.rand_init(seed=3, offset=1)
    t = wp.rand_init(3, 1)
    y[0] = wp.randf(state=s, high=2.0, low=1.0)
    y[1] = wp.randf(state=s)
    y[2] = wp.randf(t, 1.0, 2.0)
    y[3] = wp.randf(t)
    y[4] = wp.curlnoise(s, xy=wp.vec2(1.0, 2.0), gain=0.25)[0]
    y[5] = wp.curlnoise(s, wp.vec2(1.0, 2.0), wp.uint32(1), 2.0, 0.25)[0]


@wp.kernel
def casts(y: wp.array(dtype=F), big: F):
    n = wp.int32(3000000000)
    y[0] = F(n)
    y[1] = F(n + 1)
    y[2] = F(int(F(1e20)))
    y[3] = F(int(big))
    y[4] = F(wp.int8(200))


def test_arguments_have_names() -> None:
    x, y, m = wp.array([0.7, 2.0], dtype=F), wp.zeros(8, dtype=F), wp.zeros((2, 2), dtype=F)
    wp.launch(named, 1, [x, y, m])
    want = [0.5, 1.35, 2.0, 2.0, math.cos(1.0), 5.0, 3.0, 1.0 + math.sin(0.7)]
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-12)
    assert m.numpy()[0, 1] == 2.0


def test_states_and_defaults() -> None:
    y = wp.zeros(6, dtype=float)
    wp.launch(drawn, 1, [y])
    got = y.numpy()
    assert got[0] == got[2] and got[1] == got[3] != got[0] - 1.0 and got[4] == got[5]


def test_casts_of_numbers_that_do_not_fit() -> None:
    y = wp.zeros(5, dtype=F)
    wp.launch(casts, 1, [y, 1e20])
    assert y.numpy().tolist() == [-1294967296, -1294967295, 2147483647, 2147483647, -56]


def test_names_on_the_host() -> None:
    assert wp.clamp(3.0, low=0.0, high=1.0) == 1.0
    assert wp.lerp(1.0, t=0.25, b=2.0) == 1.25
    with pytest.raises(wp.EngineError, match="takes no argument 'y' here"):
        wp.sin(y=1.0)


def test_places() -> None:
    assert placed("clamp", 1, ["high", "low"]) == ["low", "high"]
    assert placed("clamp", 1, ["high"]) is None  # there is no default between
    assert placed("clamp", 2, ["low"]) is None
    assert placed("atomic_add", 0, ["value", "i", "arr"]) == ["arr", "i", "value"]
    assert all(names for user in BUILTINS for names in argument_names(user))
