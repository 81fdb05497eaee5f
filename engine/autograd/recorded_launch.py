"""Jacobians and the check of one launch that a tape recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.autograd.jacobians.collection import Jacobians
from engine.autograd.jacobians.of_launch import by_adjoint, by_differences
from engine.autograd.jacobians.shares import ALL, Share
from engine.autograd.launch.call import LaunchCall, launch_roles
from engine.autograd.launch.recorded_arguments import NotRepeatable
from engine.autograd.results import TapeResult
from engine.autograd.tape.check import check_call
from engine.autograd.tape.options import Options
from engine.autograd.variables.roles import Pair
from engine.diagnostics import Diagnostic, EngineError, TapeError
from engine.tape.records import LaunchRecord


def recorded_jacobians(
    record: LaunchRecord, inputs: Sequence[str] = (), outputs: Sequence[str] = (), *,
    differences: bool = False, share: Share = ALL,
) -> Jacobians:  # fmt: skip
    """Sparse Jacobians of a recorded launch, at the values that its arguments had.

    inputs, outputs: names of arguments, all where there are none. differences: by
    differences in float64, else by the adjoint. share: which derivatives to evaluate; where that
    is a part of them it takes those, and the matrices are of no use. Raises TapeError (E401) where
    the launch cannot be repeated, and what `jacobian` raises.
    """
    call = LaunchCall(record, launch_roles(record))
    pairs = _chosen(call, inputs, outputs)
    try:
        found = (
            by_differences(call, pairs, None, -1, True, share)
            if differences
            else by_adjoint(call, pairs, -1, True, share)
        )
    except NotRepeatable as reason:
        raise TapeError(
            Diagnostic("E401", f"this launch of kernel {record.name!r} cannot be repeated: "
                       f"{reason}", record.site)
        ) from None  # fmt: skip
    variables = {p.key: (p.input, p.output) for p in pairs}
    return Jacobians(found.sparse, call.roles.metadata(), variables)


def check_recorded(
    record: LaunchRecord, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> TapeResult:
    """The check of one recorded launch, as `check_tape` does it."""
    call = LaunchCall(record, launch_roles(record))
    pairs = _chosen(call, inputs, outputs)
    return check_call(call, pairs, Options(all_entries=True))


def _chosen(call: LaunchCall, inputs: Sequence[str], outputs: Sequence[str]) -> list[Pair]:
    """The pairs asked for. Errors point to the launch, and not to whoever looks at it."""
    try:
        return call.roles.chosen(inputs, outputs)
    except EngineError as error:
        site = call.record.site
        raise type(error)(*(replace(d, span=site) for d in error.diagnostics)) from None
