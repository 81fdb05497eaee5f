"""Checks a kernel that a framework called as an operator: by a launch, as on a tape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.autograd.function.private_tape import PrivateTape
from engine.autograd.results import LaunchResult
from engine.autograd.tape.check import check_tape
from engine.autograd.tape.options import Options
from engine.diagnostics import UNKNOWN, EngineError, Span
from engine.foreign.jax_functions import code_of, definition
from engine.runtime.device import HOST
from engine.runtime.launch import launch


def kernel_place(kernel: Any) -> Span:
    """The line of a kernel's `def`."""
    code = code_of(kernel.func)
    return UNKNOWN if code is None else definition(code)


def checked_launch(
    kernel: Any, dim: tuple[int, ...], args: Sequence[Any], site: Span | None, options: Options
) -> LaunchResult:
    """The check of a launch with these arguments. site: of the framework's call."""
    empty = LaunchResult(0, kernel.key, dim, (), kernel_place(kernel), site)
    try:
        with PrivateTape() as tape:
            launch(kernel, dim, inputs=args, device=HOST)
        (found,) = check_tape(
            tape, end_to_end=False, seed=options.seed, max_inputs=options.max_inputs,
            max_outputs=options.max_outputs, order=options.order, eps=options.tolerance.eps,
            atol=options.tolerance.atol, rtol=options.tolerance.rtol,
        ).launches  # fmt: skip
    except EngineError as error:  # in a line: its place is of no interest
        return replace(empty, skipped=f"{_ALONE}: {error.diagnostics[0].message}")
    except ValueError as error:
        return replace(empty, skipped=f"{_ALONE}: {error}")
    return replace(found, site=site)


_ALONE = "it could not be launched by itself"
