"""`adtool selftest`: checks that the checker catches wrong gradients and passes right ones."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from adtool.commands import options as opt

QUICK = 7  # every so many-th case


def selftest(
    kernel: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            rich_help_panel=opt.CHOICE,
            help="Use only this kernel; may be repeated.",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", rich_help_panel=opt.CHOICE, help="Use only some of the kernels."),
    ] = False,
    seed: opt.Seed = 0,
) -> None:
    """Check the checker: correct kernels must pass, and adtool must catch planted wrong gradients.

    Takes about a minute, less if its kernels are compiled already. Exit code 0: adtool caught
    all wrong gradients and reported no correct one. 1: it did not. 2: nothing was tested.
    """
    from adtool.exits import Exit, ToolError
    from adtool.saying import say
    from adtool.selftest.run import corpus, hidden_outcomes, run
    from adtool.selftest.score import report_lines, score

    start = time.monotonic()
    cases = corpus()
    if kernel:
        known = {c.kernel.key for c in cases}
        for name in kernel:
            if name not in known:
                raise ToolError(f"the self-test has no kernel {name!r}", ", ".join(sorted(known)))
        cases = [c for c in cases if c.kernel.key in kernel]
    if quick:
        cases = cases[::QUICK]
    outcomes = run(cases, seed, _progress if sys.stderr.isatty() else None)
    if not kernel:
        outcomes += hidden_outcomes(seed)
    for line in report_lines(outcomes, time.monotonic() - start):
        say(line)
    raise typer.Exit(Exit.CLEAN if score("", outcomes).perfect else Exit.FINDINGS)


def _progress(done: int, total: int, kernel: str) -> None:
    text = f"{done} of {total} kernels {kernel}" if kernel else ""
    sys.stderr.write(f"\r{text:<70}" + ("" if kernel else "\r"))
    sys.stderr.flush()
