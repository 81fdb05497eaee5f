# ruff: noqa: F811
"""Kernels whose parameter types launches decide on, and their explicit overloads."""

from typing import Any, TypeVar

import numpy as np
import pytest

import engine as wp

Number = TypeVar("Number")


@wp.func
def twice(a: Any):
    return a + a


@wp.kernel
def scale_by(a: wp.array[Number], factor: Number):
    i = wp.tid()
    a[i] = twice(a[i] * factor)


@wp.kernel
def add(a: wp.array(dtype=Any), b: wp.array(dtype=Any), c: wp.array(dtype=Any)):
    i = wp.tid()
    c[i] = twice(a[i] + b[i])


@wp.kernel
def add_any(a: Any, b: Any, c: Any):
    i = wp.tid()
    c[i] = twice(a[i] + b[i])


@wp.kernel
def accumulate(a: wp.array(dtype=wp.float64), value: Any):
    i = wp.tid()
    a[i] = a[i] + wp.float64(value)


@wp.kernel
def fill2(a: wp.array2d(dtype=Any), value: Any):
    i, j = wp.tid()
    a[i, j] = value


@wp.kernel
def product(v: Any, m: Any, out: Any):
    out[0] = m * v


@wp.overload
def product(v: wp.vec2, m: wp.mat22, out: wp.array(dtype=wp.vec2)): ...


@wp.overload
def product(v: "wp.vec3", m: "wp.mat33", out: "wp.array(dtype=wp.vec3)"):
    """A stub."""


@wp.kernel
def casts(a: Any, b: Any, out: wp.array(dtype=Any)):
    x = type(a)(b)
    zero = out.dtype()
    out[0] = zero + out.dtype(x)
    out[1] = type(out[0])(3)


@wp.kernel
def sizes(a: wp.array(dtype=wp.Float), n: wp.Int):
    a[0] = a.dtype(n) * a[0]


@pytest.mark.parametrize("kernel", [add, add_any])
@pytest.mark.parametrize("dtype", [int, float, wp.vec3, wp.float64, wp.mat22d])
def test_instances_come_from_launches(kernel, dtype) -> None:
    a = wp.ones(4, dtype=dtype)
    c = wp.zeros(4, dtype=dtype)
    wp.launch(kernel, dim=4, inputs=[a, a], outputs=[c])
    assert np.all(c.numpy() == 4)
    before = len(kernel.overloads)
    wp.launch(kernel, dim=4, inputs=[c, c], outputs=[a])
    assert len(kernel.overloads) == before  # compiled once


def test_numbers_are_32_bits_wide() -> None:
    a = wp.zeros(2, dtype=wp.float64)
    for value in (25, 0.1, wp.float64(0.1), np.float64(8.0), True, wp.uint8(7)):
        wp.launch(accumulate, dim=2, inputs=[a, value])
    np.testing.assert_array_equal(a.numpy(), 25 + float(np.float32(0.1)) + 0.1 + 8.0 + 1 + 7)
    names = {str(k.types[1]) for k in accumulate.overloads.values()}
    assert names == {"int32", "float32", "float64", "bool", "uint8"}


@pytest.mark.host("launches of memory of the host")
def test_numpy_arrays_tell_their_type() -> None:
    a = np.zeros((2, 3), dtype=np.float32)
    wp.launch(fill2, dim=(2, 3), inputs=[a, 2.5])
    assert np.all(a == 2.5)


def test_stubs_add_overloads() -> None:
    assert [str(t[0]) for t in product.overloads] == ["vec<2,float32>", "vec<3,float32>"]
    out = wp.zeros(1, dtype=wp.vec3)
    wp.launch(product, dim=1, inputs=[wp.vec3(1, 2, 3), wp.mat33(2, 0, 0, 0, 2, 0, 0, 0, 2), out])
    assert out.numpy().tolist() == [[2, 4, 6]]
    assert len(product.overloads) == 2


def test_explicit_overloads_can_be_launched() -> None:
    as_int = wp.overload(fill2, [wp.array2d(dtype=int), int])
    by_name = wp.overload(fill2, {"value": wp.vec3, "a": wp.array2d(dtype=wp.vec3)})
    assert wp.overload(fill2, [wp.array2d(dtype=int), int]) is as_int
    assert fill2.add_overload([wp.array2d[int], wp.int32]) is as_int
    assert not as_int.is_generic and fill2.is_generic
    a = wp.zeros((2, 2), dtype=int)
    wp.launch(as_int, dim=(2, 2), inputs=[a, 3])
    assert np.all(a.numpy() == 3)
    with pytest.raises(wp.LaunchError, match="E202"):
        wp.launch(as_int, dim=(2, 2), inputs=[a, 3.5])
    v = wp.zeros((1, 1), dtype=wp.vec3)
    wp.launch(by_name, dim=(1, 1), inputs=[v, wp.vec3(1, 2, 3)])
    assert v.numpy().tolist() == [[[1, 2, 3]]]


def test_types_of_arguments_as_casts() -> None:
    out = wp.zeros(2, dtype=wp.float64)
    wp.launch(casts, dim=1, inputs=[1, 2.75, out])
    assert out.numpy().tolist() == [2.0, 3.0]
    wp.launch(casts, dim=1, inputs=[wp.float32(1), 2.75, out])
    assert out.numpy().tolist() == [2.75, 3.0]


def test_gradients_of_each_instance() -> None:
    for dtype in (wp.float32, wp.float64, wp.vec3):
        a = wp.ones(3, dtype=dtype, requires_grad=True)
        c = wp.zeros_like(a)
        with wp.Tape() as tape:
            wp.launch(add, dim=3, inputs=[a, a], outputs=[c])
        tape.backward(grads={c: wp.ones_like(c)})
        assert np.all(a.grad.numpy() == 4)


@wp.kernel
def plain(a: wp.array(dtype=float)):
    a[0] = 1.0


def stub_with_a_body(v: wp.vec2, m: wp.mat22, out: wp.array(dtype=wp.vec2)):
    out[0] = v


BAD = {
    "count": (lambda: wp.launch(fill2, dim=(1, 1), inputs=[wp.zeros((1, 1))]), "E201"),
    "none": (lambda: wp.launch(fill2, dim=(1, 1), inputs=[None, 1]), "E202"),
    "rank": (lambda: wp.launch(fill2, dim=(1, 1), inputs=[wp.zeros(3), 1]), "E202"),
    "string": (lambda: wp.launch(fill2, dim=(1, 1), inputs=[wp.zeros((1, 1)), "x"]), "E202"),
    "marker": (lambda: wp.launch(sizes, dim=1, inputs=[wp.zeros(1, dtype=int), 1]), "E202"),
    "marker2": (lambda: wp.launch(sizes, dim=1, inputs=[wp.zeros(1), 1.5]), "E202"),
    "not generic": (lambda: wp.overload(plain, [wp.array(dtype=float)]), "E106"),
    "few types": (lambda: wp.overload(fill2, [int]), "E201"),
    "unknown name": (lambda: wp.overload(fill2, {"value": int, "b": int}), "E201"),
    "missing name": (lambda: wp.overload(fill2, {"value": int}), "E201"),
    "still open": (lambda: wp.overload(fill2, [wp.array2d(dtype=Any), int]), "E202"),
    "fixed": (lambda: wp.overload(accumulate, [wp.array(dtype=float), int]), "E202"),
    "no type": (lambda: wp.overload(accumulate, {"value": "int"}), "E202"),
    "no kernel": (lambda: wp.overload(stub_with_a_body), "E102"),
    "no function": (lambda: wp.overload(3), "E103"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_refusals(case) -> None:
    call, code = BAD[case]
    with pytest.raises(wp.EngineError) as caught:
        call()
    (d,) = caught.value.diagnostics
    assert d.code == code
    assert code == "E103" or (d.span is not None and d.span.file == __file__)


def test_a_stub_has_no_body() -> None:
    @wp.kernel
    def k(a: Any):
        a[0] = a[1]

    with pytest.raises(wp.EngineError, match="E106"):

        @wp.overload
        def k(a: wp.array(dtype=int)):
            a[0] = a[2]

    with pytest.raises(wp.EngineError, match="E109"):

        @wp.overload
        def k(a: wp.array(dtype=int)) -> int: ...


def test_a_mistake_in_one_instance_names_the_place() -> None:
    a = wp.zeros(1, dtype=wp.vec3)
    with pytest.raises(wp.KernelError, match="E104"):
        wp.launch(add, dim=1, inputs=[a, wp.zeros(1, dtype=float), a])


def test_the_generic_kernel_itself_has_no_code() -> None:
    with pytest.raises(wp.KernelError, match="may have any type"):
        _ = fill2.ir


@pytest.mark.parametrize("dtype", [wp.float32, wp.int32])
def test_type_variables_stand_for_any_type(dtype):
    a = wp.array([1, 2], dtype=dtype)
    wp.launch(scale_by, dim=2, inputs=[a, dtype(3)])
    assert a.numpy().tolist() == [6, 12] and repr(wp.array[Number]) == "array(dtype=Number, ndim=1)"


def test_kernels_list_their_parameters():
    args = {p.label: p.type for p in scale_by.adj.args}
    assert list(args) == ["a", "factor"] and args["factor"] is Any
    assert wp.types.is_array(args["a"]) and args["a"].dtype is Any and args["a"].ndim == 1
    typed = wp.overload(scale_by, {"a": wp.array(dtype=wp.int32), "factor": wp.int32})
    assert [p.type for p in typed.adj.args] == [wp.array(dtype=wp.int32), wp.int32]
    assert accumulate.adj.args[0].type == wp.array(dtype=wp.float64)
