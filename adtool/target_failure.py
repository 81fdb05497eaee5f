"""The outcome of a target that ended with an exception."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import engine
from adtool.checking import refused
from adtool.outcome import Outcome
from adtool.packages import as_module, not_installed
from adtool.raised import (
    chain_of,
    exited,
    file_of,
    kind_of,
    lines_of,
    message_of,
    not_started,
    place_of,
    shown,
    text_of,
)
from adtool.sources import WARP
from adtool.target import TargetError
from engine.diagnostics import Diagnostic

if TYPE_CHECKING:
    from adtool.job import Job
    from adtool.program_modules import ProgramModules
    from engine.autograd import Fact, Ungraded

_RUN = "make the script run to its end with plain `python` first"


def outcome_of(
    error: BaseException, modules: ProgramModules, job: Job, facts: Sequence[Fact] = ()
) -> Outcome:
    """How the target ended. facts: what was seen that may be why."""
    if isinstance(error, SystemExit):
        return exited(error)
    if isinstance(error, TargetError):
        return not_started(error)
    if isinstance(error, engine.EngineError) and _is_ours(error):
        found = refused(error, _refusal(error))
        got_none = any("got None" in d.message for d in error.diagnostics)
        return replace(found, help=_of_gradient(error, facts) if got_none else "")
    help = (
        modules.explained(error) or as_module(error, file_of(error), job) or not_installed(error)
        or _of_gradient(error, facts) or _of_notebook(error) or _RUN
    )  # fmt: skip
    missing = shown(getattr(error, "name", "")).strip("'")
    if isinstance(error, ModuleNotFoundError) and missing.partition(".")[0] == WARP:
        help = f"--alias {WARP} lets it use the engine instead of Warp"
    return Outcome(
        "raised",
        f"the script raised {kind_of(error)}{place_of(error)}",
        help,
        text_of(error),
    )


def _of_notebook(error: BaseException) -> str:
    """What to do about a line of a notebook that only a notebook can run."""
    if isinstance(error, NameError) and message_of(error).startswith("name 'get_ipython'"):
        return "it was a notebook: remove its lines with % or !, which call get_ipython()"
    return ""


def _refusal(error: engine.EngineError) -> str:
    """What was refused: the script is not at fault where there is no compiler."""
    if {d.code for d in error.diagnostics} == {"E301"}:
        return f"the engine cannot compile the kernels of the script, first{place_of(error)}"
    return f"the engine refused an operation of the script{place_of(error)}"


def _is_ours(error: engine.EngineError) -> bool:
    """Whether the engine made an error: a program may raise it with anything in it."""
    found = getattr(error, "diagnostics", None)
    return isinstance(found, tuple) and all(isinstance(d, Diagnostic) for d in found)


def _of_gradient(error: BaseException, facts: Sequence[Fact]) -> str:
    """What to do about a gradient that is None, where the exception may come of it."""
    from engine.autograd import Ungraded

    ungraded = [f for f in facts if isinstance(f, Ungraded)]
    for e in chain_of(error):
        lines = lines_of(e)
        none = isinstance(e, (AttributeError, TypeError)) and "NoneType" in message_of(e)
        for u in reversed(ungraded):
            at = range(u.site.line, (u.site.end_line or u.site.line) + 1)
            here = any(file == u.site.file and line in at for file, line in lines)
            if here and (none or isinstance(e, (KeyError, engine.EngineError))):
                return _cure(u)
        if none and ungraded and any(file == ungraded[-1].site.file for file, _ in lines):
            return f"{_RUN}; {_cure(ungraded[-1])}"  # it read it elsewhere
    return ""


def _cure(u: Ungraded) -> str:
    made = "" if u.made is None else f" (made at {u.made})"
    return (
        f"there is no gradient `{u.text}` at {u.site}, because `{u.array}`{made} has no "
        f"requires_grad: create `{u.array}` with requires_grad=True"
    )
