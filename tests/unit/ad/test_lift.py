"""The float64 form of a kernel: the same computation, in every type."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine import ad
from engine.ad.lift import lift_type
from engine.ir import nodes as n
from engine.ir.verify import verify
from engine.lang.types import FLOAT16, FLOAT32, FLOAT64, INT32, ArrayType, VectorType, scalar_of
from tests.unit.ad.kernels import ran


@wp.func
def wave(v: float):
    return wp.sin(v) * 0.1


@wp.kernel
def kernel(x: wp.array(dtype=float), k: int, y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wave(x[i]) / float(k)


@wp.kernel
def bits(x: wp.array(dtype=float), y: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = wp.cast(x[i], int)


@wp.func_native("return v + v;")
def doubled(v: float) -> float: ...


@wp.func_native("return k + k;")
def counted(k: int) -> int: ...


@wp.kernel
def with_float_snippet(x: wp.array(dtype=float)):
    x[wp.tid()] = doubled(x[wp.tid()])


@wp.kernel
def with_integer_snippet(x: wp.array(dtype=int)):
    x[wp.tid()] = counted(x[wp.tid()])


def test_types() -> None:
    assert lift_type(FLOAT16) == lift_type(FLOAT32) == lift_type(FLOAT64) == FLOAT64
    assert lift_type(INT32) == INT32
    assert lift_type(ArrayType(VectorType(FLOAT32, 3), 2)) == ArrayType(VectorType(FLOAT64, 3), 2)


def test_every_float_is_wide_through_calls() -> None:
    out = ad.lift(kernel.ir)
    verify(out)
    for f in (out, *n.callees(out)):
        for s in n.walk(f.body):
            kinds = [scalar_of(v.type) for v in n.defs_of(s)]
            assert all(t == FLOAT64 or t.kind != "f" for t in kinds)
    x = np.linspace(0.1, 2.0, 5)
    _, _, y = ran(out, 5, x, 3, np.zeros(5))
    # A literal is the number that the kernel has: 0.1 in single precision.
    np.testing.assert_allclose(y, np.sin(x) * float(np.float32(0.1)) / 3, rtol=1e-15)


def test_bits_are_those_of_the_narrow_number() -> None:
    x = np.array([0.1, -3.0])
    _, y = ran(ad.lift(bits.ir), 2, x, np.zeros(2, np.int32))
    np.testing.assert_array_equal(y, x.astype(np.float32).view(np.int32))


@pytest.mark.parametrize(
    ("made", "possible"),
    [(kernel, True), (with_float_snippet, False), (with_integer_snippet, True)],
    ids=["kernel", "float snippet", "integer snippet"],
)
def test_what_is_computed_by_cpp_in_single_precision_has_no_such_form(made, possible) -> None:
    assert ad.can_lift(made.ir) is possible
