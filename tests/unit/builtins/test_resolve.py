"""Overloads, literals that adapt, swapped operands, and the help for calls that do not fit."""

from __future__ import annotations

import pytest

from engine.builtins.resolve import OPERATORS, names, resolve, suggest
from engine.ir.ops import OPS
from engine.lang.types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    UINT8,
    ArrayType,
    MatrixType,
    Type,
    VectorType,
)

V3, V3D, V2 = VectorType(FLOAT32, 3), VectorType(FLOAT64, 3), VectorType(FLOAT32, 2)
M33, M23 = MatrixType(FLOAT32, 3, 3), MatrixType(FLOAT32, 2, 3)

FITS: list[tuple[str, list[Type], str, Type, tuple[int, ...]]] = [
    ("+", [FLOAT32, FLOAT32], "add", FLOAT32, (0, 1)),
    ("+", [V3, V3], "add", V3, (0, 1)),
    ("+", [V3], "copy", V3, (0,)),
    ("-", [M33], "neg", M33, (0,)),
    ("-", [INT64, INT64], "sub", INT64, (0, 1)),
    ("*", [FLOAT32, FLOAT32], "mul", FLOAT32, (0, 1)),
    ("*", [V3, FLOAT32], "scale", V3, (0, 1)),
    ("*", [FLOAT32, M33], "scale", M33, (1, 0)),
    ("*", [M23, V3], "matvec", V2, (0, 1)),
    ("*", [V2, M23], "vecmat", V3, (0, 1)),
    ("*", [M23, M33], "matmul", M23, (0, 1)),
    ("@", [M23, V3], "matvec", V2, (0, 1)),
    ("/", [V3, FLOAT32], "unscale", V3, (0, 1)),
    ("%", [INT32, INT32], "mod", INT32, (0, 1)),
    ("**", [FLOAT32, FLOAT32], "pow", FLOAT32, (0, 1)),
    ("<", [INT32, INT32], "lt", BOOL, (0, 1)),
    ("==", [BOOL, BOOL], "eq", BOOL, (0, 1)),
    ("not", [BOOL], "lnot", BOOL, (0,)),
    ("~", [UINT8], "invert", UINT8, (0,)),
    ("^", [BOOL, BOOL], "ne", BOOL, (0, 1)),
    ("mul", [FLOAT32, V3], "scale", V3, (1, 0)),
    ("min", [V3, V3], "min_vec", V3, (0, 1)),
    ("min", [V3], "min_of", FLOAT32, (0,)),
    ("min", [INT32, INT32], "min", INT32, (0, 1)),
    ("abs", [V3], "abs_vec", V3, (0,)),
    ("lerp", [V3, V3, FLOAT32], "lerp_vec", V3, (0, 1, 2)),
    ("where", [BOOL, V3, V3], "select", V3, (0, 1, 2)),
    ("where", [INT32, V3, V3], "where_int", V3, (0, 1, 2)),
    ("select", [BOOL, V3, V3], "select", V3, (0, 2, 1)),
    ("select", [INT32, V3, V3], "where_int", V3, (0, 2, 1)),
]


@pytest.mark.parametrize(("name", "types", "op", "result", "order"), FITS)
def test_overload(
    name: str, types: list[Type], op: str, result: Type, order: tuple[int, ...]
) -> None:
    got = resolve(name, types, [False] * len(types))
    assert got is not None
    assert (got.op, got.result, got.order) == (op, result, order)
    assert got.casts == (None,) * len(types)


# (name, types, which are literals, expected types after adapting)
ADAPTS: list[tuple[str, list[Type], list[bool], list[Type]]] = [
    ("+", [FLOAT64, FLOAT32], [False, True], [FLOAT64, FLOAT64]),
    ("+", [INT32, UINT8], [True, False], [UINT8, UINT8]),
    ("*", [V3D, FLOAT32], [False, True], [V3D, FLOAT64]),
    ("*", [INT32, V3], [True, False], [FLOAT32, V3]),
    ("<", [FLOAT32, INT32], [False, True], [FLOAT32, FLOAT32]),
    ("clamp", [FLOAT64, INT32, FLOAT32], [False, True, True], [FLOAT64] * 3),
    ("min", [INT32, FLOAT32], [True, True], [FLOAT32, FLOAT32]),
    ("+", [INT32, INT32], [True, True], [INT32, INT32]),
    ("/", [INT32, INT32], [False, True], [INT32, INT32]),
    ("sqrt", [INT32], [True], [FLOAT32]),
    ("+", [INT64, INT32], [True, True], [INT64, INT64]),
    ("where", [INT32, INT32, FLOAT64], [False, True, False], [INT32, FLOAT64, FLOAT64]),
    ("**", [FLOAT64, INT32], [False, True], [FLOAT64, FLOAT64]),
]


@pytest.mark.parametrize(("name", "types", "weak", "expected"), ADAPTS)
def test_literals_adapt(
    name: str, types: list[Type], weak: list[bool], expected: list[Type]
) -> None:
    got = resolve(name, types, weak)
    assert got is not None
    assert [c or t for c, t in zip(got.casts, types, strict=True)] == expected


@pytest.mark.parametrize(
    ("name", "types", "weak"),
    [
        ("+", [FLOAT32, INT32], [False, False]),
        ("+", [INT32, FLOAT32], [False, True]),  # a float literal never becomes an integer
        ("+", [FLOAT32, BOOL], [False, True]),
        ("*", [V3, V3], [False, False]),
        ("sin", [INT32], [False]),
        ("sin", [FLOAT32, FLOAT32], [False, False]),
        ("@", [V3, V3], [False, False]),
        ("dot", [V3, V2], [False, False]),
        ("&", [FLOAT32, FLOAT32], [False, False]),
        ("nothing", [FLOAT32], [False]),
    ],
)
def test_no_overload(name: str, types: list[Type], weak: list[bool]) -> None:
    assert resolve(name, types, weak) is None


@pytest.mark.parametrize(
    ("name", "types", "words"),
    [
        ("+", [FLOAT32, INT32], "convert argument 2 (int32): write float(...)"),
        ("+", [INT64, INT32], "convert argument 2 (int32): write int64(...)"),
        ("*", [V3D, FLOAT32], "write float64(...)"),
        ("sin", [INT32], "write float(...)"),
        ("**", [INT32, INT32], "write float(...)"),
        ("where", [BOOL, FLOAT32, INT32], "convert argument 3 (int32): write float(...)"),
        ("*", [V3, V3], "cw_mul(a, b)"),
        ("@", [V3, V3], "dot(a, b)"),
        ("/", [V3, V3], "cw_div(a, b)"),
        ("and", [INT32, BOOL], "x != 0"),
        ("+", [ArrayType(FLOAT32, 1), FLOAT32], "a[i]"),
        ("sqr", [FLOAT32], "sqrt"),
        ("cross", [V2, V2], "cross(a, b)"),
    ],
)
def test_help(name: str, types: list[Type], words: str) -> None:
    assert words in suggest(name, types)


def test_help_for_a_name_like_no_other_is_empty() -> None:
    assert suggest("zzzzzz", [FLOAT32]) == ""


def test_tables_name_real_operations() -> None:
    assert all(c.op in OPS for cs in OPERATORS.values() for c in cs)
    assert {"sin", "select", "where", "mul", "min"} <= set(names())
