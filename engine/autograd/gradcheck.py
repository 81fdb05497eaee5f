"""`gradcheck`: the gradient of one kernel launch, or of a function, against differences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from engine.autograd.function_check import check_function_subject
from engine.autograd.function_jacobian import function_subject
from engine.autograd.jacobian import jacobian, jacobian_fd, relaunched
from engine.autograd.results import LaunchResult, PairResult, TapeResult, entry_name
from engine.autograd.subject import LaunchSubject, Mask, Pair, launch_subject, owners
from engine.autograd.summary import summary
from engine.autograd.tape_check import Options, run_checks
from engine.autograd.tolerance import Tolerance, whole
from engine.diagnostics import Diagnostic, GradcheckError
from engine.diagnostics.site import call_span
from engine.runtime.device import DeviceLike
from engine.runtime.kernel import Kernel

Function = Kernel | Callable[..., Any]
_OVERLAP = "overlap in memory"


def gradcheck(
    function: Function,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
    input_output_mask: Mask | None = None,
    device: DeviceLike = None,
    max_blocks: int = 0,
    block_dim: int = 256,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    restore_inputs: bool = True,
) -> bool:
    """Compares the gradient of a kernel or function with finite differences.

    A kernel is checked as `gradcheck_tape` checks a recorded launch; every array that it
    reads or writes counts, whether it was named as input or output. A function is run at
    displaced inputs, and each of its launches is checked as well.

    function, dim, inputs, outputs, input_output_mask, device: as for `jacobian`.
    eps, atol, rtol: step and tolerances of |ad - fd| <= atol + rtol |fd|; each that is left
    out is chosen by scale (see `engine.autograd.tolerance`). raise_exception raises
    GradcheckError (a ValueError) where something is wrong or nothing could be checked.
    max_inputs_per_var, max_outputs_per_var: how many entries of each array to look at one by
    one; all if <= 0 (of large arrays random directions, which cover them all).
    plot_relative_error, plot_absolute_error draw the errors. show_summary prints a table.
    max_blocks and block_dim mean nothing on the CPU; nor does restore_inputs: arrays and
    gradients are always left bit for bit as they were.

    Returns True if something was checked and nothing was wrong. Raises also what
    `jacobian` raises.
    """
    del max_blocks, block_dim, restore_inputs
    options = Options(
        Tolerance(eps, atol, rtol),
        max_inputs=whole(max_inputs_per_var, "max_inputs_per_var"),
        max_outputs=whole(max_outputs_per_var, "max_outputs_per_var"),
        all_entries=True,
    )  # fmt: skip
    given = (function, dim, inputs, outputs, input_output_mask, device)
    result = _checked(*given, options)
    if show_summary:
        sys.stdout.write(summary(result))
    if plot_relative_error or plot_absolute_error:
        from engine.autograd.plot import plot_differences

        sparse = _large(result)
        plot_differences(
            jacobian(*given, sparse=sparse), jacobian_fd(*given, eps=eps, sparse=sparse),
            relative=plot_relative_error, absolute=plot_absolute_error,
        )  # fmt: skip
    if raise_exception and not result.passed:
        raise _error(result)
    return result.passed


def check_function(
    function: Function,
    dim: Any = None,
    inputs: Sequence[Any] | None = None,
    outputs: Sequence[Any] | None = None,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    input_output_mask: Mask | None = None,
    device: DeviceLike = None,
    max_inputs: int = -1,
    max_outputs: int = -1,
    seed: int = 0,
) -> TapeResult:
    """What `gradcheck` finds, as data: the kernel's launch, or the function and its launches.

    The first of the result's launches is the kernel or (with index -1) the function.
    """
    options = Options(Tolerance(eps, atol, rtol), (), (), max_inputs, max_outputs, seed,
                      all_entries=True)  # fmt: skip
    return _checked(function, dim, inputs, outputs, input_output_mask, device, options)


def _checked(
    function: Function, dim: Any, inputs: Any, outputs: Any, mask: Mask | None,
    device: DeviceLike, options: Options,
) -> TapeResult:  # fmt: skip
    if not isinstance(function, Kernel):
        return check_function_subject(function_subject(function, inputs, outputs), mask, options)
    subject = launch_subject(function, dim, inputs, outputs, device)
    pairs = subject.roles.pairs(mask)
    result = check_record(subject, None if mask is None else pairs, options)
    if any(_OVERLAP in launch.skipped for launch in result.launches):
        by_index = [p.key for p in pairs]
        return check_function_subject(relaunched(subject), by_index, options)
    return result


def check_record(
    subject: LaunchSubject, pairs: Sequence[Pair] | None, options: Options
) -> TapeResult:
    """The check of one launch; pairs: None for all that it reads and writes."""
    if pairs is not None:
        options = replace(options, masks={subject.record.name: _leaf_mask(subject, pairs)})
    tape: Any = SimpleNamespace(records=[subject.record], index=0)
    return run_checks(tape, options)


def _large(result: TapeResult) -> bool:
    """Whether random directions took the place of entries."""
    return any(p.directional and not p.checked for launch in result.launches for p in launch.pairs)


def _leaf_mask(subject: LaunchSubject, pairs: Sequence[Pair]) -> Mask:
    return [
        (a, b)
        for p in pairs
        for a in owners(subject, p.input, False)
        for b in owners(subject, p.output, True)
    ]


def _error(result: TapeResult) -> GradcheckError:
    found = [
        _wrong(launch, p)
        for launch in result.launches
        for p in launch.pairs
        if p.verdict in ("fail", "nan")
    ]
    if found:
        return GradcheckError(*found)
    notes = [f"{u.what}: {u.reason}" for u in result.unchecked]
    notes += [
        f"d {p.output} / d {p.input}: {p.verdict}, {p.reason or 'nothing was compared'}"
        for launch in result.launches
        for p in launch.pairs
    ]
    return GradcheckError(
        Diagnostic("E404", "nothing could be checked", call_span(), notes=tuple(notes[:12]))
    )


def _wrong(launch: LaunchResult, p: PairResult) -> Diagnostic:
    what = "is not finite" if p.verdict == "nan" else "is wrong"
    worst = ""
    if p.worst is not None and p.worst.row >= 0:
        worst = f"; {entry_name(p)} is {p.worst.oracle:.7g}, the adjoint gives {p.worst.ad:.7g}"
    role = "function" if launch.index < 0 else "kernel"
    suspects = launch.stops or launch.culprits
    place = suspects[0][1] if suspects else launch.span
    return Diagnostic(
        "E403",
        f"{role} {launch.kernel!r}: the gradient of {p.output!r} with respect to {p.input!r} "
        f"{what}{worst}",
        place,
    )
