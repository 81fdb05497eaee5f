"""Verdicts of tapes with a reference that is not finite, not exact, or not requested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.autograd import TapeResult, check_tape

F = wp.array(dtype=float)


@wp.func
def root(x: float):
    return wp.sqrt(x)


@wp.func_grad(root)
def adj_root(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 7.0 / (2.0 * wp.sqrt(x)) * adj_ret  # seven times too much


@wp.func
def angle(x: float):
    return wp.acos(x)


@wp.func_grad(angle)
def adj_angle(x: float, adj_ret: float):
    if x < 1.0:
        wp.adjoint[x] += -1.05 / wp.sqrt(1.0 - x * x) * adj_ret  # 5 % too much


@wp.func
def root_of_zero(x: float):
    return wp.sqrt(x)


@wp.func_grad(root_of_zero)
def adj_root_of_zero(x: float, adj_ret: float):
    wp.adjoint[x] += 77.0 * adj_ret


@wp.func
def safe_root(x: float):
    return wp.sqrt(x)


@wp.func_grad(safe_root)
def adj_safe_root(x: float, adj_ret: float):
    if x > 0.0:
        wp.adjoint[x] += 1.0 / (2.0 * wp.sqrt(x)) * adj_ret


@wp.func
def ident(x: wp.transform):
    return x


@wp.func_grad(ident)
def adj_ident(x: wp.transform, adj_ret: wp.transform):
    wp.adjoint[x] += adj_ret


@wp.func
def ident_off(x: wp.transform):
    return x


@wp.func_grad(ident_off)
def adj_ident_off(x: wp.transform, adj_ret: wp.transform):
    wp.adjoint[x] += adj_ret * 1.01


@wp.kernel
def roots(x: F, out: F):
    wp.atomic_add(out, 0, root(x[wp.tid()]))


@wp.kernel
def angles(x: F, out: F):
    wp.atomic_add(out, 0, angle(x[wp.tid()]))


@wp.kernel
def roots_of_zero(x: F, out: F):
    wp.atomic_add(out, 0, root_of_zero(x[wp.tid()]))


@wp.kernel
def safe_roots(x: F, out: F):
    wp.atomic_add(out, 0, safe_root(x[wp.tid()]))


@wp.kernel
def moved(x: wp.array(dtype=wp.transform), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = wp.transform_point(ident(x[i]), wp.vec3(1.0, 2.0, 3.0))


@wp.kernel
def moved_off(x: wp.array(dtype=wp.transform), y: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    y[i] = wp.transform_point(ident_off(x[i]), wp.vec3(1.0, 2.0, 3.0))


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def excess(x: F, y: F):
    i = wp.tid()
    y[i] = wp.sqrt(1.0 + x[i] * x[i]) - 1.0


@wp.kernel
def excess_stable(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i] / (wp.sqrt(1.0 + x[i] * x[i]) + 1.0)


@wp.kernel
def noisy(x: F, y: F):
    i = wp.tid()
    y[i] = wp.log(wp.exp(wp.sqrt(1.0 + x[i] * x[i]) - 1.0))


@wp.kernel
def products(a: F, b: F, loss: F):
    i = wp.tid()
    wp.atomic_add(loss, 0, a[i] * b[i])


def floats(values: Any) -> wp.array:
    return wp.array(np.asarray(values), dtype=float, requires_grad=True)


def checked(kernel: Any, dim: int, inputs: list[Any], outputs: list[Any]) -> TapeResult:
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    return check_tape(tape)


def test_a_wrong_derivative_beside_the_edge_of_its_domain() -> None:
    """Differences of the whole are not finite, and forward mode has the same wrong derivative."""
    found = checked(roots, 50, [floats(np.linspace(0.0, 2.0, 50))], [floats([0.0])])
    (pair,) = found.launches[0].pairs
    assert pair.verdict == "fail" and found.whole is not None
    assert (found.whole.verdict, "is wrong" in found.whole.reason) == ("inconclusive", True)
    # The entry that is named can be judged, and the derivative is named with its numbers.
    assert pair.worst is not None and np.isfinite(pair.worst.oracle)
    assert pair.worst.ad == pytest.approx(7.0 * pair.worst.oracle, rel=1e-3)
    (blame,) = found.launches[0].blame
    assert blame.derivative == "adj_root" and blame.parts


def test_what_is_named_is_not_the_pole() -> None:
    """Differences are finite there, and no derivative."""
    found = checked(angles, 4, [floats([1.0, 0.3, -0.7, 0.1])], [floats([0.0])])
    (pair,) = found.launches[0].pairs
    assert pair.verdict == "fail" and pair.worst is not None
    assert pair.worst.ad == pytest.approx(1.05 * pair.worst.oracle, rel=1e-3)
    (blame,) = found.launches[0].blame
    assert blame.operands and float(blame.operands[0][1]) < 0.9
    assert found.whole is not None and found.whole.verdict != "pass"


def test_the_right_one_there_is_no_alarm() -> None:
    found = checked(safe_roots, 50, [floats(np.linspace(0.0, 2.0, 50))], [floats([0.0])])
    assert found.launches[0].pairs[0].verdict in ("pass", "inconclusive")
    assert found.whole is not None and found.whole.verdict in ("pass", "inconclusive")


def test_nothing_is_known_where_nothing_is_finite() -> None:
    found = checked(roots_of_zero, 3, [floats(np.zeros(3))], [floats([0.0])])
    assert found.launches[0].pairs[0].verdict == "inconclusive"
    assert found.whole is not None and found.whole.verdict == "inconclusive"


@pytest.mark.parametrize(("kernel", "verdict"), [(moved, "pass"), (moved_off, "fail")])
def test_derivatives_by_hand_of_rigid_motions(kernel: Any, verdict: str) -> None:
    x = np.random.default_rng(0).normal(size=(4, 7))
    y = wp.zeros(4, dtype=wp.vec3, requires_grad=True)
    poses = wp.array(x, dtype=wp.transform, requires_grad=True)
    found = checked(kernel, 4, [poses], [y])
    assert found.launches[0].pairs[0].verdict == verdict
    assert found.whole is not None and found.whole.verdict == verdict


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_input_that_is_not_finite_is_no_fault_of_the_whole(bad: float) -> None:
    found = checked(square, 3, [floats([bad, 2.0, 3.0])], [floats(np.zeros(3))])
    assert found.whole is not None and found.whole.verdict in ("pass", "inconclusive")
    assert found.launches[0].pairs[0].verdict in ("pass", "inconclusive")
    n = 4
    loss = floats([0.0])
    found = checked(products, n, [floats([bad, 1.0, 2.0, 3.0]), floats(np.ones(n))], [loss])
    assert found.whole is not None and found.whole.verdict == "inconclusive"


# ---- digits


def two_launches(kernel: Any) -> tuple[TapeResult, float]:
    """A tape whose second launch weighs by what the first one gives, and how far off it is."""
    rng = np.random.default_rng(0)
    x, p = floats(rng.uniform(1e-3, 2e-3, 16)), floats(rng.normal(size=16))
    e, loss = floats(np.zeros(16)), floats([0.0])
    with wp.Tape() as tape:
        wp.launch(kernel, 16, inputs=[x], outputs=[e])
        wp.launch(products, 16, inputs=[e, p], outputs=[loss])
    tape.backward(loss)
    t = x.numpy().astype(np.float64)
    right = t * t / (np.sqrt(1 + t * t) + 1)
    off = np.linalg.norm(p.grad.numpy() - right) / np.linalg.norm(right)
    return check_tape(tape), float(off)


def test_digits_that_are_lost_between_launches() -> None:
    lost, off = two_launches(excess)
    kept, little = two_launches(excess_stable)
    assert lost.whole is not None and kept.whole is not None
    assert lost.whole.verdict == kept.whole.verdict == "pass"
    assert off > 1e-2 and lost.whole.rounding == pytest.approx(off, rel=0.5)
    assert little < 1e-6 and kept.whole.rounding is not None and kept.whole.rounding < 1e-6


def test_noise_of_differences_is_no_error_of_the_adjoint() -> None:
    x = np.random.default_rng(0).uniform(1e-3, 2e-3, 16)
    found = checked(noisy, 16, [floats(x)], [floats(np.zeros(16))])
    (pair,) = found.launches[0].pairs
    assert pair.verdict == "pass" and pair.max_rel_error > 1e-7  # beside differences
    assert pair.forward_error is not None and pair.forward_error < 1e-12
    assert found.whole is not None and found.whole.rel_error < 1e-9


def test_forward_mode_is_no_witness_for_what_is_written_by_hand() -> None:
    found = checked(safe_roots, 9, [floats(np.linspace(1.0, 2.0, 9))], [floats([0.0])])
    assert found.launches[0].pairs[0].forward_error is None
