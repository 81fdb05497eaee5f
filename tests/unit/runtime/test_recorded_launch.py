"""Launches that are recorded once: arguments, adjoints, values for all components."""

import numpy as np
import pytest

import engine as wp
from engine import LaunchError


@wp.struct
class Params:
    a: wp.array(dtype=float)
    f: float
    v: wp.vec3


@wp.kernel
def blend(p: Params, s: float, v: wp.vec3, x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = p.f * x[i] * x[i] + s * p.a[i] + p.v[0] + v[1]


@wp.kernel
def parts(v: wp.vec3, m: wp.mat22, n: wp.vec2i, b: wp.bool, out: wp.array(dtype=float)):
    out[0] = v[0] + 10.0 * v[2] + 100.0 * float(n[1])
    out[1] = m[0, 0] + 10.0 * m[1, 1]
    out[2] = wp.where(b, 1.0, -1.0)


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def generic(x: wp.array(dtype=wp.Float)):
    x[0] = x[0]


def setting():
    p = Params()
    p.a, p.f, p.v = wp.array([1.0, 2.0], dtype=float), 3.0, wp.vec3(4.0)
    return p, wp.array([5.0, 6.0], dtype=float), wp.zeros(2)


def expected(p, s, v, x):
    return p.f * x.numpy() ** 2 + s * p.a.numpy() + p.v[0] + v[1]


def test_arguments_are_taken_as_they_are_at_each_launch():
    p, x, y = setting()
    v = wp.vec3(7.0)
    command = wp.launch(blend, 2, [p, 2.0, v, x], [None], record_cmd=True)
    command.set_param_by_name("y", y)
    assert isinstance(command, wp.Launch)
    assert not y.numpy().any()
    command.launch()
    np.testing.assert_allclose(y.numpy(), expected(p, 2.0, v, x))
    p.f, p.a, v[1] = 0.5, wp.array([10.0, 20.0], dtype=float), 1.0
    command.set_param_by_name("s", 3.0)
    command.launch()
    np.testing.assert_allclose(y.numpy(), expected(p, 3.0, v, x))
    with wp.Tape() as tape:
        command.launch()
    assert not tape.launches


def test_a_launch_made_by_hand():
    p, x, y = setting()
    command = wp.Launch(blend, x.device)
    command.launch()  # an empty grid
    command.set_dim(2)
    command.set_params([p, 2.0, wp.vec3(1.0)])
    command.set_param_at_index(3, x)
    command.set_param_at_index(-1, y)
    command.launch()
    np.testing.assert_allclose(y.numpy(), expected(p, 2.0, wp.vec3(1.0), x))
    out = wp.full(3, 9.0, dtype=float)
    rest = wp.Launch(parts, bounds=1)
    rest.set_param_by_name("out", out)
    rest.launch()
    assert out.list() == [0.0, 0.0, -1.0]
    assert repr(rest) == "<launch of parts, dim=(1,)>"


def test_arguments_as_c_has_them():
    p, x, y = setting()
    command = wp.Launch(blend, bounds=2)
    command.set_params_from_ctypes([p.__ctype__(), 2.0, wp.vec3(1.0)])
    command.set_param_by_name_from_ctype("x", x.__ctype__())
    command.set_param_at_index_from_ctype(4, y.__ctype__())
    command.launch()
    np.testing.assert_allclose(y.numpy(), expected(p, 2.0, wp.vec3(1.0), x))
    matrix = wp.zeros((4, 3), dtype=wp.vec2)[1:, ::2]
    found = matrix.__ctype__()
    assert (found.data, found.ndim) == (matrix.ptr, 2)
    assert tuple(found.shape)[:2] == matrix.shape
    assert tuple(found.strides)[:2] == matrix.strides
    for wrong, index in ((p.__ctype__(), 3), (y.__ctype__(), 0), (p.__ctype__(), 1)):
        with pytest.raises(LaunchError, match="E202"):
            command.set_param_at_index_from_ctype(index, wrong)


def test_arguments_are_changed_together_or_not_at_all():
    p, x, y = setting()
    command = wp.launch(blend, 2, [p, 2.0, wp.vec3(1.0), x, y], record_cmd=True)
    before = list(command.params)
    for wrong in ([p, 3.0, "a"], [p, 3.0, wp.vec3(2.0), x, y, y], None, 4, x):
        with pytest.raises(wp.LaunchError, match=r"E20[12]"):
            command.set_params(wrong)
        assert all(a is b for a, b in zip(command.params, before, strict=True))


def test_adjoints():
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    y.grad.fill_(1.0)
    command = wp.launch(square, 3, [x, y], adj_inputs=[None, None], adjoint=True, record_cmd=True)
    assert not x.grad.numpy().any()
    command.launch()
    assert x.grad.list() == [2, 4, 6]
    assert y.grad.list() == [0, 0, 0]  # consumed, as by a backward pass
    command.launch()
    assert x.grad.list() == [2, 4, 6]
    by_hand = wp.Launch(square, adjoint=True, bounds=2)
    z, gz, gy = wp.array([4.0, 5.0], dtype=float), wp.zeros(2), wp.ones(2)
    by_hand.set_params([z, wp.zeros(2)])
    by_hand.set_param_by_name("x", gz, adjoint=True)
    by_hand.set_param_at_index(1, gy, adjoint=True)
    by_hand.launch()
    by_hand.launch()
    assert gz.list() == [16, 20]
    assert gy.list() == [1, 1]  # no gradient of an argument: it stays


def test_gradients_with_retain_grad_stay():
    x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    y = wp.zeros(2, requires_grad=True, retain_grad=True)
    y.grad.fill_(1.0)
    wp.launch(square, 2, [x], [y], adj_inputs=[x.grad, y.grad], adjoint=True)
    assert x.grad.list() == [2, 4]
    assert y.grad.list() == [1, 1]


@pytest.mark.parametrize("value", [True, np.bool_(True), np.int64(3), np.uint8(3)])
def test_numpy_numbers_and_booleans_stand_for_all_components(value):
    out = wp.zeros(3)
    with pytest.warns(DeprecationWarning, match=r"type `\w+` .*`vec3f`, kernel parameter 'v'"):
        wp.launch(parts, 1, [value, wp.mat22(), wp.vec2i(), False], [out])
    with pytest.warns(DeprecationWarning, match=r"`vec2i`, kernel parameter 'n'"):
        wp.launch(parts, 1, [[value], [value], value, None], [out])
    assert out.list() == [111.0 * float(value), 11.0 * float(value), -1.0]


@pytest.mark.parametrize("value", [3, 3.0, wp.float32(3.0), wp.int32(3), None, "3", [1.0, 2.0]])
def test_other_single_values_do_not(value):
    with pytest.raises(LaunchError, match=r"E202.*argument 'v' expects vec3f but got"):
        wp.launch(parts, 1, [value, wp.mat22(), wp.vec2i(), False], [wp.zeros(3)])
    command = wp.Launch(parts)
    with pytest.raises(LaunchError, match=r"E202.*argument 'v' expects vec3f but got"):
        command.set_param_at_index(0, value)


def test_what_is_refused():
    command = wp.Launch(square)
    with pytest.raises(LaunchError, match=r"E201.*no parameter 2"):
        command.set_param_at_index(2, 1.0)
    with pytest.raises(LaunchError, match=r"E201.*no parameter 'z'"):
        command.set_param_by_name("z", 1.0)
    with pytest.raises(LaunchError, match="E205"):
        command.set_dim(-1)
    with pytest.raises(LaunchError, match="E202"):
        command.set_param_at_index(0, wp.zeros(2, dtype=int))
    with pytest.raises(LaunchError, match="E202"):
        wp.Launch(3)
    with pytest.raises(wp.EngineError):
        wp.Launch(generic)


def test_gradients_of_a_recorded_adjoint_are_as_many_as_its_arguments():
    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    for record in (False, True):
        with pytest.raises(LaunchError, match=r"(?s)E201.*expected 2 adjoints, got 3"):
            wp.launch(square, 3, [x], [y], adj_inputs=[x.grad, None], adj_outputs=[y.grad],
                      adjoint=True, record_cmd=record)  # fmt: skip
