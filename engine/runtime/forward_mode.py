"""What users of forward mode are told: `jvp`, and derivatives in other frameworks, not checks."""

from __future__ import annotations

from engine.compile.pipeline import Variants
from engine.diagnostics import Span
from engine.logger import log_warning

# Functions whose gradients were warned of, and where these are not linear.
_warned: set[tuple[str, Span]] = set()


def warn_of_nonlinear_gradients(variants: Variants, wrt: frozenset[str]) -> None:
    """Warns, once for each function, where tangents of `wrt` may not be those of reverse mode."""
    for g in variants.nonlinear_gradients(wrt):
        at = g.kink.span
        if (g.function, at) not in _warned:
            start = f"forward mode takes gradient `{g.gradient}` of `{g.function}`"
            log_warning(
                f"{start} at cotangents of one, but it is not linear in its cotangent, as far as "
                f"can be told: it {g.kink.what} at {at.file}:{at.line}. So jvp and backward may "
                "differ. Make it a sum of cotangents, each times what does not depend on them, or "
                "use reverse mode. If it is linear all the same, this says so: "
                f'warnings.filterwarnings("ignore", "{start}")',
                at=(at.file, at.line),
            )
            _warned.add((g.function, at))
