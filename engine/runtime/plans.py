"""Plans of kernels: loaded from an earlier process, or lowered and compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.compile.pipeline import Variants
from engine.logger import log_warning
from engine.runtime import modules, warm
from engine.runtime.device import get_device
from engine.runtime.forward_mode import warn_of_nonlinear_derivatives
from engine.runtime.plan import Plan

if TYPE_CHECKING:
    from engine.frontend import Captures
    from engine.ir import nodes as n
    from engine.ir.unassigned import UnassignedRead
    from engine.runtime.kernel import Kernel


def plan_of(kernel: Kernel, given: list[Any] | None = None) -> Plan:
    """The plan of a kernel as it is now, with its code compiled. Raises KernelError.

    given: the arguments of a launch on a tape, whose backward pass is compiled, too, where
    that takes no time of its own.
    """
    from engine.runtime.kernel import debugging, lower

    backend, debug = get_device().backend, debugging(kernel)
    # Of what is debugged other forms run, and what has no place is not kept.
    place = None if debug or backend.kind != "cpu" else warm.place_of(kernel)
    found = None if place is None else place.look()
    if found is not None:
        found.name, found.in_order = kernel.key, kernel.in_order
        return Plan(kernel, found, backend)
    captures: list[Captures] = []
    plan = Plan(kernel, Variants(lower(kernel, captures)), backend)
    plan.variants.name, plan.variants.debug = kernel.key, debug
    plan.variants.in_order = kernel.in_order
    warn_of_unassigned_reads(plan.variants.ir)
    warn_of_nonlinear_derivatives(plan.variants)
    modules.compile_group(kernel.module, kernel, plan, given)
    if place is not None:
        place.keep(kernel, plan.variants, captures)
    return plan


# Reads that were warned of.
_warned: set[UnassignedRead] = set()


def warn_of_unassigned_reads(ir: n.Function) -> None:
    """Warns, once for each place, where variables may be read before they have a value."""
    from engine.ir.nodes import callees

    for f in (ir, *callees(ir)):
        for read in f.unassigned:
            if read not in _warned:
                text = (
                    f"`{read.name}` may be read before it has a value: it is then zero, but "
                    "Python would raise an error. Assign it on every path, or once before: "
                    f"`{read.name} = ...`"
                )
                log_warning(text, at=(read.span.file, read.span.line))
                _warned.add(read)
