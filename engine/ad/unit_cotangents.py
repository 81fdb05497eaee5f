"""Custom gradients that forward mode calls with unit cotangents, though they may be nonlinear.

What such a gradient gives for a cotangent of one is a row of the Jacobian only where it is linear
in its cotangents. Where it is not (it clips them, say), forward and reverse mode differ.
"""

from __future__ import annotations

from engine.ad.linear import Kink
from engine.ad.transpose import nonlinear_by_values
from engine.ad.varied import Activity, by_values, moving_params
from engine.classes import dataclass
from engine.ir import nodes as n
from engine.lang.types import is_float


@dataclass(frozen=True, slots=True)
class NonlinearGradient:
    """A gradient that is not linear in its cotangents, as far as can be told.

    function, gradient: their names. kink: why, and where.
    """

    function: str
    gradient: str
    kink: Kink


def nonlinear_gradients(fn: n.Function, wrt: frozenset[str]) -> tuple[NonlinearGradient, ...]:
    """Those that the tangent of a kernel (see `ad.tangent`) asks at cotangents of one.

    fn: as lowered. wrt: names of the arrays that have tangents. Each comes once.
    """
    activity = Activity()
    asked: dict[int, n.Function] = {}
    seen: set[tuple[int, frozenset[str]]] = set()

    def look(f: n.Function, moving: frozenset[str]) -> None:
        if (id(f), moving) in seen:
            return
        seen.add((id(f), moving))
        found = activity.of(f, moving).vars
        for s in n.walk(f.body):
            if not isinstance(s, n.Call):
                continue
            if s.func.grad is None:
                if inner := moving_params(s, found, moving):
                    look(s.func, inner)
            elif by_values(s, moving) and any(a in found for a in s.args):
                if any(is_float(d.type) for d in s.dsts):
                    asked[id(s.func)] = s.func

    look(fn, wrt)
    kinks = ((f, nonlinear_by_values(f)) for f in asked.values())
    return tuple(
        NonlinearGradient(f.name, f.grad.name, kink) for f, kink in kinks if f.grad and kink
    )
