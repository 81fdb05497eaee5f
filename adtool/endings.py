"""Words for the ways in which a target's run can end badly."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import engine
from adtool import status
from adtool.loops import loops_of
from adtool.outcome import Outcome
from adtool.places import short, shortened
from adtool.report import Failure
from adtool.sources import WARP, WARP_NAME
from engine.autograd import Undifferentiated, Unwatched

# Folders whose frames are not the user's.
_OWN = tuple(
    os.path.join(folder, "") for folder in (Path(__file__).parent, Path(engine.__file__).parent)
)

_MEANING = {
    "SIGSEGV": "segmentation fault",
    "SIGFPE": "arithmetic trap",
    "SIGABRT": "abort",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGKILL": "killed from outside",
    "SIGTERM": "asked to end",
}

_HELP = {
    "SIGKILL": "if memory runs out, the system kills the largest process: run the script on a "
    "smaller problem",
    "SIGSEGV": "the usual cause is an access outside an array: `adtool check` watches launches "
    "and reports the place",
}


def reported(outcome: Outcome) -> Failure | None:
    """What the child itself said went wrong; None after a normal end."""
    if outcome.kind == "done":
        return None
    message = outcome.message or "the script interrupted the run"
    return Failure(
        outcome.kind, shortened(message), shortened(outcome.help), shortened(outcome.detail),
        outcome.problems,
    )  # fmt: skip


_ANOTHER_WAY = {
    "PyTorch": "test these gradients with torch.autograd.gradcheck",
    "JAX": "test these gradients with jax.test_util.check_grads",
    WARP_NAME: f"run the script on the engine, with --alias {WARP}",
}
# Frameworks with gradients that adtool does not check, whatever a program does with them.
UNCHECKED = {
    "Paddle": "paddle", "Numba": "numba", "TensorFlow": "tensorflow", "CuPy": "cupy",
    "Taichi": "taichi", "MindSpore": "mindspore",
}  # fmt: skip
_CHECKS = (
    "adtool checks tapes of engine and Warp, and gradients that you write yourself for functions "
    "of PyTorch and JAX"
)
_LOOPS = 4  # of a kernel, that are named
_FUNCTIONS = 4  # that are named
_SO_FAR = "; adtool reports the checks up to then"


def timed_out(last: status.Status, limit: float, some: bool = False) -> Failure:
    """The time limit passed. some: whether something was checked by then."""
    return Failure(
        "timeout",
        f"stopped after the time limit of {limit:g} s {where(last)}{_loops(last)}{_SO_FAR * some}",
        "raise the limit with --timeout SECONDS (0: no limit), or use a smaller problem"
        + (", or check fewer entries with --max-inputs and --max-outputs"
           if last.phase == status.CHECK else ""),
    )  # fmt: skip


def untouched(functions: Sequence[str], what: str) -> Failure:
    """All that there was to check are functions of installed packages. what: `script` or `test`."""
    return Failure(
        "no-tape",
        f"nothing was checked: the {what} made no tape, and it called functions with custom "
        f"gradients only from installed packages: {_listed(functions)}",
        "use --kernel NAME to check one of them",
    )


def undifferentiated(functions: Sequence[Undifferentiated]) -> Failure:
    """All that there was to check are functions of which no call wanted a gradient."""
    why, help = _NO_GRADIENT[functions[0].why]
    others = _listed([f"`{f.name}`" for f in functions[1:]])
    also = f"; the same holds for {others}" if others else ""
    return Failure(
        "no-gradient",
        f"nothing was checked: {_called(functions[0])}, but {why}, so there is no gradient to "
        f"check{also}",
        help,
    )


def not_wanted(functions: Sequence[Undifferentiated]) -> tuple[str, ...]:
    """Tells of such functions where there was something else to check.

    A program that turns gradients off knows that it does.
    """
    why, help = _NO_GRADIENT["inputs"]
    asked = [f for f in functions if f.why == "inputs"]
    return tuple(f"{_called(f)}, and was not checked: {why}; {help}" for f in asked[:_FUNCTIONS])


def _called(f: Undifferentiated) -> str:
    at = "" if f.site is None else f" at {short(f.site.file)}:{f.site.line}"
    often = "" if f.calls == 1 else f" {f.calls:,} times{', first' * bool(at)}"
    return f"function `{f.name}` was called{often}{at}"


_NO_GRADIENT = {
    "inputs": (
        "no argument requires a gradient",
        "create an argument with requires_grad=True, or call its requires_grad_() before the call",
    ),
    "mode": (
        "gradients are turned off there (torch.no_grad, torch.inference_mode)",
        "call it outside of torch.no_grad() and torch.inference_mode(), with an argument that has "
        "requires_grad=True",
    ),
}


def unwatched(seams: Sequence[Unwatched], told: bool) -> Failure:
    """Nothing was found to check, in a program with a framework that cannot be watched.

    told: whether a finding says what cannot be watched, and what to do.
    """
    if told:
        first = seams[0]
        return Failure(
            "unwatched",
            f"nothing was checked: adtool cannot watch {first.framework} {first.version}",
            "the warning G012 says what it cannot watch, and what to do",
        )
    return Failure(
        "unwatched",
        f"nothing was checked: {not_watched(seams)}",
        unwatched_help(seams[0].framework),
    )


def unimported(frameworks: Sequence[tuple[str, str]], what: str) -> Failure:
    """There was no tape, and the import of frameworks failed. frameworks: names, and why."""
    each = "; ".join(f"the import of {name} failed ({why})" for name, why in frameworks)
    return Failure(
        "no-tape",
        f"nothing was checked: the {what} made no tape, and {each}",
        f"see that the {what} can import {' and '.join(name for name, _ in frameworks)}: "
        "`adtool doctor` says what is installed",
    )


def unwatched_help(framework: str) -> str:
    """What to do about a framework that cannot be watched."""
    return (
        "use another version of the framework, or a newer adtool (docs/frameworks.md has the "
        "tested versions, and `adtool doctor` tests the installed one); until then, "
        + _ANOTHER_WAY[framework]
    )


def not_watched(seams: Sequence[Unwatched]) -> str:
    """Which seams of a framework cannot be watched, and why."""
    first = seams[0]
    each = "; ".join(f"{s.seam} ({s.why})" for s in seams if s.framework == first.framework)
    return f"adtool cannot watch {first.framework} {first.version}: {each}"


def uncalled(frameworks: Sequence[str], what: str) -> Failure:
    """There was no tape, and nothing to check of the frameworks that were imported.

    what: `script` or `test`. frameworks: their names; Warp has tapes, and no such functions.
    """
    named = _with_functions(frameworks)
    none = "recorded no tape" if what == "test" else "made no tape"
    if frameworks and all(name in UNCHECKED for name in frameworks):
        listed = " and ".join(frameworks)
        return Failure(
            "no-tape",
            f"nothing was checked: adtool does not check gradients of {listed}, and the {what} "
            f"{none} of engine or Warp",
            f"{_CHECKS} (docs/frameworks.md); test those of {listed} against differences",
        )  # fmt: skip
    if not named:
        module = "warp" if WARP_NAME in frameworks else "engine"
        return Failure(
            "no-tape", f"nothing was checked: the {what} {none}",
            f"record the launches to check: `with {module}.Tape() as tape: ...`",
        )  # fmt: skip
    return Failure(
        "no-tape",
        f"nothing was checked: the {what} calls no handwritten gradient",
        f"adtool checks gradients that you write yourself for functions of {named}; it does not "
        f"check the gradients of {named} {'themselves' if ' and ' in named else 'itself'}",
    )


def no_launch(
    command: str, frameworks: Sequence[str] = (), script: str = "this script"
) -> tuple[str, str]:
    """The message and the help of a command that needs a launch on a tape, and found none.

    command: its name. frameworks: that the program uses in place of the engine. script: its name.
    """
    if WARP_NAME in frameworks:
        return (
            "no launch was recorded on a tape of the engine",
            f"the script imports Warp: --alias {WARP} lets it use the engine instead",
        )
    if frameworks:
        named = _with_functions(frameworks)
        return (
            f"`adtool {command}` is only for tapes of engine or Warp; {script} uses "
            + (named or " and ".join(frameworks)),
            f"`adtool check` checks functions of {named} with handwritten gradients"
            if named else _CHECKS,
        )  # fmt: skip
    return (
        "no launch was recorded on a tape",
        "move the launches into the block of `with engine.Tape() as tape:`",
    )


def _with_functions(frameworks: Sequence[str]) -> str:
    """Those whose functions may have handwritten gradients, as words."""
    return " and ".join(name for name in frameworks if name not in (WARP_NAME, *UNCHECKED))


def beside(functions: Sequence[str]) -> str:
    """Tells of functions of installed packages where there was something else to check."""
    return (
        f"adtool does not check functions of installed packages: {_listed(functions)}; use "
        "--kernel NAME to check one"
    )


def _listed(functions: Sequence[str]) -> str:
    listed = ", ".join(functions[:_FUNCTIONS])
    more = len(functions) - _FUNCTIONS
    return f"{listed} and {more} more" if more > 0 else listed


def interrupted(last: status.Status, signal_name: str, some: bool = False) -> Failure:
    """The user (Ctrl-C) or the system asked the tool to stop. some: as for `timed_out`."""
    ending = _SO_FAR if some else "; there is no report"
    return Failure(
        "interrupted", f"interrupted by {signal_name} {where(last)}{_loops(last)}{ending}"
    )


def removed(folder: str) -> Failure:
    """The folder that the results go to is gone."""
    return Failure(
        "environment",
        f"the temporary folder of the run, {folder}, was removed while the script ran",
        "let the script remove only its own temporary files",
    )


def died(code: int, last: status.Status, crash: str) -> Failure:
    """The child ended without an outcome: a fatal signal, or os._exit."""
    if code >= 0:
        if last.phase == status.START:
            return Failure(
                "internal", f"the child process could not start (status {code})",
                "its error message is above",
            )  # fmt: skip
        if last.phase == status.END:
            return Failure(
                "environment",
                "the results could not be written to the temporary folder",
                "set TMPDIR to a writable folder with free space; the script must not limit its "
                "files (resource.setrlimit) or change its root or user",
            )
        return Failure(
            "vanished",
            f"the process ended suddenly with status {code} {where(last)}",
            "`os._exit`, `os.exec...` or `exit` in native code ended the process before adtool "
            "could check: let the script end normally",
        )
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    meaning = f" ({_MEANING[name]})" if name in _MEANING else ""
    line = _crash_line(crash)
    python = f"; Python was at {short(line)}"
    if not line or line == f"{last.file}:{last.line}":
        python = ""  # not known, or said already
    return Failure(
        "killed",
        f"killed by {name}{meaning} {where(last)}{python}",
        _HELP.get(name, ""),
    )


def where(last: status.Status) -> str:
    """What ran last: "in launch 3 ..." or "... no launch yet"."""
    if last.phase == status.CHECK:
        tape = f"while checking tape {last.tape}" + f" of {last.tapes}" * (last.tapes > 1)
        if last.launch < 0:
            return f"{tape} as a whole"
        kernel = f", kernel `{last.kernel}`" if last.kernel else ""
        return f"{tape}, launch {last.launch}{kernel}"
    if last.phase == status.END:
        return "after the checks"
    if not last.launches:
        return "while the script ran, no launch yet"
    site = f" (called at {short(last.file)}:{last.line})" if last.file else ""
    return (
        f"while the script ran; the last launch was number {last.launches - 1}, "
        f"kernel `{last.kernel}`{site}"
    )


def _loops(last: status.Status) -> str:
    """The loops of the kernel that a script launched last, one of which may never end."""
    if last.phase != status.SCRIPT or not last.defined:
        return ""
    found = loops_of(last.defined, last.at)
    if not found:
        return ""
    kind = found[0][0]
    places = [f"{short(last.defined)}:{line}" for _, line in found[:_LOOPS]]
    more = f" and {len(found) - _LOOPS} more" if len(found) > _LOOPS else ""
    return f", with {f'a `{kind}` loop' if len(found) == 1 else f'`{kind}` loops'} at " + (
        ", ".join(places) + more
    )


def _crash_line(crash: str) -> str:
    """The innermost line of the user's in what faulthandler wrote, as FILE:LINE."""
    for file, line in re.findall(r'^  File "(.*)", line (\d+) in ', crash, re.MULTILINE):
        if not file.startswith((*_OWN, "<")):
            return f"{file}:{line}"
    return ""
