"""Stretches of PyTorch and of JAX on a tape: their gradients, and what the check says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck_tape, jvp

torch = pytest.importorskip("torch", reason="torch is not installed")
jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def pairs(x: wp.array(dtype=float), y: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    y[i] = wp.vec2(x[i] * x[i], wp.sin(x[i]))


X = np.array([0.5, 1.0, 1.5])
# The derivative of sum(sin(x^2) x^2), by hand.
RIGHT = (np.cos(X**2) * X**2 + np.sin(X**2)) * 2 * X
WAYS = [
    pytest.param(wp.record_torch, lambda y: (torch.sin(y) * y).sum(), id="torch"),
    pytest.param(wp.record_jax, lambda y: (jnp.sin(y) * y).sum(), id="jax"),
]
Way = Callable[..., Any]


def leaf(values: Any = X) -> wp.array:
    return wp.array(values, dtype=float, requires_grad=True)


@pytest.mark.parametrize(("record", "f"), WAYS)
def test_gradients_flow_through_launches_and_stretches(record: Way, f: Way) -> None:
    x = leaf()
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[x], outputs=[y])
        loss = record(f, [y])
        y.fill_(7.0)  # what the stretch read is overwritten
    assert loss.shape == (1,) and loss.requires_grad
    tape.backward(loss)
    np.testing.assert_allclose(x.grad.numpy(), RIGHT, rtol=1e-5)
    assert y.numpy().tolist() == [7.0] * 3
    moved = jvp(tape, tangents={x: np.ones(3)})
    np.testing.assert_allclose(moved[loss].numpy(), [RIGHT.sum()], rtol=1e-5)
    found = check_tape(tape).whole
    assert found is not None and found.verdict == "pass", found


@pytest.mark.parametrize(("record", "f"), WAYS)
def test_a_tape_that_is_run_again_at_other_leaves(record: Way, f: Way) -> None:
    x, y = leaf(np.zeros(3)), wp.zeros(3, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        record(lambda x: x * x, [x], [y])
        assert record(f, inputs=[y], outputs=[loss]) is loss
    x.assign(X)
    y.assign(X * X)
    tape.backward(loss)
    np.testing.assert_allclose(x.grad.numpy(), RIGHT, rtol=1e-5)


def test_several_inputs_and_outputs_vectors_and_integers() -> None:
    x, k = leaf(), wp.array([2, 0, 1], dtype=wp.int64)
    y = wp.zeros(3, dtype=wp.vec2, requires_grad=True)

    def f(y: Any, k: Any) -> Any:
        return y[:, 0] * y[k, 1], k + 1

    with wp.Tape() as tape:
        wp.launch(pairs, dim=3, inputs=[x], outputs=[y])
        z, n = wp.record_torch(f, [y, k])
    assert n.dtype is wp.int64 and n.numpy().tolist() == [3, 1, 2] and not n.requires_grad
    tape.backward(grads={z: np.ones(3)})
    t = torch.tensor(X, requires_grad=True)
    (t**2 * torch.sin(t)[[2, 0, 1]]).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-5)
    assert gradcheck_tape(tape, show_summary=False)


def test_gradients_are_added_and_those_of_outputs_used_up() -> None:
    x = leaf()
    y = wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.record_torch(lambda x: 2 * x, [x], [y])
        wp.record_torch(lambda x: 3 * x, [x], [y])  # overwrites what the first one computed
    for _ in range(2):
        tape.backward(grads={y: np.ones(3)})
    assert x.grad.numpy().tolist() == [6.0] * 3
    assert y.grad.numpy().tolist() == [0.0] * 3


def test_parameters_that_a_module_holds_and_random_numbers() -> None:
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    x, y = leaf(), wp.zeros(3, dtype=float, requires_grad=True)
    state = torch.get_rng_state()
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[x], outputs=[y])
        loss = wp.record_torch(net, [y])
    after = torch.get_rng_state()
    tape.backward(loss)
    assert torch.equal(after, torch.get_rng_state())
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    torch.set_rng_state(state)
    t = torch.tensor(X, dtype=torch.float32, requires_grad=True)
    net(t**2).sum().backward()
    torch.testing.assert_close(found, [p.grad for p in net.parameters()])
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-5)
    assert gradcheck_tape(tape, show_summary=False)  # in float64, its parameters too


def test_off_a_tape_it_computes() -> None:
    y = wp.record_jax(lambda x: (x + 1, x.sum()), [leaf()])
    assert [a.numpy().tolist() for a in y] == [[1.5, 2.0, 2.5], [3.0]]


# ---- what the check finds


class Cube(torch.autograd.Function):
    """Its gradient is wrong."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 2 * ctx.saved_tensors[0] ** 2 * g


@jax.custom_vjp
def cube(x: Any) -> Any:
    return x**3


cube.defvjp(lambda x: (x**3, x), lambda x, g: (2 * x**2 * g,))


@pytest.mark.parametrize(
    ("record", "f"),
    [
        pytest.param(wp.record_torch, lambda y: Cube.apply(y).sum(), id="torch"),
        pytest.param(wp.record_torch, lambda y: (y.detach() * y).sum(), id="detached"),
        pytest.param(wp.record_jax, lambda y: cube(y).sum(), id="jax"),
    ],
)
def test_a_wrong_gradient_within_a_stretch_is_found(record: Way, f: Way) -> None:
    x, y = leaf(), wp.zeros(3, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[x], outputs=[y])
        loss = record(f, [y])
    tape.backward(loss)
    found = check_tape(tape)
    assert all(p.verdict == "pass" for x in found.launches for p in x.pairs)
    assert found.whole is not None and found.whole.verdict == "fail"
    cause = found.whole.cause
    assert cause is not None and cause.kind == "stretch" and cause.launch == -1
    assert cause.site is not None and cause.site.file == __file__ == cause.span.file


@pytest.mark.parametrize(("f", "right"), [(lambda y: (y**3).sum(), True),
                                          (lambda y: Cube.apply(y).sum(), False)])  # fmt: skip
def test_a_tape_without_launches_is_checked_as_a_whole(f: Way, right: bool) -> None:
    with wp.Tape() as tape:
        loss = wp.record_torch(f, [leaf()])
    tape.backward(loss)
    assert gradcheck_tape(tape, raise_exception=False, show_summary=False) is right
    if not right:
        with pytest.raises(wp.GradcheckError):
            gradcheck_tape(tape, show_summary=False)


def test_an_array_without_a_gradient_breaks_the_path() -> None:
    x, y = leaf(), wp.zeros(3, dtype=float)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(squares, dim=3, inputs=[x], outputs=[y])
        wp.record_torch(lambda y: y.sum(), [y], [loss])
    found = check_tape(tape).whole
    assert found is not None and found.verdict == "fail"
    assert found.cause is not None and found.cause.kind == "no gradient"


def test_what_depends_on_something_else_is_not_accused() -> None:
    factor = [2.0]
    x = leaf()
    with wp.capturing() as capture, wp.Tape() as tape:
        loss = wp.record_torch(lambda x: (x * factor[0]).sum(), [x])
    tape.backward(loss)
    factor[0] = 3.0
    found = check_tape(capture.tapes[0]).whole
    assert found is not None and found.verdict == "skipped"
    assert "depends on values outside of its inputs" in found.reason


def test_parameters_that_have_moved_since_are_remembered() -> None:
    torch.manual_seed(3)
    net, weight = torch.nn.Linear(3, 1), torch.ones(1)
    x = leaf()
    with wp.capturing() as capture, wp.Tape() as tape:
        loss = wp.record_torch(lambda x: torch.tanh(net(x)) * weight, [x])
    tape.backward(loss)
    torch.optim.SGD(net.parameters(), lr=1.0).step()
    weight *= 3.0
    found = check_tape(capture.tapes[0]).whole
    assert found is not None and found.verdict == "pass", found


PROGRAM = """
import torch
import engine as wp


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return FACTOR * ctx.saved_tensors[0] ** 2 * g


def energy(x):
    return (Cube.apply(x) * OTHER).sum()


x = wp.array([0.5, 1.0, 1.5], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.copy(y, x)
    loss = wp.record_torch(energy, [y])
tape.backward(loss)
"""


@pytest.mark.parametrize(
    ("factor", "other", "line"),
    [("2.0", "1.0", "def backward(ctx, g):"), ("3.0", "x.detach()", "def energy(x):")],
)
def test_a_fault_is_said_once_at_its_cause(
    tmp_path: Path, factor: str, other: str, line: str
) -> None:
    """At the function of PyTorch that is wrong; at the stretch, where that is all that is known."""
    text = PROGRAM.replace("FACTOR", factor).replace("OTHER", other)
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "adtool", "check", "--format", "json", str(tmp_path / "program.py")],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "error"]
    assert found["code"] == "G001", done.stdout
    assert text.splitlines()[found["line"] - 1].strip() == line


# ---- what is refused


REFUSED = [
    (lambda x: wp.record_torch(3, [x]), "E202", "takes a function"),
    (lambda x: wp.record_torch(torch.sin, x), "E202", "write inputs=[a]"),
    (lambda x: wp.record_torch(torch.sin, [X]), "E202", "ndarray"),
    (lambda x: wp.record_torch(torch.sin, [x], [x]), "E206", "shares memory"),
    (lambda x: wp.record_torch(lambda x: 1.0, [x]), "E202", "returned float"),
    (lambda x: wp.record_jax(lambda x: np.sin(x), [x]), "E202", "not an array of JAX"),
    (lambda x: wp.record_torch(torch.sin, [x], [x, x][:0]), "E201", "1 results for 0"),
    (lambda x: wp.record_torch(torch.sum, [x], [wp.zeros(2)]), "E207", "shape ()"),
    (lambda x: wp.record_torch(torch.sin, [x], [wp.zeros(3, dtype=wp.float64)]), "E202", "float32"),
]


@pytest.mark.parametrize(("call", "code", "text"), REFUSED)
def test_calls_that_do_not_fit(call: Way, code: str, text: str) -> None:
    with pytest.raises(wp.LaunchError) as raised:
        call(leaf())
    shown = str(raised.value)
    assert raised.value.diagnostics[0].code == code and text in shown, shown
    assert __file__ in shown, shown


def test_custom_functions_have_no_forward_mode() -> None:
    x = leaf()
    with wp.Tape() as tape:
        wp.record_jax(lambda x: cube(x), [x])
    with pytest.raises(wp.TapeError, match="no forward derivative"):
        jvp(tape, tangents={x: np.ones(3)})
