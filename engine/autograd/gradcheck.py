"""`gradcheck`: the gradient of one kernel launch, or of a function, against differences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from engine.autograd.comparison.tolerance import Tolerance, flags, whole
from engine.autograd.function.call import function_call, relaunched
from engine.autograd.function.check import CheckedFunction, check_function_call
from engine.autograd.function.recorded_call import conclude
from engine.autograd.jacobian import ByAdjoint, ByDifferences, evaluate
from engine.autograd.launch.call import launch_call
from engine.autograd.launch.recorded_arguments import overlaps
from engine.autograd.plots.differences import plot_differences
from engine.autograd.results import LaunchResult, PairResult, TapeResult, entry_name
from engine.autograd.summary import summary
from engine.autograd.tape.check import check_call, check_order
from engine.autograd.tape.options import Options
from engine.autograd.variables.roles import Mask
from engine.diagnostics import Diagnostic, GradcheckError
from engine.diagnostics.site import call_span
from engine.runtime.device import DeviceLike
from engine.runtime.kernel import Kernel

Function = Kernel | Callable[..., Any]


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
    out is chosen by scale (see `engine.autograd.comparison.tolerance`). raise_exception raises
    GradcheckError (a ValueError) where something is wrong or nothing could be checked.
    max_inputs_per_var, max_outputs_per_var: how many entries of each array to look at one by
    one; all if <= 0 (of large arrays random directions, which cover them all).
    plot_relative_error, plot_absolute_error draw the errors. show_summary prints a table.
    max_blocks and block_dim mean nothing on the CPU. restore_inputs: of a function. True puts
    back whatever its runs changed, and warns of inputs that it changes and does not return; False
    leaves its inputs as one run makes them.

    Returns True if something was checked and nothing was wrong. Raises also what
    `jacobian` raises, and LaunchError (E405) for options that mean nothing.
    """
    del max_blocks, block_dim
    flags(raise_exception=raise_exception, plot_relative_error=plot_relative_error,
          plot_absolute_error=plot_absolute_error, show_summary=show_summary,
          restore_inputs=restore_inputs)  # fmt: skip
    options = Options(
        Tolerance(eps, atol, rtol),
        max_inputs=whole(max_inputs_per_var, "max_inputs_per_var"),
        max_outputs=whole(max_outputs_per_var, "max_outputs_per_var"),
        all_entries=True,
    )  # fmt: skip
    given = (function, dim, inputs, outputs, input_output_mask, device)
    checked = _checked(*given, options)
    result = checked.result
    if show_summary:
        sys.stdout.write(summary(result))
    if plot_relative_error or plot_absolute_error:
        sparse = _large(result)
        plot_differences(
            evaluate(*given, ByAdjoint(-1, sparse)).jacobians,
            evaluate(*given, ByDifferences(-1, sparse, eps)).jacobians,
            relative=plot_relative_error, absolute=plot_absolute_error,
        )  # fmt: skip
    conclude(result.launches[0].kernel, checked.changed, restore_inputs)
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
    order: int = 1,
) -> TapeResult:
    """What `gradcheck` finds, as data: the kernel's launch, or the function and its launches.

    The first of the result's launches is the kernel or (with index -1) the function. order: 2
    checks the derivatives of a kernel's gradient, too; of a function they are not.
    """
    check_order(order)
    options = Options(Tolerance(eps, atol, rtol), (), (), max_inputs, max_outputs, seed,
                      all_entries=True, order=order)  # fmt: skip
    return _checked(function, dim, inputs, outputs, input_output_mask, device, options).result


def _checked(
    function: Function, dim: Any, inputs: Any, outputs: Any, mask: Mask | None,
    device: DeviceLike, options: Options,
) -> CheckedFunction:  # fmt: skip
    if not isinstance(function, Kernel):
        return check_function_call(function_call(function, inputs, outputs), mask, options)
    call = launch_call(function, dim, inputs, outputs, device)
    try:
        pairs = call.roles.pairs(mask)
    except GradcheckError:
        if mask or not call.record.plan.tables:
            raise
        pairs = []  # what it depends on is geometry that it queries
    result = check_call(call, None if mask is None else pairs, options)
    if result.launches[0].skipped and overlaps(call.record):
        result = check_function_call(relaunched(call), [p.key for p in pairs], options).result
    return CheckedFunction(result, ())


def _large(result: TapeResult) -> bool:
    """Whether random directions took the place of entries."""
    return any(p.directional and not p.checked for launch in result.launches for p in launch.pairs)


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
