"""Points that nearly coincide, where differences tell nothing: left open, at a bounded cost."""

from __future__ import annotations

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from engine.autograd.launch.evaluation import Evaluation

POINTS = 12


@wp.kernel
def angle(x: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a, b = x[i], x[(i + 1) % x.shape[0]]
    c = wp.length(wp.cross(a, b))
    cosine = wp.clamp(wp.dot(wp.normalize(a), wp.normalize(b)), -1.0, 1.0)
    f[i] = wp.vec3(wp.acos(cosine), c, wp.atan2(c, wp.dot(a, b)))


@wp.func
def halved(c: float):
    return c


@wp.func_grad(halved)
def adj_halved(c: float, adj_ret: float):
    wp.adjoint[c] += 0.5 * adj_ret


@wp.kernel
def wrong(x: wp.array(dtype=wp.vec3), f: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    a, b = x[i], x[(i + 1) % x.shape[0]]
    c = wp.length(wp.cross(a, b))
    cosine = wp.clamp(wp.dot(wp.normalize(a), wp.normalize(b)), -1.0, 1.0)
    f[i] = wp.vec3(wp.acos(cosine), halved(c), wp.atan2(c, wp.dot(a, b)))


@pytest.mark.parametrize(("kernel", "verdict"), [(angle, "inconclusive"), (wrong, "fail")])
def test_what_differences_cannot_tell_is_not_searched_for_at_each_entry(
    kernel: wp.Kernel, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = 0
    forward_again = Evaluation.forward_again

    def counted(self: Evaluation) -> None:
        nonlocal values
        values += 1
        forward_again(self)

    monkeypatch.setattr(Evaluation, "forward_again", counted)
    rng = np.random.default_rng(0)
    at = rng.normal(size=(POINTS, 3))
    at[1::2] = at[0::2] + 1e-6 * rng.normal(size=(POINTS // 2, 3))
    x = wp.array(at.astype(np.float32), dtype=wp.vec3, requires_grad=True)
    f = wp.zeros(POINTS, dtype=wp.vec3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, POINTS, [x, f])
    (launch,) = check_tape(tape).launches
    assert [p.verdict for p in launch.pairs] == [verdict]
    assert values < 8000
