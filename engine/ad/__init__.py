"""Passes over the IR: what differentiates kernels, and what gets them ready for it."""

from engine.ad.clashes import clashes
from engine.ad.guard import guard
from engine.ad.lift import lift
from engine.ad.prepare import (
    prepare,
    read_params,
    replay_read_params,
    replayed_params,
    written_params,
)
from engine.ad.record import record
from engine.ad.reverse import Adjoint, reverse
from engine.ad.tangent import tangent

__all__ = [
    "Adjoint", "clashes", "guard", "lift", "prepare", "read_params", "record",
    "replay_read_params", "replayed_params", "reverse", "tangent", "written_params",
]  # fmt: skip
