"""`config.verify_fp`: checks the floats that launches and adjoints have written."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.runtime import events
from engine.runtime.leaves import float_parts

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.plan import Plan


class FiniteChecks(events.Observer):
    """Prints where arrays that a launch or an adjoint wrote are not finite."""

    __slots__ = ()

    def launched(self, plan: Plan, values: list[Any]) -> None:
        written = [plan.params[i] for i in plan.writes]
        some = [(p.name, a) for p in written if (a := values[p.index]) is not None]
        _look(f"kernel {plan.kernel.key!r}", some)

    def differentiated(self, plan: Plan, gradients: Sequence[tuple[str, array]]) -> None:
        _look(f"the adjoint of kernel {plan.kernel.key!r}", gradients)


def _look(who: str, arrays: Iterable[tuple[str, array]]) -> None:
    """Prints, for each array with values that are not finite, where the first one is."""
    for name, a in arrays:
        if not a._info.floating:
            continue
        for part in float_parts(a):
            values = a.device.backend.to_host(part)
            bad = ~np.isfinite(values)
            count = int(bad.sum())
            if count:
                at = tuple(int(k) for k in np.argwhere(bad)[0])
                sys.stdout.write(
                    f"{who} wrote {values[at]} to {name}{list(at)}: {count} of {bad.size} "
                    f"values are not finite\n"
                )
