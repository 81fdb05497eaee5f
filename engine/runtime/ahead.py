"""Compiles kernels that a launch on a tape makes likely, in parallel to the one it needs.

A backward pass mostly follows, and compilers run side by side: a program that records a kernel
waits for the slowest of its forms, not for one after the other. What cannot be compiled so is left
to those who ask for it, who are told why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import engine.ad as ad
from engine.compile.forms import Form, Names
from engine.compile.pipeline import LONG, Request, prefetch
from engine.diagnostics import EngineError
from engine.runtime import events
from engine.runtime.array import array

if TYPE_CHECKING:
    from engine.runtime.plan import Plan

_BOTH: tuple[Form, ...] = ("recorded", "adjoint")


def requests(plan: Plan, given: Sequence[Any]) -> list[Request]:
    """The forms that a recorded launch and its backward pass take, besides the kernel as written.

    given: the arguments, which nobody has checked. Nothing where they leave it open.
    """
    if not (plan.plain and len(given) == plan.count and _may(plan)):
        return []
    for p in plan.array_params:
        a = given[p.index]
        if a is not None and not (isinstance(a, array) and a._ir is p.array_kind):
            return []
    values = list(given)
    try:
        enabled = plan.kernel.enable_backward
        activity = plan.activity(plan.mask(values), plan.aliased(values), enabled)
    except EngineError:  # of the derivative
        return []
    if not activity.useful:
        return []
    those = _BOTH if activity.saves_journal else _BOTH[1:]
    return _those(plan, those, activity.wrt, activity.journaled)


def with_adjoint(plan: Plan, wrt: Names, journaled: Names) -> None:
    """Compiles the form that writes a journal together with that which reads it."""
    there = plan.variants.is_there(plan.backend, "recorded", (wrt, journaled))
    if not there and _may(plan):
        compiled(_those(plan, _BOTH, wrt, journaled))


def compiled(what: Sequence[Request]) -> bool:
    """Whether all of it could be compiled; of an error nothing is said."""
    try:
        prefetch(what)
    except EngineError:
        return False
    return True


def _may(plan: Plan) -> bool:
    """Whether compilers run side by side, and these forms are those that will run.

    Of derivatives that take minutes their author is told first.
    """
    return (
        plan.backend.kind == "cpu" and not (events.sanitizers() or plan.variants.debug)
        and ad.inlined_size(plan.variants.ir) < LONG
    )  # fmt: skip


def _those(plan: Plan, forms: Sequence[Form], wrt: Names, journaled: Names) -> list[Request]:
    return [(plan.backend, plan.variants, form, wrt, journaled) for form in forms]
