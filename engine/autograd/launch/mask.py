"""Selects the pairs of a recorded launch that a mask names."""

from __future__ import annotations

from collections.abc import Mapping

from engine.autograd.variables.roles import Mask
from engine.diagnostics import Diagnostic, LaunchError
from engine.tape.records import LaunchRecord


def masked(
    record: LaunchRecord, mask: Mask | None, owner: Mapping[str, str]
) -> frozenset[tuple[str, str]] | None:
    """The pairs by names of the IR's arrays; None for all, and as in Warp for an empty mask.

    owner: for each array the one whose memory it is. Raises LaunchError for unknown names.
    """
    if not mask:
        return None
    ir = record.plan.variants.ir
    leaves = [p.name for p in ir.params]
    arguments = record.plan.arguments
    names = record.plan.given
    inputs = record.input_count or len(names)

    def found(which: str | int, offset: int, role: str) -> list[str]:
        """The leaves that an argument (or a leaf's own name) stands for."""
        if isinstance(which, str) and which in leaves:
            return [which]
        if isinstance(which, int):
            which = which + offset if which >= 0 else -1
        if arguments is not None:
            place = arguments.place(which)
            if place is not None:
                return [leaves[k] for k in place]
        elif isinstance(which, int) and 0 <= which < len(names):
            return [names[which]]
        raise LaunchError(
            Diagnostic(
                "E405",
                f"kernel {record.kernel.key!r} has no {role} {which!r}",
                ir.span,
                help=f"its arguments are {', '.join(names)}",
            )
        )

    offset = inputs if inputs < len(names) else 0
    return frozenset(
        (owner.get(a, a), owner.get(b, b))
        for i, o in mask
        for a in found(i, 0, "input")
        for b in found(o, offset, "output")
    )
