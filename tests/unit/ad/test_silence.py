"""Code that reruns for a derivative prints nothing."""

from __future__ import annotations

import engine as wp
from engine.ad.silence import silent
from engine.ir import nodes as n
from tests.unit.ad.kernels import statements


@wp.func
def loud(v: float):
    wp.printf("v = %f\n", v)
    return v + v


@wp.kernel
def talks(x: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        print(x[i])
    x[i] = loud(x[i])


@wp.kernel
def silent_already(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


def messages(fn: n.Function) -> int:
    return sum(len(statements(f, n.Message)) for f in (fn, *n.callees(fn)))


def test_messages_go_at_every_depth() -> None:
    assert messages(talks.ir) == 2
    out = silent(talks.ir)
    assert messages(out) == 0 and len(statements(out, n.Store)) == 1


def test_a_function_without_messages_is_itself() -> None:
    assert silent(silent_already.ir) is silent_already.ir
