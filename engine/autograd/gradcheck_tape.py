"""`gradcheck_tape`: the check of a tape, with the reference's signature."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from engine.autograd.comparison.block import EntryBlock
from engine.autograd.comparison.tolerance import Tolerance, flags, whole
from engine.autograd.plots.differences import plot_errors
from engine.autograd.results import LaunchResult, TapeResult, WholeResult, entry_name
from engine.autograd.summary import summary
from engine.autograd.tape.check import check, check_order
from engine.autograd.tape.options import Options
from engine.autograd.variables.roles import Mask, checked_mask
from engine.diagnostics import Diagnostic, GradcheckError, LaunchError
from engine.diagnostics.site import call_span
from engine.tape.tape import Tape

_NOTES = 12  # of an error that says why nothing was checked


def gradcheck_tape(
    tape: Tape,
    *,
    eps: float | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    raise_exception: bool = True,
    input_output_masks: Mapping[str, Mask] | None = None,
    blacklist_kernels: Sequence[str] | str | None = None,
    whitelist_kernels: Sequence[str] | str | None = None,
    max_inputs_per_var: int = -1,
    max_outputs_per_var: int = -1,
    plot_relative_error: bool = False,
    plot_absolute_error: bool = False,
    show_summary: bool = True,
    reverse_launches: bool = False,
    skip_to_launch_index: int = 0,
    order: int = 1,
) -> bool:
    """Compares the gradient of each recorded launch with finite differences.

    Each launch is checked at the values that its arguments had when it was recorded.
    Arrays are only read. A launch passes where |ad - fd| <= atol + rtol |fd|; each of eps,
    atol and rtol that is left out is chosen by scale (see `engine.autograd.comparison.tolerance`).

    input_output_masks: for a kernel's key, pairs of input and output, each by name or
    by position among the launch's inputs or outputs. blacklist_kernels and
    whitelist_kernels: kernel keys, or one. max_inputs_per_var, max_outputs_per_var: how many
    entries of each array to look at one by one; all if <= 0. Where a launch has too many
    entries for that (see `launch.entries.DENSE_ENTRIES`), random directions cover them all
    and single entries are only looked at where a direction disagrees.
    show_summary prints a table. reverse_launches checks the last launch first.
    skip_to_launch_index leaves out earlier launches. order=2 checks the derivatives of the
    launches' gradients, too (see `check_tape`).

    Returns True if something was checked and nothing was wrong. Raises GradcheckError
    (a ValueError), if raise_exception, where something is wrong or nothing could be
    checked; LaunchError (E202, E405) for a mask or whitelist that names something unknown, and
    for arguments of other types.
    """
    if not isinstance(tape, Tape):
        raise LaunchError(Diagnostic("E202", f"gradcheck_tape takes a tape, got {tape!r}",
                                     call_span(), "pass the Tape that recorded"))  # fmt: skip
    flags(raise_exception=raise_exception, plot_relative_error=plot_relative_error,
          plot_absolute_error=plot_absolute_error, show_summary=show_summary,
          reverse_launches=reverse_launches)  # fmt: skip
    check_order(order)
    launches = [r for r in tape.records if r.kernel is not None]
    keys = {r.name for r in launches}
    wanted = _names(whitelist_kernels, "whitelist_kernels")
    unwanted = _names(blacklist_kernels, "blacklist_kernels")
    masks = _masks(input_output_masks)
    for given in (*wanted, *masks):
        if given not in keys:
            raise LaunchError(
                Diagnostic(
                    "E405",
                    f"the tape has no launch of a kernel {given!r}",
                    help=f"its kernels are {', '.join(sorted(keys)) or 'none'}",
                )
            )
    kept: list[tuple[LaunchResult, Mapping[tuple[str, str], EntryBlock]]] = []
    plots = plot_relative_error or plot_absolute_error
    result = check(
        tape,
        Options(
            Tolerance(eps, atol, rtol),
            tuple(map(_literal, wanted)),
            tuple(map(_literal, unwanted)),
            whole(max_inputs_per_var, "max_inputs_per_var"),
            whole(max_outputs_per_var, "max_outputs_per_var"),
            masks=masks,
            reverse=reverse_launches,
            skip_to=whole(skip_to_launch_index, "skip_to_launch_index", "the first launch is 0"),
            all_entries=True,
            order=order,
            keep=(lambda r, blocks: kept.append((r, blocks))) if plots else None,
        ),
    )
    if show_summary:
        sys.stdout.write(summary(result))
    if plots:
        for launch, blocks in kept:
            plot_errors(launch, blocks, relative=plot_relative_error, absolute=plot_absolute_error)
    if raise_exception and not result.passed:
        raise _error(result)
    return result.passed


def _names(given: Sequence[str] | str | None, option: str) -> tuple[str, ...]:
    """The kernel keys of a list, or of a single name. Raises LaunchError (E405)."""
    if given is None or isinstance(given, str):
        return () if given is None else (given,)
    names = tuple(given) if isinstance(given, Iterable) else (given,)
    for name in names:
        if not isinstance(name, str):
            raise LaunchError(
                Diagnostic(
                    "E405",
                    f"{option} takes names of kernels, got {name!r}",
                    help="pass the kernel's key: kernel.key",
                )
            )
    return names


def _masks(given: Any) -> dict[str, Mask]:
    """Masks by kernel. Raises LaunchError (E405) for anything else."""
    if given is not None and not isinstance(given, Mapping):
        raise LaunchError(
            Diagnostic(
                "E405",
                f"input_output_masks has a list of pairs for each kernel, got {given!r:.80}",
                call_span(),
                help="write {kernel.key: [('x', 'y')]}",
            )
        )
    return {k: [] if m is None else list(checked_mask(m)) for k, m in (given or {}).items()}


def _literal(key: str) -> str:
    """A kernel key as a pattern that matches only itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in key)


def _nothing(result: TapeResult) -> Diagnostic:
    """An E404 that says why nothing was checked."""
    notes = [f"{u.what}: {u.reason}" for u in result.unchecked]
    for launch in result.launches:
        notes += [
            f"d {p.output} / d {p.input} of kernel {launch.kernel}, launch {launch.index}: "
            f"{p.verdict}, {p.reason or 'nothing was compared'}"
            for p in launch.pairs
        ]
    help = ""
    if not result.launches:
        help = "record launches inside `with Tape()`, and select at least one of them"
    elif any("requires_grad" in note for note in notes):
        help = "create the inputs and outputs with requires_grad=True"
    if len(notes) > _NOTES:
        notes[_NOTES:] = [f"and {len(notes) - _NOTES} more"]
    return Diagnostic("E404", "nothing on the tape could be checked", help=help, notes=tuple(notes))


def _error(result: TapeResult) -> GradcheckError:
    bad = [
        (launch, p)
        for launch in result.launches
        for p in launch.pairs
        if p.verdict in ("fail", "nan")
    ]
    whole = result.whole
    out = []
    if whole is not None and whole.verdict in ("fail", "nan"):
        out.append(_composed(whole))
    if not bad and not (out and result.checked):
        return GradcheckError(_nothing(result))
    for launch, p in bad:
        worst = ""
        if p.worst is not None and p.worst.row >= 0:
            worst = f"; {entry_name(p)} is {p.worst.oracle:.7g}, the adjoint gives {p.worst.ad:.7g}"
        what = "is not finite" if p.verdict == "nan" else "is wrong"
        suspects = launch.stops or launch.culprits
        place = suspects[0][1] if suspects else launch.span
        out.append(
            Diagnostic(
                "E403",
                f"launch {launch.index} of kernel {launch.kernel!r}: "
                f"the gradient of {p.output!r} with respect to {p.input!r} {what}{worst}",
                place,
            )
        )
    return GradcheckError(*out)


def _composed(whole: WholeResult) -> Diagnostic:
    """An E403 for a tape whose launches do not make up a right gradient."""
    cause = whole.cause
    notes = [f"along a random direction, the backward pass gives {whole.ad:.7g}, "
             f"the reference {whole.oracle:.7g}"]  # fmt: skip
    if cause is None:
        return Diagnostic("E403", "the gradient of the tape as a whole is "
                          + ("not finite" if whole.verdict == "nan" else "wrong"),
                          notes=(*notes, whole.reason))  # fmt: skip
    where = f"launch {cause.launch} of kernel {cause.kernel!r}" if cause.launch >= 0 else (
        f"{cause.kernel!r}"
    )  # fmt: skip
    if cause.other:
        notes.append(f"{cause.argument!r} was overwritten by {cause.other!r}"
                     + (f" at {cause.other_site}" if cause.other_site else ""))  # fmt: skip
    return Diagnostic(
        "E403", f"the gradient of the tape as a whole is wrong: {cause.kind} at {where}"
        + (f", argument {cause.argument!r}" if cause.argument else ""),
        cause.site, notes=tuple(notes),
    )  # fmt: skip
