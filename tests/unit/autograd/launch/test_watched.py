"""Checks of launches that are watched: where the launch stays inside, nothing else is watched."""

import numpy as np
import pytest

import engine as wp
from engine.autograd import check_tape
from engine.runtime import watch
from engine.runtime.watch import watching


@wp.func
def wrong(v: float):
    return v * v


@wp.func_grad(wrong)
def adj_wrong(v: float, adj_ret: float):
    wp.adjoint[v] += v * adj_ret


@wp.kernel
def gathered(k: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[k[i]] * x[i]


@wp.kernel
def spoiled(k: wp.array(dtype=int), x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wrong(x[k[i]]) + x[i]


@wp.kernel
def scaled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    """Where a float is displaced, the index that is made of it leaves the array."""
    i = wp.tid()
    y[i] = x[i] * x[int(x[i] * 4.0)]


@pytest.mark.parametrize("kernel, verdict", [(gathered, "pass"), (spoiled, "fail")])
@pytest.mark.parametrize("inside", [True, False])
def test_only_what_leaves_its_arrays_is_watched_everywhere(monkeypatch, kernel, verdict, inside):
    forms = set()

    class Noting(watch.WatchedRun):
        def __init__(self, backend, variants, form, *more):
            forms.add(form)
            super().__init__(backend, variants, form, *more)

    monkeypatch.setattr(watch, "WatchedRun", Noting)
    k = wp.array([3, 1, 0, 2 if inside else 1 << 28], dtype=int)
    x = wp.array([0.3, 0.9, 0.5, 0.7], dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    faults = []
    with watching(faults.append):
        with wp.Tape() as tape:
            wp.launch(kernel, 4, [k], [x, y])
        assert bool(faults) is not inside
        found = check_tape(tape, end_to_end=False).launches[0].pairs
    assert {p.output: p.verdict for p in found}["y"] == verdict
    if inside and verdict == "pass":  # who is to blame is searched for apart
        assert forms == {"forward"}
    assert inside or {"forward", "adjoint"} <= forms


def test_what_floats_send_astray_is_guarded():
    x = wp.array(np.array([0.3, 0.74999, 0.5, 0.1]), dtype=float, requires_grad=True)
    y = wp.zeros(4, dtype=float, requires_grad=True)
    with watching(), wp.Tape() as tape:
        wp.launch(scaled, 4, [x, y])
        (p,) = (p for p in check_tape(tape, end_to_end=False).launches[0].pairs)
    assert p.verdict in ("pass", "kink")
