"""Gradients of the user's own read arrays when they run: what a launch overwrites is told."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.diagnostics import TapeError


@wp.func
def squared(z: wp.array(dtype=float), i: int):
    return z[i] * z[i]


@wp.func_grad(squared)
def adj_squared(z: wp.array(dtype=float), i: int, adj_ret: float):
    wp.adjoint[z][i] += 2.0 * z[i] * adj_ret


@wp.func_native("o[i] = z[i] * z[i];", adj_snippet="adj_z[i] += 2.0f * z[i] * adj_o[i];")
def natively(z: wp.array(dtype=float), o: wp.array(dtype=float), i: int): ...


@wp.func
def keeps(x: wp.array(dtype=float), kept: wp.array(dtype=float), i: int):
    kept[i] = 2.0 * x[i]
    return x[i] * x[i]


@wp.func_grad(keeps)
def adj_keeps(x: wp.array(dtype=float), kept: wp.array(dtype=float), i: int, adj_ret: float):
    wp.adjoint[x][i] += kept[i] * adj_ret


@wp.kernel
def after(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    o[i] = squared(z, i)
    z[i] *= 3.0


@wp.kernel
def native_after(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    natively(z, o, i)
    z[i] = 0.0


@wp.kernel
def in_a_loop(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    for _ in range(3):
        z[i] += 1.0
        o[i] += squared(z, i)


@wp.kernel
def atomically(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    if z[i] > 0.0:
        o[i] = squared(z, i)
    wp.atomic_add(z, i, 1.0)


@wp.kernel
def by_another_name(
    z: wp.array(dtype=float), o: wp.array(dtype=float), same: wp.array(dtype=float)
):
    i = wp.tid()
    o[i] = squared(z, i)
    same[i] = 7.0


@wp.kernel
def before(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = 3.0 * z[i]
    o[i] = squared(z, i)


@wp.kernel
def on_the_other_side(z: wp.array(dtype=float), o: wp.array(dtype=float)):
    i = wp.tid()
    if i == 0:
        o[i] = squared(z, i)
    else:
        o[i] = 5.0 * z[i]
        z[i] = 1.0


@wp.kernel
def kept_by_itself(z: wp.array(dtype=float), o: wp.array(dtype=float), kept: wp.array(dtype=float)):
    i = wp.tid()
    for _ in range(1):
        o[i] = keeps(z, kept, i)


def ran(kernel: wp.Kernel) -> wp.Tape:
    z = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
    o = wp.zeros(2, dtype=float, requires_grad=True)
    more = {by_another_name: [z], kept_by_itself: [wp.zeros(2, dtype=float)]}
    with wp.Tape() as tape:
        wp.launch(kernel, dim=2, inputs=[z, o, *more.get(kernel, ())])
    tape.backward(grads={o: wp.array([1.0, 10.0], dtype=float)})
    ran.z, ran.tape = z, tape
    return z.grad.numpy()


@pytest.mark.parametrize(
    "kernel", [after, native_after, in_a_loop, atomically, by_another_name], ids=lambda k: k.key
)
def test_refused(kernel: wp.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TapeError, match=r"E408.*reads array 'z'") as e:
        ran(kernel)
    assert e.value.diagnostics[0].span.file == __file__
    monkeypatch.setattr(wp.config, "overwrites", "present")
    ran(kernel)  # as in Warp: what is there now
    assert not wp.autograd.gradcheck_tape(ran.tape, raise_exception=False)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(before, [18.0, 360.0]), (on_the_other_side, [2.0, 50.0]), (kept_by_itself, [2.0, 40.0])],
    ids=["before", "on_the_other_side", "kept_by_itself"],
)
def test_right(kernel: wp.Kernel, expected: list[float]) -> None:
    np.testing.assert_allclose(ran(kernel), expected)
    assert wp.autograd.gradcheck_tape(ran.tape)
