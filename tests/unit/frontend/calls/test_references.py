"""Arguments by reference: values and gradients against functions of NumPy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import gradcheck
from engine.frontend import lower_kernel

Floats = wp.array(dtype=float)


@wp.struct
class Inner:
    v: wp.vec3
    w: float


@wp.struct
class Box:
    value: float
    inner: Inner


@wp.func
def scale(x: wp.ref[float], by: float):
    x *= by


@wp.func
def swap(x: wp.ref[float], y: wp.ref[float]):
    x, y = y, x


@wp.func
def clamp_step(x: wp.ref[float], n: int) -> float:
    old = x
    for k in range(n):
        if x > 2.0:
            return old
        scale(x, 1.5)
    x = x + old * old
    return x


@wp.func
def set_box(b: wp.ref[Box], x: float):
    b.value += x * x
    b.inner.v[1] = b.value * x


@wp.func
def store(x: wp.ref[wp.Scalar], a: wp.Scalar):
    x = a  # noqa: F841


@wp.kernel
def by_reference(a: Floats, boxes: wp.array(dtype=Box), m: wp.array2d(dtype=float), o: Floats):
    i = wp.tid()
    x = a[i]
    scale(x, a[i])
    scale(a[i], 3.0)
    y = 2.0
    swap(x, y)
    swap(m[i, 0], boxes[0].inner.w)
    r = clamp_step(m[i, 1], i + 2)
    b = Box()
    set_box(b, x)
    set_box(boxes[i], y)
    scale(boxes[i].inner.v[2], x)
    swap(b.value, b.inner.w)
    v = wp.vec3(x, y, r)
    scale(v.y, r)
    store(v[0], v[2])
    row = m[i]
    scale(row[2], y)
    which = m[0] if i == 0 else a
    scale(which[1 + i], 0.5)
    k = 0
    store(k, i)
    o[i] = x + r * y + b.inner.w * b.inner.v[1] + v[0] * v[1] + float(k)


def reference(p: np.ndarray) -> np.ndarray:
    """The same in NumPy, thread after thread, of all numbers in a row."""
    a, boxes, m = p[:4].copy(), p[4:19].reshape(3, 5).copy(), p[19:].reshape(3, 3).copy()
    out = np.zeros(4)
    for i in range(3):
        x, y = 2.0, a[i] * a[i]
        a[i] *= 3.0
        m[i, 0], boxes[0, 4] = boxes[0, 4], m[i, 0]
        z = old = m[i, 1]
        r = None
        for _ in range(i + 2):
            if z > 2.0:
                r = old
                break
            z *= 1.5
        if r is None:
            z = z + old * old
            r = z
        m[i, 1] = z
        value = x * x
        v1 = value * x
        w = value
        boxes[i, 0] += y * y
        boxes[i, 2] = boxes[i, 0] * y
        boxes[i, 3] *= x
        m[i, 2] *= y
        which = m[0] if i == 0 else a
        which[1 + i] *= 0.5
        out[i] = x + r * y + w * v1 + r * (y * r) + i
    return np.concatenate([a, boxes.ravel(), m.ravel(), out])


@pytest.mark.host("the order of threads")
def test_values_and_gradients() -> None:
    rng = np.random.default_rng(3)
    a, boxes, m = (
        rng.uniform(0.5, 1.5, 3),
        rng.uniform(0.5, 1.5, (3, 5)),
        rng.uniform(0.5, 1, (3, 3)),
    )
    a = np.append(a, 1.25)
    data = np.zeros(3, Box.numpy_dtype())
    data["value"], data["inner"]["v"], data["inner"]["w"] = boxes[:, 0], boxes[:, 1:4], boxes[:, 4]

    x = wp.array(a, dtype=float, requires_grad=True)
    y = wp.array(data, dtype=Box, requires_grad=True)
    z = wp.array(m, dtype=float, requires_grad=True)
    o = wp.zeros(4, dtype=float, requires_grad=True)

    def flat(x, y, z, o):
        b = y.numpy()
        parts = (x.numpy(), np.column_stack([b["value"], b["inner"]["v"], b["inner"]["w"]]),
                 z.numpy(), o.numpy())  # fmt: skip
        return np.concatenate([np.asarray(part, float).ravel() for part in parts])

    tape = wp.Tape()
    start = flat(x, y, z, o)[:28]
    with tape:
        wp.launch(by_reference, dim=3, inputs=[x, y, z], outputs=[o])
    np.testing.assert_allclose(flat(x, y, z, o), reference(start), rtol=1e-5)
    weights = rng.uniform(-1, 1, 32)
    seed = np.zeros(3, Box.numpy_dtype())
    own = weights[4:19].reshape(3, 5)
    seed["value"], seed["inner"]["v"], seed["inner"]["w"] = own[:, 0], own[:, 1:4], own[:, 4]
    given = (weights[:4], seed, weights[19:28].reshape(3, 3), weights[28:])
    tape.backward(grads=dict(zip((x, y, z, o), given, strict=True)))
    steps = np.eye(28) * 1e-6
    expected = [(reference(start + d) - reference(start - d)) @ weights / (2 * 1e-6) for d in steps]
    found = flat(x.grad, y.grad, z.grad, o.grad)[:28]
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    assert gradcheck(by_reference, dim=3, inputs=[x, y, z], outputs=[o])


@wp.func
def make_box():
    return Box()


@wp.func
def both(x: wp.ref[float], a: Floats):
    x += a[0]


@wp.func
def with_gradient(x: wp.ref[float]):
    x += 1.0


@wp.func_grad(with_gradient)
def adj_with_gradient(x: float):
    wp.adjoint[x] += 1.0


@wp.func_native("x = 1.0f; a[0] = x;", "adj_x = 0.0f;")
def writes(x: wp.ref[float], a: Floats): ...


@wp.func
def array_reference(a: wp.ref[Floats]):
    a[0] = 1.0


@wp.kernel
def wrong(a: Floats, i: int, j: int):
    scale(1.0, 2.0)
    scale(a[0] + 1.0, 2.0)
    scale(make_box().value, 2.0)
    swap(a[i], a[j])
    swap(a[0], a[1])
    x = a[0]
    swap(x, x)
    both(a[i], a)
    k = 0
    scale(k, 2.0)
    with_gradient(x)
    writes(x, a)
    array_reference(a)
    a[2] = wp.grad(scale)(x, 2.0)
    b = make_box()
    swap(b.value, b.inner.w)
    swap(b.inner.v[0], b.inner.v[1])


@wp.kernel
def takes_one(x: wp.ref[float]):
    x = 1.0  # noqa: F841


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(wrong.func)
    first = wrong.func.__code__.co_firstlineno
    told = [(d.code, d.span.line - first) for d in e.value.diagnostics if d.span.line > first]
    assert told == [
        ("E104", 2), ("E104", 3), ("E104", 4), ("E104", 5), ("E104", 8), ("E104", 9), ("E104", 11),
        ("E104", 14), ("E110", 15),
    ]  # fmt: skip
    assert {d.code for d in e.value.diagnostics if d.span.line < first} == {"E110", "E112"}
    assert all(d.help for d in e.value.diagnostics)
    with pytest.raises(wp.KernelError, match="a kernel cannot take a reference"):
        lower_kernel(takes_one.func)


@wp.func_native(
    "x = x * y; v[1] = v[0] + x; return x + v[0];",
    """
    adj_x += adj_ret + adj_v[1];
    adj_v[0] += adj_ret + adj_v[1];
    adj_v[1] = 0.0f;
    adj_y += x / y * adj_x;
    adj_x *= y;
    """,
)
def native(x: wp.ref[float], v: wp.ref[wp.vec2], y: float) -> float: ...


@wp.func_native("k += by;")
def count_up(k: wp.ref[int], by: int): ...


@wp.kernel
def natives(a: Floats, o: Floats):
    i = wp.tid()
    v = wp.vec2(a[i], 2.0)
    r = native(a[i], v, a[i] * 0.5)
    k = 1
    count_up(k, i)
    o[i] = r * v[1] + a[i] + float(k)


def test_native_functions() -> None:
    x = wp.array(np.array([0.5, 1.5, 2.0]), dtype=float, requires_grad=True)
    o = wp.zeros(3, dtype=float, requires_grad=True)
    at = x.numpy().astype(float)

    def want(p):
        own = p * p * 0.5
        return np.concatenate([own, (own + p) * (p + own) + own + 1 + np.arange(3)])

    tape = wp.Tape()
    with tape:
        wp.launch(natives, dim=3, inputs=[x, o])
    np.testing.assert_allclose(np.concatenate([x.numpy(), o.numpy()]), want(at), rtol=1e-6)
    weights = np.array([0.5, -1.0, 0.25, 1.0, 2.0, -0.5])
    tape.backward(grads={x: weights[:3], o: weights[3:]})
    steps = np.eye(3) * 1e-6
    expected = [(want(at + d) - want(at - d)) @ weights / 2e-6 for d in steps]
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-4)


def test_the_annotation() -> None:
    assert wp.ref[wp.int32] == wp.ref[wp.int32] != wp.ref[wp.float32]
    assert hash(wp.ref[wp.int32]) == hash(wp.ref[wp.int32])
    assert repr(wp.ref[wp.int32]) == "wp.ref[int32]" and wp.ref[wp.vec3].value_type is wp.vec3
