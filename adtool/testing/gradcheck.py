"""The fixture `gradcheck`: checks one kernel, function or tape where a test calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

import engine
from adtool.exits import ToolError
from adtool.faults import FaultLog, only
from adtool.in_process import Observation, Terms, outcome_of, report_of
from adtool.job import CheckOptions
from adtool.render.verdict import verdict_text
from adtool.report import Report
from adtool.testing.settings import checked, terms_with
from engine.autograd import TapeResult, check_function, check_tape
from engine.diagnostics import definition_of

__engine_tool__ = True  # places of errors and launches are those of who called

# What the check of a single launch or function has no use for.
_OF_TAPES = ("kernels", "skip_kernels", "end_to_end")
_OF_LAUNCHES = ("dim", "inputs", "outputs", "device", "input_output_mask")


class Gradcheck:
    """What the fixture gives. name: of the test. base: what the project's settings say."""

    def __init__(self, name: str, base: Terms, observation: Observation) -> None:
        self._name = name
        self._base = base
        self._observation = observation

    def __call__(
        self,
        what: engine.Kernel | engine.Tape | Callable[..., Any],
        dim: Any = None,
        inputs: Sequence[Any] | None = None,
        outputs: Sequence[Any] | None = None,
        *,
        device: Any = None,
        input_output_mask: Any = None,
        **options: Any,
    ) -> Report:
        """Checks the gradient of a kernel, a function of arrays, or what a tape recorded.

        dim, inputs, outputs, device, input_output_mask: as for `engine.autograd.gradcheck`; not
        with a tape. options: eps, atol, rtol, max_inputs, max_outputs, seed, gate, select, ignore,
        bounds, memory, overwrites as for `adtool check`; order=2 with a kernel or a tape; kernels,
        skip_kernels, end_to_end with a tape. What is left out is as `[tool.adtool]` says.

        Raises AssertionError, with the findings as its text, where one is at the gate or nothing
        could be checked; TypeError for arguments that do not fit.
        """
        __tracebackhide__ = True
        call = {
            "dim": dim, "inputs": inputs, "outputs": outputs, "device": device,
            "input_output_mask": input_output_mask,
        }  # fmt: skip
        self._refuse_misfits(what, call, options)
        try:
            checked(options)
        except ToolError as error:
            _refuse(error.message, error.help)
        terms = terms_with(self._base, options)
        if isinstance(what, engine.Tape):
            report = self._of_tape(what, terms)
        else:
            report = self._of_function(what, call, terms)
        if not report.ok:
            raise AssertionError("adtool gradcheck\n\n" + verdict_text(report))
        return report

    def _of_tape(self, tape: engine.Tape, terms: Terms) -> Report:
        capture = self._observation.capture
        source = (None if capture is None else capture.of(tape)) or tape
        found = (r.kernel for r in tape.records)
        kernels = tuple(dict.fromkeys(k.key for k in found if k is not None))
        return report_of(
            self._name, terms,
            lambda: outcome_of(
                lambda: check_tape(source, **terms.options.of_tape()), kernels, "the tape"
            ),
            lambda: self._observation.faults_of(kernels),
        )  # fmt: skip

    def _of_function(self, function: Any, call: dict[str, Any], terms: Terms) -> Report:
        o = terms.options
        noted = FaultLog(None)
        kernel = isinstance(function, engine.Kernel)

        def check() -> TapeResult:
            if kernel and o.bounds:
                _launch_copies(function, call)
            found = check_function(
                function, **call, eps=o.eps, atol=o.atol, rtol=o.rtol, max_inputs=o.max_inputs,
                max_outputs=o.max_outputs, seed=o.seed, order=o.order if kernel else 1,
            )  # fmt: skip
            return found if kernel else _placed(found, function)

        name = function.key if kernel else _name_of(function)
        with only(noted):
            report = report_of(
                self._name, terms, lambda: outcome_of(check, (name,), f"`{name}`"),
                lambda: noted.seen, noted,
            )  # fmt: skip
        return report if kernel else _worded(report, name)

    def _refuse_misfits(self, what: Any, call: dict[str, Any], options: dict[str, Any]) -> None:
        __tracebackhide__ = True
        if isinstance(what, engine.Tape):
            for name in _OF_LAUNCHES:
                if call[name] is not None:
                    _refuse(f"{name} does not work with tapes", "the launches are on the tape")
        elif callable(what) or isinstance(what, engine.Kernel):
            for name in _OF_TAPES:
                if name in options:
                    _refuse(
                        (f"{name} works only with tapes"), "record the launches, and pass the tape"
                    )
            if not isinstance(what, engine.Kernel) and options.get("order", 1) != 1:
                _refuse(
                    ("order works only with kernels and tapes"), "pass the tape that it records"
                )
        else:
            _refuse(f"cannot check {what!r}", "pass a kernel, a function of arrays, or a Tape")


def observation_of(terms: Terms) -> Observation:
    """What sees the tapes of a test that asks for the fixture."""
    o = terms.options
    return Observation(CheckOptions(bounds=o.bounds, memory=o.memory, overwrites=o.overwrites))


def _launch_copies(kernel: engine.Kernel, call: dict[str, Any]) -> None:
    """Launches a kernel on copies of its arrays, for who looks at what launches do wrong.

    Not where an argument may hold arrays of its own.
    """
    known: dict[int, Any] = {}

    def copied(value: Any) -> Any:
        if isinstance(value, engine.array):
            return known.setdefault(id(value), engine.clone(value))
        return value

    given = [*(call["inputs"] or ()), *(call["outputs"] or ())]
    if any(hasattr(type(v), "__annotations__") for v in given if not isinstance(v, engine.array)):
        return
    with suppress(engine.EngineError):  # the check says so, too
        engine.launch(
            kernel, call["dim"], list(map(copied, call["inputs"] or ())),
            list(map(copied, call["outputs"] or ())), device=call["device"],
        )  # fmt: skip


def _placed(found: TapeResult, function: Any) -> TapeResult:
    """The result for a function, placed where it is defined; at its launches if one is wrong."""
    own, *inner = found.launches
    if any(p.verdict in ("fail", "nan") for launch in inner for p in launch.pairs):
        return replace(found, launches=tuple(inner))
    code = getattr(function, "__code__", None) or getattr(
        getattr(function, "__call__", None), "__code__", None  # noqa: B004
    )  # fmt: skip
    if code is not None:
        own = replace(own, span=definition_of(code))
    return replace(found, launches=(own, *inner))


def _worded(report: Report, name: str) -> Report:
    """Findings about a function itself, which is no launch, in words that say so."""

    def said(text: str) -> str:
        return text.replace(" in launch -1 of tape 0", "").replace(
            f"kernel `{name}`", f"function `{name}`"
        )

    findings = tuple(
        replace(f, message=said(f.message)) if f.launch == -1 and f.kernel == name else f
        for f in report.findings
    )
    return replace(report, findings=findings)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _refuse(message: str, help: str = "") -> NoReturn:
    __tracebackhide__ = True
    raise TypeError(f"gradcheck: {message}" + (f"; {help}" if help else ""))
