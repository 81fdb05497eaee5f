"""Native functions with structs as parameters: values and gradients against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_kernel


@wp.struct
class Inner:
    k: float
    n: int
    data: wp.array(dtype=float)


@wp.struct
class Model:
    scale: float
    v: wp.vec3
    inner: Inner
    index: wp.array(dtype=int)


@wp.func_native(
    """
    float total = v_hat * m.scale;
    for (int i = 0; i < m.inner.n; ++i) total += m.inner.data[m.index[i]] * m.inner.k;
    return total + m.v[1] * m.v[1];
    """,
    """
    adj_m.scale += v_hat * adj_ret;
    adj_v_hat += m.scale * adj_ret;
    for (int i = 0; i < m.inner.n; ++i) {
        adj_m.inner.data[m.index[i]] += m.inner.k * adj_ret;
        adj_m.inner.k += m.inner.data[m.index[i]] * adj_ret;
    }
    adj_m.v[1] += 2.0f * m.v[1] * adj_ret;
    """,
)
def energy(v_hat: float, m: Model) -> float: ...


@wp.kernel
def energies(m: Model, x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    own = m
    own.scale = x[i] * m.scale
    own.inner.k += x[i]
    out[i] = energy(x[i] * 2.0, own) * x[i]


@wp.func_native("return v_x + x;")
def two_names(x: float, v_x: float) -> float: ...


@wp.func_native("return m.scale;")
def without_arrays(m: Model) -> float: ...


@wp.kernel
def wrong(x: wp.array(dtype=float)):
    m = Model()
    x[0] = two_names(x[0], x[1]) + without_arrays(m)


def test_values_and_gradients() -> None:
    rng = np.random.default_rng(5)
    data, x = rng.uniform(0.5, 1.5, 4), rng.uniform(0.5, 1.5, 3)
    index = np.array([2, 0, 3])
    m = Model()
    m.scale, m.v, m.index = 0.7, wp.vec3(1.0, 2.0, 3.0), wp.array(index, dtype=int)
    m.inner.k, m.inner.n = 1.5, 3
    m.inner.data = wp.array(data, dtype=float, requires_grad=True)
    given = wp.array(x, dtype=float, requires_grad=True)
    out = wp.zeros(3, dtype=float, requires_grad=True)

    def want(p):
        d, y = p[:4], p[4:]
        total = 2 * y * (y * 0.7) + d[index].sum() * (1.5 + y) + 4.0
        return total * y

    tape = wp.Tape()
    with tape:
        wp.launch(energies, dim=3, inputs=[m, given], outputs=[out])
    at = np.concatenate([data, x])
    np.testing.assert_allclose(out.numpy(), want(at), rtol=1e-5)
    weights = rng.uniform(-1, 1, 3)
    tape.backward(grads={out: weights})
    steps = np.eye(7) * 1e-6
    expected = [(want(at + d) - want(at - d)) @ weights / 2e-6 for d in steps]
    found = np.concatenate([m.inner.data.grad.numpy(), given.grad.numpy()])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    function = next(f for f in _called(energies) if f.name == "energy")
    assert function.native.reads == {"m.inner.data", "m.index"} and not function.native.writes


def _called(kernel):
    from engine.ir.nodes import callees

    return callees(lower_kernel(kernel.func))


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(wrong.func)
    assert [(d.code, bool(d.help)) for d in e.value.diagnostics] == [("E103", True), ("E104", True)]
    assert "has a name that its C++ text cannot use" in e.value.diagnostics[0].message
    assert "cannot take an array that is not there" in e.value.diagnostics[1].message
