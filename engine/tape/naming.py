"""The user's name for an array: the expression that was passed."""

from __future__ import annotations

import ast

from engine.diagnostics.callers import argument_list, call_at, text
from engine.diagnostics.site import Site
from engine.runtime.plan import Plan
from engine.tape.records.record import Record

# The parameters of `launch` by position; those that are lists by name.
_LAUNCH = ("", "", "inputs", "outputs")


def variable(record: Record, index: int) -> str:
    """The expression of a launch's argument in the caller's text; empty where it is not known.

    index: of the parameter of the kernel as compiled; a field of a struct is named behind it.
    """
    if record.names is not None:
        return record.names[index]
    launch = record.launch
    return "" if launch is None else passed(launch._site, launch.plan, index)


def passed(site: Site | None, plan: Plan, index: int) -> str:
    """The same for a launch at a place in user code, on a tape or not."""
    call = call_at(site)
    if call is None or not _launches(call):
        return ""
    given = argument_list(call, _LAUNCH)
    names = plan.arguments
    first, _, rest = plan.params[index].name.partition(".")
    position = index if names is None else list(names.names).index(first)
    if given is None or position >= len(given):
        return ""
    found = text(given[position])
    return f"{found}.{rest}" if found and rest else found


def _launches(call: ast.Call) -> bool:
    f = call.func
    return (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) == "launch"
