# ruff: noqa: F811
"""Operators that mean the user's functions; functions that end without a result; open types."""

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import KernelError, LaunchError


@wp.struct
class Complex:
    re: wp.float64
    im: wp.float64


@wp.func
def add(a: Complex, b: Complex) -> Complex:
    return Complex(a.re + b.re, a.im + b.im)


@wp.func
def add(a: wp.vec2d, b: wp.float64):
    return wp.vec2d(a[0] + b, a[1] + b)


@wp.func
def add(a: wp.vec2d, b: wp.vec2d):
    return a + b + wp.vec2d(wp.float64(1.0))  # in here as the language has it


@wp.func
def sub(a: Complex, b: wp.float64):
    return Complex(a.re - b, a.im)


@wp.func
def mul(a: Complex, b: Complex):
    return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re)


@wp.func
def neg(a: Complex):
    return Complex(-a.re, -a.im)


@wp.func
def neg(a: wp.vec2d):
    return a  # not what `-v` means: the language has that


@wp.kernel
def operate(x: wp.array(dtype=Complex), v: wp.array(dtype=wp.vec2d), out: wp.array(dtype=Complex)):
    i = wp.tid()
    a = x[i] * x[i] + -x[i]
    a -= wp.float64(3.0)
    a += a * x[i]
    w = v[i] + wp.float64(2.0)
    w = w - -v[i]
    out[i] = a
    out[i] += Complex(w[0] * w[1], v[i][0] + v[i][1])


def operated(x, v):
    a = x * x - x - 3.0
    a = a + a * x
    w = v + 2.0 + v
    return a + complex(w[0] * w[1], v[0] + v[1])


def test_operators_of_structs_and_vectors():
    data = np.array([[0.5, -1.0, 2.0, 0.25], [1.5, 0.75, -0.5, 3.0]])
    x = wp.array([Complex(*r[:2]) for r in data], dtype=Complex, requires_grad=True)
    v = wp.array(data[:, 2:].copy(), dtype=wp.vec2d, requires_grad=True)
    out = wp.zeros(2, dtype=Complex, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(operate, dim=2, inputs=[x, v], outputs=[out])
    got = out.numpy()
    seeds = np.zeros(2, Complex.numpy_dtype())
    seeds["re"], seeds["im"] = 1.0, 0.5
    tape.backward(grads={out: seeds})
    for i, r in enumerate(data):
        want = operated(complex(*r[:2]), r[2:])
        assert got[i]["re"] == pytest.approx(want.real, rel=1e-12)
        assert got[i]["im"] == pytest.approx(want.imag, rel=1e-12)
        found = [*x.grad.numpy()[i].tolist(), *v.grad.numpy()[i]]
        for k in range(4):
            ends = []
            for h in (1e-6, -1e-6):
                m = r.copy()
                m[k] += h
                z = operated(complex(*m[:2]), m[2:])
                ends.append(z.real + 0.5 * z.imag)
            assert found[k] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-7)


@wp.func
def sometimes(x: float):
    if x > 1.0:
        return x * x, wp.vec2(x, 1.0)


@wp.func
def found_in(a: wp.array(dtype=float), x: float) -> int:
    for k in range(a.shape[0]):
        if a[k] == x:
            return k + 10


@wp.kernel
def ending(x: wp.array(dtype=float), out: wp.array(dtype=float), at: wp.array(dtype=int)):
    i = wp.tid()
    y, v = sometimes(x[i])
    out[i] = y + v[1] * x[i]
    at[i] = found_in(x, float(i))


def test_functions_may_end_without_a_result():
    x = wp.array([0.5, 3.0, 1.0], dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)
    at = wp.zeros(3, dtype=int)
    with wp.Tape() as tape:
        wp.launch(ending, dim=3, inputs=[x], outputs=[out, at])
    assert out.list() == [0.0, 12.0, 0.0] and at.list() == [0, 12, 0]
    tape.backward(grads={out: np.ones(3, np.float32)})
    assert x.grad.list() == [0.0, 7.0, 0.0]


@wp.func
def which(v: wp.types.vector(3, wp.Int)):
    return 1


@wp.func
def which(v: wp.types.vector(length=Any, dtype=wp.Float)):
    return 2


@wp.func
def which(v: wp.types.matrix(shape=(Any, 3), dtype=Any)):
    return 3


@wp.func
def which(v: wp.types.quaternion(wp.Float)):
    return 4


@wp.func
def which(v: wp.types.transformation(Any)):
    return 5


@wp.func
def which(v: wp.array(dtype=wp.types.matrix((2, Any), float))):
    return 6


@wp.func
def which(v: wp.array[wp.types.vector(Any, float)]):
    return 7


@wp.func
def which(v: Any):
    return 8


@wp.kernel
def chosen(
    m: wp.array(dtype=wp.types.matrix((Any, Any), wp.Float)),
    v: wp.types.vector(Any, Any),
    out: wp.array(dtype=int),
):
    out[0] = which(vec3i(1))  # noqa: F821
    out[1] = which(wp.vec4d()) * 10 + which(wp.vec2h())
    out[2] = which(wp.mat33())
    out[3] = which(wp.quatd())
    out[4] = which(wp.transform())
    out[5] = which(m)
    out[6] = which(wp.mat22()) * 10 + which(1)
    out[7] = wp.int(v[0]) + len(v)


def test_vectors_and_matrices_of_any_size():
    out = wp.zeros(8, dtype=int)
    wp.launch(chosen, dim=1, inputs=[wp.zeros(1, dtype=wp.mat22), wp.vec2(3.0)], outputs=[out])
    assert out.list() == [1, 22, 3, 4, 5, 6, 88, 5]
    vectors = wp.zeros(1, dtype=wp.vec3)
    with pytest.raises(LaunchError, match=r"matrix\(\(Any, Any\), Float\)\)"):
        wp.launch(chosen, dim=1, inputs=[vectors, wp.vec2()], outputs=[out])
    with pytest.raises(LaunchError, match=r"expects vector\(Any, Any\)"):
        wp.launch(chosen, dim=1, inputs=[wp.zeros(1, dtype=wp.mat22), 1.0], outputs=[out])
    note = wp.array(dtype=wp.types.vector(length=Any, dtype=float))
    note.comment = "annotations take attributes"
    assert repr(note) == "array(dtype=vector(Any, float32), ndim=1)" and note.comment
    for make in (lambda: wp.types.vector(0, Any), lambda: wp.types.matrix((Any, 2), wp.vec3)):
        with pytest.raises(LaunchError):
            make()


@wp.struct
class Halves:
    low: wp.float16
    high: wp.int16
    rest: wp.vec2


@wp.kernel
def told(a: wp.array(dtype=Any), s: Halves, out: wp.array(dtype=wp.float64)):
    kind = wp.types.vector(length=2, dtype=type(out[0]))
    m = wp.identity(n=kind.length, dtype=kind.dtype)
    q = wp.types.quaternion(1.0, 2.0, 3.0, 4.0, dtype=wp.float64)
    r = wp.types.vector(a[0][0], a[0][1], a[0][0])
    out[0] = wp.trace(m) + q[2]
    out[1] = wp.float64(a.dtype.length + a.dtype.shape[0]) + wp.float64(r[2])
    out[2] = wp.float64(type(a).dtype(a[0])[1] * a.dtype.dtype(2.0))
    t = type(s)(s.low, s.high, wp.vec2(3.0))
    out[3] = wp.float64(t.rest[1])
    out[4] = wp.float64(wp.cast(s, wp.int32))


def test_types_of_values_in_kernels():
    out = wp.zeros(5, dtype=wp.float64)
    a = wp.array([(1.5, 2.5)], dtype=wp.vec2)
    s = Halves(2.0, 123)
    wp.launch(told, dim=1, inputs=[a, s], outputs=[out])
    bits = np.frombuffer(np.float16(2.0).tobytes() + np.int16(123).tobytes(), np.int32)[0]
    assert out.list() == [5.0, 5.5, 5.0, 3.0, float(bits)]

    @wp.kernel
    def wrong(s: Halves, out: wp.array(dtype=wp.float64)):
        out[0] = wp.float64(wp.cast(s, wp.int64))

    with pytest.raises(KernelError, match="E104"):
        wp.launch(wrong, dim=1, inputs=[s], outputs=[out])


none = wp.types.vector(0, float)


@wp.func
def without_components(t: wp.transform):
    wp.expect_eq(t[123:] == none(), True)
    wp.expect_eq(t[:-123], none())
    return t[9:] + t[:0]


@wp.kernel
def empty_slices(x: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)) -> None:
    rest = without_components(wp.transform(p=x[0]))
    v = x[0]
    v[3:] = rest
    out[0] = wp.length(rest) + wp.float(len(rest)) + wp.dot(rest, rest) + v[2]


def test_vectors_without_components():
    assert none() == none() and len(none()) == 0 and wp.vec3(1.0, 2.0, 3.0)[5:] == none()
    x = wp.array([(1.0, 2.0, 3.0)], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(empty_slices, dim=1, inputs=[x], outputs=[out])
    tape.backward(out)
    assert out.list() == [3.0] and x.grad.numpy().tolist() == [[0.0, 0.0, 1.0]]
