"""Quaternions, transforms and spatial vectors as Python values; types made to measure."""

import copy
import pickle

import numpy as np
import pytest

import engine as wp
from engine import EngineError, LaunchError

Q = wp.quat(1, 2, 3, 4)
T = wp.transform(wp.vec3(1, 2, 3), wp.quat(4, 5, 6, 7))
VALUES = [Q, T, wp.quatd(1, 2, 3, 4), wp.transformh(*range(7)), wp.spatial_vector(*range(6))]


def test_every_name_is_there():
    for n in (2, 3, 4):
        for s, dtype in {
            "b": wp.int8, "ub": wp.uint8, "s": wp.int16, "us": wp.uint16, "i": wp.int32,
            "ui": wp.uint32, "l": wp.int64, "ul": wp.uint64, "h": wp.float16, "f": wp.float32,
            "d": wp.float64,
        }.items():  # fmt: skip
            cls = getattr(wp, f"vec{n}{s}")
            assert cls is wp.types.vector(n, dtype) and cls.__name__ == f"vec{n}{s}"
        assert getattr(wp, f"vec{n}") is getattr(wp, f"vec{n}f")
        assert getattr(wp, f"mat{n}{n}") is getattr(wp, f"mat{n}{n}f")
    for s, dtype in {"h": wp.float16, "f": wp.float32, "d": wp.float64}.items():
        made = {
            "mat22": wp.types.matrix((2, 2), dtype), "mat33": wp.types.matrix((3, 3), dtype),
            "mat44": wp.types.matrix((4, 4), dtype), "quat": wp.types.quaternion(dtype),
            "transform": wp.types.transformation(dtype),
            "spatial_vector": wp.types.vector(6, dtype),
            "spatial_matrix": wp.types.matrix((6, 6), dtype),
        }  # fmt: skip
        for name, cls in made.items():
            assert getattr(wp, name + s) is cls and cls.__name__ == name + s
            assert name + s in wp.__all__
    assert wp.quat is wp.quatf and wp.transform is wp.transformf
    assert wp.spatial_vector is wp.spatial_vectorf and wp.spatial_matrix is wp.spatial_matrixf


def test_construction():
    assert list(wp.quat()) == [0, 0, 0, 0]
    assert list(wp.quat(2)) == [2, 2, 2, 2]
    assert wp.quat(wp.vec3(1, 2, 3), 4) == Q == wp.quat([1, 2, 3, 4]) == wp.quat(np.arange(1, 5))
    assert wp.quat(wp.quatd(1, 2, 3, 4)) == Q
    assert list(wp.transform()) == [0, 0, 0, 0, 0, 0, 1]
    assert list(wp.transform(wp.vec3(1, 2, 3))) == [1, 2, 3, 0, 0, 0, 1]
    assert list(wp.transform(q=(1, 0, 0, 0))) == [0, 0, 0, 1, 0, 0, 0]
    assert T == wp.transform(*range(1, 8)) == wp.transform(range(1, 8)) == wp.transform(T)
    assert T == wp.transform((1, 2, 3), q=wp.quatd(4, 5, 6, 7)) == wp.transform(wp.transformd(*T))
    s = wp.spatial_vector(wp.vec3(1, 2, 3), (4, 5, 6))
    assert s == wp.spatial_vector(1, 2, 3, 4, 5, 6) and s.x == 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: wp.quat(1, 2, 3),
        lambda: wp.quat(wp.vec2(1, 2), 3),
        lambda: wp.quat(wp.vec3(), wp.vec3()),
        lambda: wp.quat("abcd"),
        lambda: wp.transform(1, 2),
        lambda: wp.transform(1, 2, 3),
        lambda: wp.transform(wp.vec3(), p=wp.vec3()),
        lambda: wp.transform(wp.vec4()),
        lambda: wp.transform(q="abcd"),
        lambda: wp.transform(*range(7), p=wp.vec3()),
        lambda: setattr(wp.transform(), "p", wp.quat()),
        lambda: wp.types.vector(-1, float),
        lambda: wp.types.vector(2.5, float),
        lambda: wp.types.vector(True, float),
        lambda: wp.types.vector(3, wp.vec3),
        lambda: wp.types.vector(3, str),
        lambda: wp.types.matrix(3, float),
        lambda: wp.types.matrix((3, 0), float),
        lambda: wp.types.matrix((100, 100), float),
        lambda: wp.types.quaternion(int),
        lambda: wp.types.transformation(wp.array(dtype=float)),
    ],
)
def test_what_cannot_be_made_is_told(wrong):
    with pytest.raises(LaunchError) as e:
        wrong()
    assert e.value.diagnostics[0].code in ("E109", "E202")


def test_parts():
    assert (Q.x, Q.y, Q.z, Q.w) == (1, 2, 3, 4)
    assert Q[:3] == wp.vec3(1, 2, 3) and type(Q[:3]) is wp.vec3
    assert T.p == wp.vec3(1, 2, 3) and T.q == wp.quat(4, 5, 6, 7) and T[3] == 4
    t = wp.transform(T)
    t.p[0] = 9.0  # a copy
    assert t == T
    t.p, t.q = (0, 0, 0), wp.quat_identity()
    assert t == wp.transform_identity() and T.p.x == 1
    t[1:3] = [5, 6]
    t[0] = 4
    assert t.p == wp.vec3(4, 5, 6)
    with pytest.raises(AttributeError):
        _ = T.x


def test_arithmetic():
    i, j, k, one = (
        wp.quat(1, 0, 0, 0),
        wp.quat(0, 1, 0, 0),
        wp.quat(0, 0, 1, 0),
        wp.quat(0, 0, 0, 1),
    )
    assert i * j == k and j * k == i and k * i == j and j * i == -k and i * i == -one
    assert Q * one == Q == one * Q and Q * 2 == 2 * Q == Q + Q == wp.quat(2, 4, 6, 8)
    assert Q / 2 == wp.quat(0.5, 1, 1.5, 2) and 2 / Q == wp.quat(2, 1, 2 / 3, 0.5)
    assert Q - Q == wp.quat() and -Q + Q == wp.quat() and +Q == Q
    assert T + T == 2 * T == T * 2.0 and type(T * 2) is wp.transform
    assert (wp.transform_identity() * T) == T == T * wp.transform_identity()
    turn = wp.transform(wp.vec3(1, 0, 0), wp.quat(0, 0, 1, 0))  # by pi about z
    assert turn * turn == wp.transform(wp.vec3(), wp.quat(0, 0, 0, -1))


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Q * wp.vec3(),
        lambda: Q + wp.vec4(),
        lambda: Q * T,
        lambda: Q * wp.quatd(),
        lambda: wp.mat44() * Q,
        lambda: Q @ Q,
        lambda: T / T,
        lambda: T + 1.0,
    ],
)
def test_what_has_no_meaning_is_an_error(wrong):
    with pytest.raises(TypeError, match=r"E104.*has no meaning"):
        wrong()


def test_equality_needs_the_same_type():
    assert Q != wp.vec4(1, 2, 3, 4) and Q != wp.quatd(1, 2, 3, 4)
    assert Q == [1, 2, 3, 4] and T != wp.transform()


def test_text():
    assert repr(Q) == "quatf([1.0, 2.0, 3.0, 4.0])" and str(Q) == "[1.0, 2.0, 3.0, 4.0]"
    assert repr(wp.transformd()) == "transformd([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])"
    assert repr(wp.types.vector(5, float)()) == (
        "vector(length=5, dtype=float32)([0.0, 0.0, 0.0, 0.0, 0.0])"
    )
    assert repr(wp.vec2h(1.1, 2)) == "vec2h([1.099609375, 2.0])"


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_copies_and_arrays(value):
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value and type(other) is type(value) and other is not value
    a = wp.array([value, value], dtype=type(value))
    assert a.dtype is type(value) and a.shape == (2,)
    np.testing.assert_array_equal(a.numpy()[1], np.asarray(value))
    assert wp.array(a.numpy(), dtype=type(value)).numpy().dtype == type(value)._dtype
    filled = wp.full(3, value)
    assert filled.dtype is type(value)
    filled.fill_(value * 2)
    np.testing.assert_array_equal(filled.numpy()[2], np.asarray(value * 2))


@wp.kernel
def pass_on(
    q: wp.quat, t: wp.transformd, h: wp.float16, v: wp.types.vector(5, wp.float16),
    a: wp.array(dtype=wp.quat), b: wp.array(dtype=wp.transformd),
    c: wp.array(dtype=wp.types.vector(5, wp.float16)), d: wp.array(dtype=wp.float16),
):  # fmt: skip
    a[0] = q
    b[0] = t
    c[0] = v
    d[0] = h


def test_values_pass_to_launches():
    V = wp.types.vector(5, wp.float16)
    out = [wp.zeros(1, dtype=t) for t in (wp.quat, wp.transformd, V, wp.float16)]
    t = wp.transformd(*range(7))
    for q, x, h, v in (
        (Q, t, wp.float16(0.1), V(1, 2, 3, 4, 5.1)),
        ([1, 2, 3, 4], np.arange(7), 0.1, (1, 2, 3, 4, 5.1)),
    ):
        for a in out:
            a.zero_()
        wp.launch(pass_on, dim=1, inputs=[q, x, h, v, *out])
        assert out[0].numpy()[0].tolist() == [1, 2, 3, 4]
        assert out[1].numpy()[0].tolist() == list(range(7))
        np.testing.assert_array_equal(out[2].numpy()[0], np.float16([1, 2, 3, 4, 5.1]))
        assert out[3].numpy()[0] == np.float16(0.1)
    with pytest.raises(LaunchError):
        wp.launch(pass_on, dim=1, inputs=[wp.vec3(), t, 0.1, V(), *out])


def test_matrix_rows_and_columns():
    m = wp.mat22(1, 2, 3, 4)
    assert m.get_row(1) == wp.vec2(3, 4) and m.get_col(1) == wp.vec2(2, 4)
    m.set_row(0, (5, 6))
    m.set_col(1, wp.vec2(7, 8))
    assert m == wp.mat22(5, 7, 3, 8)
    assert wp.mat33(*range(9))[1:, :2] == wp.mat22(3, 4, 6, 7)
    with pytest.raises(LaunchError):
        m[0] = (1, 2, 3)


def test_values_made_by_name():
    assert wp.vector(1.0, 2) == wp.vec2(1, 2) and wp.vector(1, 2) == wp.vec2i(1, 2)
    assert wp.vector(length=3, dtype=wp.float64) == wp.vec3d()
    assert wp.vector(1.5, length=2) == wp.vec2(1.5) and wp.vector(wp.vec3(1, 2, 3)) == wp.vec3(
        1, 2, 3
    )
    assert wp.matrix(1.0, 2.0, shape=(1, 2)) == wp.types.matrix((1, 2), float)(1, 2)
    assert wp.quaternion(1, 2, 3, 4) == Q == wp.quaternion(ijk=wp.vec3(1, 2, 3), real=4.0)
    assert wp.quaternion(Q, dtype=wp.float64) == wp.quatd(1, 2, 3, 4)
    assert wp.transformation(T.p, T.q) == T == wp.transformation(p=T.p, q=T.q)
    assert list(wp.transformation()) == [0] * 7
    assert wp.quat_identity(wp.float16) == wp.quath(0, 0, 0, 1)
    for wrong in (
        lambda: wp.vector(),
        lambda: wp.vector(1.0, size=3),
        lambda: wp.matrix(1.0),
        lambda: wp.vector(wp.float64(1), wp.float32(1)),
        lambda: wp.vector("a"),
        lambda: wp.vector(1.0, dtype=wp.vec3),
        lambda: wp.quaternion(1, 2, 3, dtype=int),
        lambda: wp.quat_identity(int),
        lambda: wp.transform_identity(float, float),
    ):
        with pytest.raises(EngineError):
            wrong()


def test_questions_about_types():
    t = wp.types
    assert t.types_equal(float, wp.float32) and not t.types_equal(wp.vec3, wp.vec3d)
    assert t.types_equal(wp.array(dtype=float), wp.array(dtype=wp.float32))
    assert not t.types_equal(wp.quat, wp.vec4) and not t.types_equal(str, int)
    assert t.type_size(wp.mat33) == 9 and t.type_size(float) == 1
    assert t.type_size_in_bytes(wp.vec3) == 12 and t.type_size_in_bytes(wp.transformh) == 14
    assert t.type_repr(wp.vec3) == "vec3f" and t.type_repr(float) == "float"
    assert t.type_repr(wp.array(dtype=wp.quat, ndim=2)) == "array(ndim=2, dtype=quatf)"
    assert t.type_is_vector(wp.vec3) and not t.type_is_vector(wp.quat)
    assert t.type_is_quaternion(wp.quat) and t.type_is_transformation(wp.transformd)
    assert t.type_is_matrix(wp.mat22) and t.type_is_composite(wp.quat)
    assert t.type_is_float(wp.float16) and t.type_is_int(int) and not t.type_is_scalar(bool)
    assert t.type_is_value(float) and not t.type_is_value(wp.array(dtype=float))
    assert t.type_is_array(wp.array) and t.is_array(wp.zeros(1)) and not t.is_array(1)
    assert t.is_vector(wp.vec3()) and t.is_matrix(wp.mat22()) and t.is_quaternion(Q)
    assert t.is_transformation(T) and t.is_composite(T) and t.is_value(1.0) and t.is_scalar(2)
    assert t.is_int(wp.int64(1)) and t.is_float(1.0) and not t.is_float(1)
