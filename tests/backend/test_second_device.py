"""Work on a second device stays on it and gives the results of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape, gradcheck, gradcheck_tape, jacobian, jvp
from tests.backend.cuda.emulated import PLACES, place
from tests.backend.mirror import Mirror, mirror

N = 6
DATA = np.linspace(0.3, 1.4, N)


@wp.struct
class Body:
    mass: float
    at: wp.vec3


@wp.kernel
def waves(
    x: wp.array(dtype=float),
    s: wp.array(dtype=float),
    y: wp.array(dtype=float),
    t: wp.array(dtype=float),
):
    i = wp.tid()
    for k in range(3):
        x[i] = wp.sin(x[i]) * s[(i + k) % 3] + float(k)
    y[i] = x[i] * x[i]
    wp.atomic_add(t, i % 3, 0.25 * y[i])


@wp.kernel
def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[(i + 1) % x.shape[0]]


@wp.kernel
def pulled(bodies: wp.array(dtype=Body), forces: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    b = bodies[i]
    forces[i] = b.at * (b.mass * wp.length(b.at))


@pytest.fixture(params=["mirror", *PLACES])
def other(request: pytest.FixtureRequest) -> Iterator[Any]:
    with mirror() if request.param == "mirror" else place(request.param) as device:
        yield device


# What differs in the last bits: sums in another order, and the device's own functions.
CLOSE = {"rtol": 2e-6, "atol": 1e-6}


def runs(device: Any) -> int:
    """How many kernels ran there."""
    return getattr(device.backend, "runs", 0)


def floats(values: Any, device: Any, dtype: Any = float) -> Any:
    return wp.array(np.asarray(values), dtype=dtype, device=device, requires_grad=True)


def same(work: Callable[[Any], dict[str, Any]], other: Any) -> None:
    """The work gives arrays on the device that it is done on, with the contents of the CPU's."""
    expected, before = work("cpu"), runs(other)
    got = work(other)
    assert not isinstance(other.backend, Mirror) or runs(other) > before
    for name, a in got.items():
        assert a.device == other and expected[name].device == "cpu", name
        equal(other, a.numpy(), expected[name].numpy(), name)


def equal(device: Any, found: Any, expected: Any, what: str = "") -> None:
    """The same bits, where the device computes as the CPU does."""
    if isinstance(device.backend, Mirror) or found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
    else:
        np.testing.assert_allclose(found, expected, err_msg=what, **CLOSE)


def taped(device: Any) -> tuple[Any, dict[str, Any]]:
    x, s, y = floats(DATA, device), floats([0.5, 0.7, 0.9], device), floats(np.zeros(N), device)
    t = floats([1.0, 2.0, 3.0], device)
    with wp.Tape() as tape:
        wp.launch(waves, dim=N, inputs=[x, s], outputs=[y, t], device=device)
        half = wp.zeros(3, dtype=float, device=device, requires_grad=True)
        wp.copy(half, y[::2])
        z = wp.clone(half)
    return tape, {"x": x, "s": s, "y": y, "t": t, "half": half, "z": z}


def test_launches_tapes_and_gradients(other: Any) -> None:
    def work(device: Any) -> dict[str, Any]:
        tape, found = taped(device)
        tape.backward(grads={found["z"]: wp.ones(3, dtype=float, device=device)})
        return found | {f"adj_{name}": a.grad for name, a in found.items()}

    same(work, other)


def test_values_come_and_go(other: Any) -> None:
    x = floats(DATA, other)
    there = x.numpy()
    there[0] = 7.0  # a copy: its memory is not the host's
    assert x.numpy()[0] == np.float32(DATA[0]) and type(there) is np.ndarray
    back = x.to("cpu")
    assert back.device == "cpu" and x.to(other) is x
    np.testing.assert_array_equal(back.numpy(), DATA.astype(np.float32))
    back[1:3] = 5.0
    wp.copy(x, back)
    assert x.list()[1:3] == [5.0, 5.0] and x[2] == 5.0
    x[0] = 3.0
    x[4:] = back[:2]
    x.assign(x.numpy() * 2.0)
    assert x.device == other and x.list()[0] == 6.0 and x.list()[5] == 10.0
    for like in (wp.zeros_like(x), wp.ones_like(x), wp.clone(x), wp.full_like(x, 2.0), x.grad):
        assert like.device == other
    with wp.ScopedDevice(other):
        assert wp.zeros(2, dtype=float).device == other
        y = wp.zeros(N, dtype=float)
        wp.launch(squares, dim=N, inputs=[x], outputs=[y])
        assert y.device == other and y.list()[0] == 6.0 * 6.0 * 10.0


def test_gradients_flow_between_devices(other: Any) -> None:
    x, there = floats(DATA, "cpu"), floats(np.zeros(N), other)
    y = floats(np.zeros(N), other)
    with wp.Tape() as tape:
        wp.copy(there, x)
        wp.launch(squares, dim=N, inputs=[there], outputs=[y], device=other)
        z = y.to("cpu")
    tape.backward(grads={z: np.ones(N, np.float32)})
    expected, after = DATA.astype(np.float32), np.roll(DATA, -1).astype(np.float32)
    before = np.roll(expected, 1)
    assert x.grad.device == "cpu" and there.grad is None or there.grad.device == other
    np.testing.assert_allclose(x.grad.numpy(), 2 * expected * after + before**2, rtol=1e-6)


def test_forward_mode(other: Any) -> None:
    def of_launch(device: Any) -> dict[str, Any]:
        x, y = floats(DATA, device), floats(np.zeros(N), device)
        moved = jvp(squares, N, [x], [y], tangents={x: np.cos(DATA)}, device=device)
        return {"y": moved[y], "named": moved["y"]}

    def of_tape(device: Any) -> dict[str, Any]:
        tape, found = taped(device)
        moved = jvp(tape, tangents={found["x"]: np.cos(DATA)})
        return {name: moved[found[name]] for name in ("y", "half", "z")}

    same(of_launch, other)
    same(of_tape, other)


def test_structs(other: Any) -> None:
    data = np.zeros(N, Body.numpy_dtype())
    data["mass"], data["at"] = DATA, np.sin(np.arange(3.0 * N)).reshape(N, 3)

    def work(device: Any) -> dict[str, Any]:
        bodies = wp.array(data, dtype=Body, device=device, requires_grad=True)
        forces = floats(np.zeros((N, 3)), device, wp.vec3)
        with wp.Tape() as tape:
            wp.launch(pulled, dim=N, inputs=[bodies], outputs=[forces], device=device)
        tape.backward(grads={forces: np.ones((N, 3), np.float32)})
        return {"forces": forces, "bodies": bodies}

    def gradients(device: Any) -> Any:
        return work(device)["bodies"].grad

    same(work, other)
    on_cpu, there = gradients("cpu"), gradients(other)
    assert there.device == other
    for field in ("mass", "at"):
        equal(other, there.numpy()[field], on_cpu.numpy()[field], field)
    assert np.abs(there.numpy()["mass"]).min() > 0.0


def test_jacobians_and_checks(other: Any) -> None:
    def work(device: Any) -> dict[str, Any]:
        x, y = floats(DATA, device), floats(np.zeros(N), device)
        return {"J": jacobian(squares, N, [x], [y], device=device)[(0, 0)]}

    on_cpu, there = work("cpu")["J"], work(other)["J"]
    assert there.device == other
    equal(other, there.numpy(), on_cpu.numpy())
    x, y = floats(DATA, other), floats(np.zeros(N), other)
    assert gradcheck(squares, N, [x], [y], device=other)
    tape, _ = taped(other)
    assert gradcheck_tape(tape)


def test_python_functions(other: Any) -> None:
    """They run on the user's own arrays, which are as they were afterwards."""

    def work(device: Any) -> Any:
        def function(x: Any, count: Any) -> Any:
            y = wp.zeros(N, dtype=float, device=device, requires_grad=True)
            wp.launch(squares, dim=N, inputs=[x], outputs=[y], device=device)
            count.fill_(7.0)
            return y

        x, count = floats(DATA, device), wp.zeros(2, dtype=float, device=device)
        with pytest.warns(UserWarning, match="changes its input 'count'"):
            found = jacobian(function, inputs=[x, count])[(0, 0)]
            assert gradcheck(function, inputs=[x, count])
        np.testing.assert_array_equal(x.numpy(), DATA.astype(np.float32))
        assert count.list() == [0.0, 0.0]
        return {"J": found}

    same(work, other)


def test_indexed_arrays(other: Any) -> None:
    x = floats(DATA, other)
    rows = wp.array([4, 0, 2], dtype=int, device=other)
    seen = wp.indexedarray(x, [rows])
    assert seen.device == other
    np.testing.assert_array_equal(seen.numpy(), DATA.astype(np.float32)[[4, 0, 2]])
    seen.fill_(9.0)
    assert x.list()[0] == x.list()[2] == x.list()[4] == 9.0 and x.list()[1] != 9.0
    assert seen.contiguous().device == other and seen.contiguous().list() == [9.0] * 3


def test_captured_tapes_are_checked(other: Any) -> None:
    with wp.capturing() as capture:
        tape, found = taped(other)
        tape.backward(grads={found["z"]: np.ones(3, np.float32)})
    (captured,) = capture.tapes
    result = check_tape(captured)
    assert result.passed and result.launches[0].pairs


def test_devices_do_not_mix_in_a_launch(other: Any) -> None:
    x, y = floats(DATA, other), floats(np.zeros(N), "cpu")
    for device in (other, "cpu", None):
        with pytest.raises(wp.LaunchError, match="E204"):
            wp.launch(squares, dim=N, inputs=[x], outputs=[y], device=device)
        with pytest.raises(wp.LaunchError, match="E204"):
            jvp(squares, N, [x], [y], tangents={x: DATA}, device=device)
    assert y.list() == [0.0] * N
