"""Functions as Python code beside the interpreter: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.builtins.composite import COMPOSITES
from engine.ir import interp
from engine.ir.as_python import as_python, quietly
from engine.ir.nodes import callees
from engine.lang.types import FLOAT32, ArrayType, is_float, scalar_of
from tests.overloads import OVERLOADS, Overload, sample, seeded
from tests.sweeps import reduced
from tests.unit.frontend.ir_text import lowered

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, 3e38]


def bits(values: Any) -> list[tuple[str, bytes]]:
    """Types and bits; NaN is NaN."""
    out = []
    for v in values:
        a = np.array(v)
        if a.dtype.kind == "f":
            a[np.isnan(a)] = np.nan
        out.append((f"{a.dtype}{a.shape}", a.tobytes()))
    return out


def special(o: Overload, rng: np.random.Generator) -> list[Any]:
    args = sample(o, rng)
    for k, t in enumerate(o.types):
        if is_float(t):
            picked = rng.choice(SPECIAL, np.shape(args[k])).astype(np.asarray(args[k]).dtype)
            args[k] = picked[()] if np.ndim(args[k]) == 0 else np.where(
                rng.random(np.shape(args[k])) < 0.5, picked, args[k])  # fmt: skip
    return args


def outcome(evaluate: Any) -> Any:
    try:
        return bits(evaluate())
    except Exception as e:
        return type(e)


# One of each composite, over float32 where it is one of floats.
USUAL = {o.composite.func: o for o in reversed(OVERLOADS)} | {
    o.composite.func: o for o in reversed(OVERLOADS) if FLOAT32 in {scalar_of(t) for t in o.types}
}


@pytest.mark.parametrize("o", reduced(OVERLOADS, lambda o: o is USUAL[o.composite.func]), ids=str)
def test_composites(o: Overload) -> None:
    fn = o.function
    run = as_python(fn)
    if any(isinstance(t, ArrayType) for t in o.types):
        assert run is None
        return
    assert run is not None, "it is interpreted, a hundred times as slow"
    rng = seeded(o)
    for turn in range(6):
        with np.errstate(all="ignore"):
            args = sample(o, rng) if turn < 3 else special(o, rng)
        wanted = outcome(lambda: interp.evaluate(fn, args))
        assert outcome(lambda: quietly(run, args)) == wanted, args


def test_each_composite_is_there() -> None:
    assert {o.composite.user for o in OVERLOADS} >= {n for n in COMPOSITES if n[0] != "_"}


@wp.func
def jumps(x: float, n: int):
    s = float(0.0)
    k = int(n - n)
    while k < n:
        k += 1
        if k % 3 == 0:
            continue
        if s > 40.0:
            break
        for j in range(k):
            if j == 4:
                break
            s += x * float(j + 1)
    if s < 0.0:
        return -s, k
    return s, k


@wp.kernel
def calls(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    s, k = jumps(x[0], n)
    y[0] = s + float(k)


def test_jumps_and_loops() -> None:
    (fn,) = [f for f in callees(lowered(calls)) if f.name.startswith("jumps")]
    run = as_python(fn)
    assert run is not None
    for x in (0.5, -2.0, 0.0, np.nan):
        for n in range(9):
            args = [np.float32(x), np.int32(n)]
            assert bits(run(*args)) == bits(interp.evaluate(fn, args))
