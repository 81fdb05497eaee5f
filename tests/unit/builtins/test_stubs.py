"""Builtins called from Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine as wp
from engine.builtins.stubs import BUILTINS, KERNEL_ONLY
from engine.diagnostics import EngineError
from engine.lang.names import mat22, vec3, vec3d, vec3i
from engine.lang.types import FLOAT64
from engine.lang.values import float64


def test_python_floats_count_as_float32() -> None:
    got = BUILTINS["sin"](0.5)
    assert type(got) is float
    assert got == float(np.sin(np.float32(0.5)))


def test_float64_values_stay_wide() -> None:
    assert BUILTINS["sin"](float64(0.5)) == math.sin(0.5)
    assert BUILTINS["sin"](np.float64(0.5)) == math.sin(0.5)
    assert BUILTINS["max"](float64(0.1), 0.1) == 0.1
    assert BUILTINS["max"](0.1, 0.1) == float(np.float32(0.1))


def test_numbers_of_every_kind() -> None:
    assert BUILTINS["max"](1, 2.5) == 2.5
    assert BUILTINS["min"](3, 4) == 3
    assert type(BUILTINS["min"](3, 4)) is int
    assert BUILTINS["add"](2**31 - 1, 1) == -(2**31)
    assert BUILTINS["add"](2**40, 1) == 2**40 + 1
    assert BUILTINS["isnan"](math.nan) is True
    assert BUILTINS["where"](True, 1.0, 2.0) == 1.0
    assert BUILTINS["select"](True, 1.0, 2.0) == 2.0
    assert BUILTINS["div"](1.0, 0.0) == math.inf


def test_vectors_and_matrices() -> None:
    assert BUILTINS["dot"](vec3(1.0, 2.0, 3.0), vec3(1.0, 1.0, 1.0)) == 6.0
    got = BUILTINS["cross"](vec3d(1.0, 0.0, 0.0), vec3d(0.0, 1.0, 0.0))
    assert type(got) is vec3d
    assert list(got) == [0.0, 0.0, 1.0]
    assert list(BUILTINS["mul"](2.0, vec3(1.0, 2.0, 3.0))) == [2.0, 4.0, 6.0]
    assert list(BUILTINS["abs"](vec3i(-1, 2, -3))) == [1, 2, 3]
    inverse = BUILTINS["inverse"](mat22(2.0, 0.0, 0.0, 4.0))
    assert type(inverse) is mat22
    np.testing.assert_array_equal(np.asarray(inverse), [[0.5, 0.0], [0.0, 0.25]])
    eye = BUILTINS["identity"](3, dtype=float64)
    assert eye.__ir_type__.scalar == FLOAT64
    np.testing.assert_array_equal(np.asarray(eye), np.eye(3))


def test_expectations_on_the_host():
    BUILTINS["expect_eq"](vec3(1.0, 2.0, 3.0), vec3(1.0, 2.0, 3.0))
    BUILTINS["expect_neq"](1, 2)
    BUILTINS["expect_near"](vec3(1.0, 2.0, 3.0), vec3(1.0, 2.0, 3.25), 0.5)
    for name, args, code in (
        ("expect_eq", (1.0, 1.5), "E210"),
        ("expect_neq", (vec3(), vec3()), "E210"),
        ("expect_near", (1.0, float("nan")), "E210"),
        ("expect_eq", (vec3(), 1.0), "E104"),
    ):
        with pytest.raises(EngineError) as e:
            BUILTINS[name](*args)
        assert e.value.diagnostics[0].code == code


def test_what_changes_a_transform_does_so_on_the_host():
    t = wp.transformd(p=wp.vec3d(1.0, 2.0, 3.0))
    wp.transform_set_translation(t, wp.vec3d(4.0, 5.0, 6.0))
    wp.transform_set_rotation(t, wp.quatd(1.0, 0.0, 0.0, 0.0))
    assert list(t) == [4.0, 5.0, 6.0, 1.0, 0.0, 0.0, 0.0]
    assert list(wp.transformh(p=wp.vec3h(1.0, 2.0, 3.0)))[:3] == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("name", sorted(n for n in KERNEL_ONLY if not n.startswith("expect")))
def test_kernel_only_functions_say_so(name: str) -> None:
    with pytest.raises(EngineError, match="outside a kernel") as e:
        BUILTINS[name]()
    assert e.value.diagnostics[0].code == "E106"
    assert "@kernel" in e.value.diagnostics[0].help


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("sin", ("a",), "'a'"),
        ("sin", (1.0, 2.0), "sin() does not take (float32, float32)"),
        ("dot", (vec3(), vec3d()), "(vec<3,float32>, vec<3,float64>)"),
        ("sin", (2**70,), "argument 1"),
        ("add", (vec3(), 1.0), "(vec<3,float32>, float32)"),
        ("identity", (0,), "identity()"),
        ("sin", (None,), "None"),
    ],
)
def test_wrong_arguments(name: str, args: tuple[object, ...], words: str) -> None:
    with pytest.raises(EngineError) as e:
        BUILTINS[name](*args)
    d = e.value.diagnostics[0]
    assert d.code == "E104"
    assert words in d.message
    assert d.help


def test_names_of_arguments() -> None:
    assert BUILTINS["sin"](x=0.0) == 0.0
    with pytest.raises(EngineError, match="takes no argument 'angle' here"):
        BUILTINS["sin"](angle=1.0)


def test_every_builtin_is_documented() -> None:
    for name, b in BUILTINS.items():
        assert b.__builtin_name__ == name
        assert b.__doc__ is not None
        assert f"{name}(" in b.__doc__
        assert repr(b) == f"<engine builtin {name}>"


def test_results_have_the_types_that_kernels_give_them() -> None:
    found = [
        (wp.sin(wp.float64(1.0)), wp.float64, float(np.sin(1.0))),
        (wp.dot(wp.vec2d(1.5, 2.0), wp.vec2d(2.0, 0.5)), wp.float64, 4.0),
        (wp.floor(wp.float16(1.5)), wp.float16, 1.0),
        (wp.min(wp.int8(3), wp.int8(-4)), wp.int8, -4),
        (wp.determinant(wp.mat22d(2.0, 0.0, 0.0, 3.0)), wp.float64, 6.0),
        (wp.sin(1.0), float, float(np.sin(np.float32(1.0)))),
        (wp.dot(wp.vec2(1.5, 2.0), wp.vec2(2.0, 0.5)), float, 4.0),
        (wp.abs(-3), int, 3),
        (wp.isnan(wp.float64(1.0)), bool, False),
    ]
    for value, cls, want in found:
        assert type(value) is cls and value == pytest.approx(want, rel=1e-6)
    assert wp.quat_identity(dtype=None) == wp.quat(0.0, 0.0, 0.0, 1.0)
    assert bytes(wp.vec2h(1.0, 2.0)) == np.float16([1.0, 2.0]).tobytes()
    with pytest.raises(RuntimeError, match="E104"):  # as programs written for Warp catch it
        wp.min(wp.vec3(1.0), wp.vec3d(1.0))
