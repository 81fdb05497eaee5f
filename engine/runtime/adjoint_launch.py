"""`launch(adjoint=True)`: a kernel's adjoint, at the arguments' present values.

Backward passes of tapes run adjoints by their records (`engine.tape.records.launch`).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from engine.compile.backend import IN_ORDER
from engine.lang.types import is_float
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.guards import in_one_place
from engine.runtime.launch import bind_off_tape, run
from engine.runtime.launch_errors import fail
from engine.runtime.pack import Mismatch, as_array
from engine.runtime.plan_parts import FormRun
from engine.runtime.transfer import check_writable, clone

if TYPE_CHECKING:
    from engine.runtime.execute import Executable
    from engine.runtime.plan import Plan
    from engine.runtime.plan_parts import BoundLaunch


def asked(launch: BoundLaunch, adj_inputs: Any, adj_outputs: Any) -> list[Any]:
    """The gradients that an adjoint was given, one for each argument; None for its own.

    Raises LaunchError (E401) where the kernel has no adjoint that can be launched.
    """
    if launch.gathered is not None:
        raise fail("E401", f"the adjoint of kernel {launch.plan.kernel.key!r} cannot be launched: "
                   "structs in an array hold arrays",
                   help="record the launch on a Tape and use tape.backward")  # fmt: skip
    count = len(launch.plan.given)
    found = [*(adj_inputs or ()), *(adj_outputs or ())]
    if len(found) != count:
        outputs = count - launch.inputs
        found = [*(adj_inputs or [None] * launch.inputs), *(adj_outputs or [None] * outputs)]
    if len(found) != count:
        raise _wrong_number(launch.plan, count, len(found))
    return found


def _wrong_number(plan: Plan, count: int, got: int) -> Exception:
    return fail("E201", f"adjoint of kernel {plan.kernel.key!r} got the wrong number of arguments",
                f"expected {count} adjoints, got {got}")  # fmt: skip


def launch(launch: BoundLaunch, adjoints: list[Any]) -> None:
    """Launches a kernel's adjoint at the arguments' present values.

    adjoints: one for each argument; None for the argument's own gradient, if it has one.
    """
    plan, values, given_adjoints = launch.plan, launch.values, adjoints
    kernel = plan.kernel
    if plan.arguments is not None:
        adjoints = plan.split_adjoints(adjoints)
    if len(adjoints) != plan.count:
        raise _wrong_number(plan, plan.count, len(adjoints))
    given: list[array] = []
    names: list[str] = []
    taken = []  # which gradients the adjoint has to leave as they are
    for p, adj in zip(plan.params, adjoints, strict=True):
        if p.array_kind is None or not is_float(p.kind):
            continue
        primal = values[p.index]
        try:
            mine = primal is not None and primal.requires_grad
            found = primal.grad if adj is None and mine else as_array(adj, p.array_kind)
        except Mismatch as e:
            raise plan.mismatch(p, e) from None
        if found is None or found.size == 0:
            continue
        if primal is None or primal.shape != found.shape:
            raise fail("E207", f"kernel {kernel.key!r}, adjoint of {p.name!r}: wrong shape",
                       f"expected {None if primal is None else primal.shape}, "
                       f"got {found.shape}")  # fmt: skip
        given.append(found)
        names.append(p.name)
        taken.append(p.index in plan.only_written and not _is_consumed(primal, found))
        if in_one_place(found) and not taken[-1]:
            raise fail("E206", f"kernel {kernel.key!r}, adjoint of {p.name!r}: two elements lie in "
                       "one place, and the adjoint adds to them", help="pass a copy")  # fmt: skip
    wrt = frozenset(names)
    if not wrt & plan.variants.written:
        return
    journaled = plan.variants.journaled(plan.aliased(values))
    if plan.variants.needs_journal(wrt, journaled):
        lost = ", ".join(sorted(journaled)) or "its reads"
        raise fail(
            "E401", f"the adjoint of kernel {kernel.key!r} needs values that a launch overwrites",
            f"read and written: {lost}", help="record the launch on a Tape and use tape.backward",
        )  # fmt: skip
    # Nothing is written where it does not compile.
    adjoint = plan.adjoint(wrt, journaled)
    now = partial(_run, launch, adjoint, given, names, taken)
    if not plan.tables:
        if not events.deferred(now):
            now()
    elif not events.deferred(partial(_launch_again, launch, given_adjoints)):
        from engine.runtime.geometry.pools import deal

        now()
        deal(values)


def _launch_again(bound: BoundLaunch, adjoints: list[Any]) -> None:
    """Runs a captured adjoint of a launch that queries geometry, which may have been built anew."""
    values, blob = bind_off_tape(bound.plan, list(bound.given), bound.dim)
    launch(bound._replace(values=values, blob=blob), adjoints)


def _is_consumed(primal: array, gradient: array) -> bool:
    """Whether a gradient of what a kernel writes is used up, as in a backward pass."""
    own = primal.existing_grad
    return own is not None and own._ptr == gradient._ptr and not primal.retain_grad


def _run(
    launch: BoundLaunch, adjoint: Executable, gradients: list[array], names: list[str],
    taken: list[bool],
) -> None:  # fmt: skip
    plan, given = launch.plan, list(gradients)
    events.reading([a for k, a in zip(names, given, strict=True) if k in plan.variants.written])
    for k, a in enumerate(given):
        if taken[k]:
            given[k] = clone(a, requires_grad=False)  # the adjoint takes what is there
        else:
            check_writable(a)
            a.storage.before_write(a.lo, a.hi)
    # What the launch was is for the caller to know.
    journal = None if plan.backend.on_host or not plan.variants.in_order() else IN_ORDER
    blob = launch.blob + b"".join(a._packed for a in given)
    run(plan.running(FormRun(adjoint, None, journal), launch.dim, blob))
    for o in events.observers():
        o.differentiated(plan, list(zip(names, given, strict=True)))
