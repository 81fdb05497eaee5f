"""Gradients stop at launches of kernels without backward: per kernel, per module, globally."""

import warnings

import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck_tape

other = wp.get_module("tests.enable_backward.other")


def body(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


plain = wp.kernel(body, name="plain")
always = wp.kernel(body, name="always", enable_backward=True)
never = wp.kernel(body, name="never", enable_backward=False)
elsewhere = wp.kernel(body, name="elsewhere", module="tests.enable_backward.other")
forced = wp.kernel(body, name="forced", module="tests.enable_backward.other", enable_backward=True)


@pytest.fixture(autouse=True)
def settings(monkeypatch):
    yield monkeypatch
    wp.set_module_options({"enable_backward": None}, module=other)


def record(kernel):
    x = wp.array([3.0], dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x], outputs=[y])
    return tape, x, y


def gradient(kernel):
    """dy/dx; a warning where none flows."""
    tape, x, y = record(kernel)
    tape.backward(grads={y: wp.ones_like(y)})
    return float(x.grad.numpy()[0])


def test_three_levels(settings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [gradient(k) for k in (plain, always, elsewhere, forced)] == [6.0] * 4
    with pytest.warns(UserWarning, match="no gradient flows through kernel 'never'"):
        assert gradient(never) == 0.0
    wp.set_module_options({"enable_backward": False}, module=other)
    assert wp.get_module_options(other)["enable_backward"] is False
    with pytest.warns(UserWarning, match="elsewhere"):
        assert gradient(elsewhere) == 0.0
    assert gradient(forced) == 6.0 and gradient(plain) == 6.0
    settings.setattr(wp.config, "enable_backward", False)
    with pytest.warns(UserWarning, match="plain"):
        assert gradient(plain) == 0.0
    assert gradient(always) == 6.0
    wp.set_module_options({"enable_backward": True}, module=other)
    assert gradient(elsewhere) == 6.0


def test_a_check_says_where_gradients_stop() -> None:
    tape, *_ = record(never)
    (launch,) = check_tape(tape).launches
    assert "enable_backward" in launch.skipped and not launch.pairs
    assert not gradcheck_tape(tape, raise_exception=False, show_summary=False)
    with pytest.raises(ValueError, match="enable_backward"):
        gradcheck_tape(tape, show_summary=False)
