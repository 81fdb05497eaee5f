"""Scalar, vector and matrix values on the host."""

import copy
import math
import operator
import pickle
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import engine as wp
from engine import LaunchError
from engine.lang import types as t
from engine.lang.values import SCALAR_CLASSES, to_ir_type, to_value_type, value_class

INTEGERS = [c for k, c in SCALAR_CLASSES.items() if k.kind in "iu"]
FLOATS = [wp.float32, wp.float64]


@pytest.mark.parametrize("cls", INTEGERS)
@given(value=st.integers(-(1 << 70), 1 << 70))
def test_integers_wrap_to_their_width(cls, value):
    kind = cls.__ir_type__
    got = cls(value)
    low = -(1 << (kind.bits - 1)) if kind.kind == "i" else 0
    assert low <= got < low + (1 << kind.bits)
    assert (got - value) % (1 << kind.bits) == 0
    assert isinstance(got, int)


@given(value=st.floats(allow_nan=False))
def test_float32_rounds(value):
    with np.errstate(over="ignore"):
        assert wp.float32(value) == np.float32(value)
    assert isinstance(wp.float32(value), float)
    assert wp.float64(value) == value


def test_scalar_repr_and_value():
    assert repr(wp.float32(1.5)) == "float32(1.5)"
    assert str(wp.int8(300)) == "44"
    assert type(wp.float32(1.5).value) is float
    assert type(wp.int32(3).value) is int
    assert wp.int32(7.9) == 7  # a cast truncates
    assert wp.bool(3) is True
    assert f"{wp.float32(0.5):.3f}" == "0.500"


def test_float_operations_leave_the_class():
    assert type(wp.float32(1.0) + 1) is float
    assert type(wp.int8(127) + 1) is int


@pytest.mark.parametrize("kind", list(t.SCALARS.values()), ids=str)
def test_every_scalar_is_found_in_every_spelling(kind):
    cls = value_class(kind)
    for spelling in (cls, kind, kind.numpy, kind.numpy.type):
        assert to_ir_type(spelling) == kind
    assert wp.dtype_to_numpy(cls) is kind.numpy.type
    assert wp.dtype_to_numpy(cls).__name__ == kind.numpy.type.__name__
    assert wp.dtype_from_numpy(kind.numpy) is cls


def test_python_classes_mean_32_bits():
    assert to_ir_type(float) == t.FLOAT32
    assert to_ir_type(int) == t.INT32
    assert to_ir_type(bool) == t.BOOL
    assert to_ir_type(np.float64) == t.FLOAT64


@pytest.mark.parametrize("bad", [str, complex, np.complex64, "float", None, 3, np.dtype(">f4")])
def test_what_is_no_type_is_refused(bad):
    with pytest.raises(LaunchError) as e:
        to_ir_type(bad)
    assert e.value.diagnostics[0].code == "E202"


def test_an_array_is_no_element_type():
    with pytest.raises(LaunchError):
        to_value_type(wp.array(dtype=float))


def test_vector_construction():
    assert list(wp.vec3()) == [0, 0, 0]
    assert list(wp.vec3(2)) == [2, 2, 2]
    assert list(wp.vec3(1, 2, 3)) == [1, 2, 3]
    assert list(wp.vec3([1, 2, 3])) == [1, 2, 3]
    assert list(wp.vec3(np.arange(3))) == [0, 1, 2]
    assert wp.vec3i(wp.vec3(1.7, -1.7, 0)) == wp.vec3i(1, -1, 0)
    assert wp.vec3f is wp.vec3


def test_matrix_construction():
    m = wp.mat22(1, 2, 3, 4)
    assert m == wp.mat22([[1, 2], [3, 4]]) == wp.mat22([1, 2, 3, 4])
    assert m == wp.mat22(wp.vec2(1, 2), wp.vec2(3, 4))
    assert wp.mat22(2.0) == wp.mat22(2, 2, 2, 2)
    assert m[1, 0] == 3
    assert m[0] == wp.vec2(1, 2)
    assert m[:, 1] == wp.vec2(2, 4)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda: wp.vec3(1, 2), "E109"),
        (lambda: wp.vec3([1, 2, 3, 4]), "E109"),
        (lambda: wp.mat22(1, 2, 3), "E109"),
        (lambda: wp.mat22([1, 2], [3]), "E109"),
        (lambda: wp.vec3("a"), "E202"),
        (lambda: wp.vec3i(1.5, 2, 3), "E202"),
    ],
)
def test_bad_components(make, code):
    with pytest.raises(LaunchError) as e:
        make()
    assert e.value.diagnostics[0].code == code


def test_components_by_name_and_index():
    v = wp.vec4(1, 2, 3, 4)
    v.x = 10
    v[-1] = 40
    assert (v.x, v.y, v.z, v.w) == (10, 2, 3, 40)
    v[0:2] = (5, 6)
    assert v[0:2] == wp.vec2(5, 6)
    assert not hasattr(wp.vec2(), "z")
    with pytest.raises(IndexError):
        v[4]
    with pytest.raises(IndexError):
        wp.mat22()[0, 2]


def test_arithmetic():
    v, m = wp.vec2(1, 2), wp.mat22(1, 2, 3, 4)
    assert v + v == v * 2 == 2 * v == np.float32(2) * v == wp.vec2(2, 4)
    assert v - (1, 1) == wp.vec2(0, 1)
    assert -v == wp.vec2(-1, -2)
    assert +v == v
    assert v / 2 == wp.vec2(0.5, 1)
    assert 2.0 / v == wp.vec2(2, 1)
    assert m * v == m @ v == wp.vec2(5, 11)
    assert v * m == wp.vec2(7, 10)
    assert m * m == m @ m == wp.mat22(7, 10, 15, 22)
    assert isinstance(np.float32(2) * v, wp.vec2)
    assert sum([v, v], wp.vec2()) == v * 2


def test_integer_division_truncates_and_never_traps():
    assert wp.vec3i(7, -7, 3) / 2 == wp.vec3i(3, -3, 1)
    assert wp.vec3i(7, -7, 3) / 0 == wp.vec3i(0, 0, 0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: wp.vec3() * wp.vec3(),
        lambda: wp.vec3() / wp.vec3(),
        lambda: wp.vec3() + 1,
        lambda: wp.vec3() + wp.vec3d(),
        lambda: wp.vec3() + wp.vec2(),
        lambda: wp.mat22() * wp.vec3(),
        lambda: 1 - wp.vec3(),
        lambda: 1.0 @ wp.mat22(),
        lambda: np.float32(1.0) + wp.vec3(),
        lambda: wp.mat22() % 2,
        lambda: wp.vec3() - None,
        lambda: wp.mat22() @ wp.mat33(),
        lambda: wp.mat22d() * wp.mat22(),
        lambda: wp.vec3() * wp.quat(),
    ],
)
def test_what_has_no_meaning_is_an_error(wrong):
    with pytest.raises(TypeError, match="has no meaning") as error:
        wrong()
    assert isinstance(error.value, wp.LaunchError)
    (found,) = error.value.diagnostics
    assert (found.code, found.span.file) == ("E104", __file__)


def test_what_others_may_know_is_left_to_them():
    class Mine:
        def __radd__(self, other):
            return "added"

        __rmatmul__ = __rtruediv__ = __rmod__ = __rmul__ = __rsub__ = __radd__

    a = wp.vec3()
    for found in (a + Mine(), a @ Mine(), a / Mine(), a % Mine(), a * Mine(), a - Mine()):
        assert found == "added"
    for wrong in (lambda: hash(wp.vec3()), lambda: wp.vec3() < wp.vec3(), lambda: "x" + wp.vec3()):
        with pytest.raises(TypeError):
            wrong()


def test_equality_needs_the_same_type():
    assert wp.vec3(1, 2, 3) != wp.vec3d(1, 2, 3)
    assert wp.vec3(1, 2, 3) == (1, 2, 3)
    assert wp.vec3(1, 2, 3) != "abc"
    assert wp.vec3(float("nan")) != wp.vec3(float("nan"))


def test_text():
    assert repr(wp.vec3(1, 2, 3)) == "vec3f([1.0, 2.0, 3.0])"
    assert str(wp.vec3(1, 2, 3)) == "[1.0, 2.0, 3.0]"
    assert str(wp.mat22(1, 2, 3, 4)) == "[[1.0, 2.0],\n [3.0, 4.0]]"
    assert eval(repr(wp.vec3(1, 2, 3)), {"vec3f": wp.vec3f}) == wp.vec3(1, 2, 3)


def test_to_numpy_is_a_copy():
    v = wp.vec3(1, 2, 3)
    a = np.array(v)
    a[0] = 9
    assert v.x == 1
    assert a.dtype == np.float32
    assert np.asarray(wp.mat33d()).shape == (3, 3)


@pytest.mark.parametrize("value", [wp.vec3(1, 2, 3), wp.mat22d(1, 2, 3, 4)], ids=repr)
def test_copies(value):
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert type(other) is type(value)
        assert other == value
        other[0] = 7 * other[0]
        assert other != value


def test_classes_are_unique_and_named():
    assert value_class(t.VectorType(t.FLOAT32, 3)) is wp.vec3
    assert wp.vec3.__name__ == "vec3f"
    assert wp.vec3.__ir_type__ == t.VectorType(t.FLOAT32, 3)
    assert wp.vec3.dtype is wp.float32
    assert value_class(t.VectorType(t.INT64, 5))(range(5))[4] == 4


def test_constant():
    assert wp.constant(3) == 3
    with pytest.raises(LaunchError):
        wp.constant("text")


def test_bfloat16_rounds_to_8_bits_ties_to_even() -> None:
    assert wp.bfloat16(3.14159) == 3.140625
    assert wp.bfloat16(1.0 + 2.0**-8) == 1.0  # a tie
    assert wp.bfloat16(1.0 + 3.0 * 2.0**-8) == 1.0 + 2.0**-6  # a tie
    assert wp.bfloat16(1.0 + 2.0**-8 + 2.0**-20) == 1.0 + 2.0**-7
    # By way of float32, as NumPy's type and kernels round.
    assert wp.bfloat16(1.0 + 2.0**-8 + 2.0**-40) == 1.0
    assert wp.bfloat16(3.4e38) == float("inf")
    assert np.isnan(wp.bfloat16(float("nan")))
    assert wp.types.type_size_in_bytes(wp.bfloat16) == 2


def test_bfloat16_can_be_named_but_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wp.array(dtype=wp.bfloat16).dtype is wp.bfloat16
    t._bfloat16.cache_clear()
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)  # as where it is not installed
    with pytest.raises(wp.EngineError, match=r"E112.*bfloat16 need the package ml_dtypes"):
        _ = t.BFLOAT16.numpy


def test_tables_of_types() -> None:
    from engine import types

    assert set(types.scalar_types) == {*types.int_types, *types.float_types}
    assert wp.bool in types.scalar_and_bool_types
    for cls, scalar in types.warp_type_to_np_dtype.items():
        if cls is not wp.bfloat16:
            assert types.np_dtype_to_warp_type[scalar] is cls
            assert types.np_dtype_to_warp_type[np.dtype(scalar)] is cls
    assert types.type_scalar_type(wp.vec3d) is wp.float64
    assert types.type_scalar_type(wp.array(dtype=wp.mat22)) is wp.float32
    assert types.type_scalar_type(int) is wp.int32
    assert wp.vec3 in types.vector_types and wp.quatd in types.vector_types


ARITHMETIC = ["add", "sub", "mul", "truediv", "mod"]


@wp.kernel
def small(a: wp.array(dtype=wp.int8), b: wp.array(dtype=wp.int8), out: wp.array2d(dtype=wp.int8)):
    i = wp.tid()
    out[0, i] = a[i] + b[i]
    out[1, i] = a[i] - b[i]
    out[2, i] = a[i] * b[i]
    out[3, i] = a[i] / b[i]
    out[4, i] = a[i] % b[i]
    out[5, i] = -a[i]


def test_arithmetic_of_sized_integers_is_that_of_kernels():
    values = np.array([-128, -7, -2, 0, 1, 3, 100, 127], np.int8)
    a, b = (v.ravel() for v in np.meshgrid(values, values[values != 0]))
    keep = (a != -128) | (b != -1)  # whose quotient has no place, and traps elsewhere
    a, b = a[keep], b[keep]
    out = wp.zeros((6, len(a)), dtype=wp.int8)
    wp.launch(small, len(a), inputs=[wp.array(a), wp.array(b)], outputs=[out])
    for i in range(len(a)):
        x, y = wp.int8(int(a[i])), wp.int8(int(b[i]))
        found = [getattr(operator, name)(x, y) for name in ARITHMETIC] + [-x]
        assert all(type(f) is wp.int8 for f in found)
        assert found == out.numpy()[:, i].tolist()


def test_arithmetic_of_sized_floats_rounds_to_their_width():
    for cls, dtype in (wp.float16, np.float16), (wp.float64, np.float64):
        x, y = cls(-7.3), cls(0.7)
        for name in ARITHMETIC[:4]:
            found = getattr(operator, name)(x, y)
            assert type(found) is cls and found == getattr(operator, name)(dtype(-7.3), dtype(0.7))
        assert x % y == math.fmod(x, y) and -x == -float(x)
    a = wp.bfloat16(1.0) + wp.bfloat16(2.0**-7)
    assert type(a) is wp.bfloat16 and a == 1.0078125


def test_the_types_of_literals_give_plain_numbers():
    for found, value in (
        (wp.int32(7) / 2, 3), (7 / wp.int32(2), 3), (wp.int32(2**31 - 1) + 1, -(2**31)),
        (wp.int32(-7) % wp.int32(4), -3),
    ):  # fmt: skip
        assert type(found) is int and found == value
    third = wp.float32(0.1) + 0.2
    assert type(third) is float and third == np.float32(0.1) + np.float32(0.2)
    # Nothing is known of other pairs: Python's own arithmetic.
    assert type(wp.int8(100) + 100) is int and wp.int8(100) + 100 == 200
    assert wp.int8(100) + wp.int16(100) == 200 and wp.int32(7) / 2.0 == 3.5
    for name in "truediv", "floordiv", "mod":
        with pytest.raises(ZeroDivisionError):
            getattr(operator, name)(wp.int16(1), wp.int16(0))


def test_remainders_of_vectors_and_matrices():
    v = wp.vec3(-7.0, 5.0, 3.5) % wp.vec3(3.0, -3.0, 2.0)
    assert v == wp.vec3(-1.0, 2.0, 1.5)
    assert wp.vec3i(-7, 5, 3) % wp.vec3i(3, -3, 0) == wp.vec3i(-1, 2, 0)
    v[:2] %= wp.vec2(0.75, 0.5)
    assert v == wp.vec3(-0.25, 0.0, 1.5)
    with pytest.raises(TypeError):
        v % 2.0


def test_vectors_take_no_components_that_they_have_not():
    v = wp.vec2(1.0, 2.0)
    for name in "z", "xy", "wx":
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            setattr(v, name, 9.0)
        assert not hasattr(v, name)
    v.note = 9
    v.y = 3.0
    assert v.note == 9 and v == wp.vec2(1.0, 3.0)


def test_scalar_classes_are_types_of_numpy_and_of_c() -> None:
    import ctypes

    for cls, scalar in wp.types.warp_type_to_np_dtype.items():
        if cls is wp.bfloat16:
            assert not hasattr(cls, "__numpy_dtype__")
            continue
        assert cls.__numpy_dtype__ == np.dtype(scalar)
        assert ctypes.sizeof(cls._type_) == np.dtype(scalar).itemsize
        if tuple(map(int, np.__version__.split(".")[:2])) >= (2, 4):
            assert np.zeros(2, dtype=cls).dtype == np.dtype(scalar)
            assert wp.array(np.ones(2, dtype=cls), dtype=cls).numpy().tolist() == [1, 1]


def test_what_names_no_component() -> None:
    v, m = wp.vec3(1.0, 2.0, 3.0), wp.mat22(1.0, 2.0, 3.0, 4.0)
    for key in (None, "x", 1.5):
        for value in (v, m):
            with pytest.raises(KeyError, match="by an integer or a slice"):
                value[key]
            with pytest.raises(IndexError, match="by an integer or a slice"):
                value[key] = 0.0
    with pytest.raises(KeyError, match="too many indices: 3"):
        m[0, 1, 0]
    with pytest.raises(LaunchError, match=r"a component of vec3f cannot be set to '1' of type str"):
        v[0] = "1"
    with pytest.raises(LaunchError, match=r"components of shape \(2,\) of vec3f cannot be set"):
        v[1:] = [1.0, 2.0, 3.0]


def test_numbers_of_types_that_python_has_not_keep_their_type():
    for found, cls, value in (
        (wp.vec3d(1.0, 2.5, 3.0)[1], wp.float64, 2.5), (wp.vec3d(1.0, 2.5, 3.0).y, wp.float64, 2.5),
        (wp.mat22h(1.0, 2.0, 3.0, 0.1)[1, 1], wp.float16, float(np.float16(0.1))),
        (wp.vec3ub(1, 2, 3).z, wp.uint8, 3), (wp.argmax(wp.vec3(1.0, 3.0, 2.0)), wp.uint32, 1),
        (wp.rand_init(3), wp.uint32, 2131687100), (wp.abs(wp.int16(-3)), wp.int16, 3),
        (wp.vec3(1.0, 2.5, 3.0)[1], float, 2.5), (wp.vec3i(1, 2, 3).x, int, 1),
        (wp.dot(wp.vec3i(1, 2, 3), wp.vec3i(1, 1, 1)), int, 6),
    ):  # fmt: skip
        assert type(found) is cls and found == value
    # What is computed of them further is computed in their precision.
    assert wp.sin(wp.vec3d(1.0, 2.5, 3.0)[1]) == math.sin(2.5)
    assert wp.sqrt(wp.length_sq(wp.vec2d(1.0, 1.0))) == math.sqrt(2.0)


def test_negative_integers_wrap_where_integers_are_lenient(monkeypatch):
    with pytest.raises(LaunchError, match="-1 is outside"):
        wp.vec2us(-1, 2)
    monkeypatch.setattr(wp.config, "integers", "lenient")
    assert wp.vec2us(-1, 2) == wp.vec2us(65535, 2)
    with pytest.raises(LaunchError):
        wp.vec2us(float("nan"), 1.0)
