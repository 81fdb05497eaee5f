"""Passes over the IR: preparation of kernels for differentiation, and differentiation."""

from typing import TYPE_CHECKING

from engine.late import late as _late

if TYPE_CHECKING:
    from engine.ad.accesses import Access, Accesses, accesses
    from engine.ad.cuts import Cut, Flow, flows
    from engine.ad.decisions import decisions, loops_by_floats
    from engine.ad.derivative import derivatives, nonlinear_derivatives
    from engine.ad.guarded_accesses import guard_accesses
    from engine.ad.kept import keep
    from engine.ad.late import Late, late
    from engine.ad.lift import can_lift, lift
    from engine.ad.prepare import (
        inlined_size,
        prepare,
        replay_read_params,
        replay_written_params,
        replayed_params,
    )
    from engine.ad.record import record
    from engine.ad.reuse import Reuse, reuse
    from engine.ad.reverse import Adjoint, reverse
    from engine.ad.steering import Steering, routes, steering
    from engine.ad.stops import stops
    from engine.ad.tangent import tangent
    from engine.ad.threads import clashes
    from engine.ad.unassigned import watched
    from engine.ad.unit_cotangents import NonlinearGradient, nonlinear_gradients
    from engine.ad.unroll import unroll, write_out
    from engine.ad.watch import watch
    from engine.ir.touched import read_params, written_params

# Programs whose kernels were compiled before need none of them.
_late(
    __name__,
    {
        "engine.ad.accesses": "Access Accesses accesses",
        "engine.ad.cuts": "Cut Flow flows",
        "engine.ad.decisions": "decisions loops_by_floats",
        "engine.ad.derivative": "derivatives nonlinear_derivatives",
        "engine.ad.guarded_accesses": "guard_accesses",
        "engine.ad.kept": "keep",
        "engine.ad.late": "Late late",
        "engine.ad.lift": "can_lift lift",
        "engine.ad.prepare": (
            "inlined_size prepare replay_read_params replay_written_params replayed_params"
        ),
        "engine.ad.record": "record",
        "engine.ad.reuse": "Reuse reuse",
        "engine.ad.reverse": "Adjoint reverse",
        "engine.ad.steering": "Steering routes steering",
        "engine.ad.stops": "stops",
        "engine.ad.tangent": "tangent",
        "engine.ad.threads": "clashes",
        "engine.ad.unassigned": "watched",
        "engine.ad.unit_cotangents": "NonlinearGradient nonlinear_gradients",
        "engine.ad.unroll": "unroll write_out",
        "engine.ad.watch": "watch",
        "engine.ir.touched": "read_params written_params",
    },
)

__all__ = [
    "Access", "Accesses", "Adjoint", "Cut", "Flow", "Reuse", "Steering", "accesses", "can_lift",
    "clashes", "decisions", "derivatives", "flows", "guard_accesses", "inlined_size",
    "keep", "lift", "loops_by_floats", "prepare",
    "read_params", "record",
    "replay_read_params", "replay_written_params", "replayed_params", "reuse", "reverse", "routes",
    "Late", "late", "NonlinearGradient", "nonlinear_derivatives", "nonlinear_gradients",
    "steering", "stops",
    "tangent", "unroll", "watch", "watched", "write_out", "written_params",
]  # fmt: skip
