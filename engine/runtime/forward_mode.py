"""Errors of forward mode for users: of `jvp`, `grad` and other frameworks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.compile.pipeline import Variants
from engine.diagnostics import Span
from engine.logger import log_warning

if TYPE_CHECKING:
    from engine.ad import NonlinearGradient

# Functions whose gradients were warned of, and where these are not linear.
_warned: set[tuple[str, Span]] = set()


def warn_of_nonlinear_gradients(variants: Variants, wrt: frozenset[str]) -> None:
    """Warns, once for each function, where tangents of `wrt` may not be those of reverse mode."""
    _warn(variants.nonlinear_gradients(wrt), "jvp and backward may differ")


def warn_of_nonlinear_derivatives(variants: Variants) -> None:
    """The same of `grad` in a kernel, which is by forward mode where a function has loops."""
    _warn(variants.nonlinear_derivatives, "`grad` of a function with loops and backward may differ")


def _warn(gradients: Iterable[NonlinearGradient], so: str) -> None:
    for g in gradients:
        at = g.kink.span
        if (g.function, at) in _warned:
            continue
        start = f"forward mode takes gradient `{g.gradient}` of `{g.function}`"
        log_warning(
            f"{start} at cotangents of one, but it is not linear in its cotangent, as far as can "
            f"be told: it {g.kink.what} at {at.file}:{at.line}. So {so}. Make it a sum of "
            "cotangents, each times a factor independent of them, or use reverse mode. If it is "
            f'linear all the same, silence this with: warnings.filterwarnings("ignore", "{start}")',
            at=(at.file, at.line),
        )
        _warned.add((g.function, at))
