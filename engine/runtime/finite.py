"""`config.verify_fp`: checks the floats that launches and adjoints have written."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.runtime.leaves import float_parts

if TYPE_CHECKING:
    from engine.runtime.array import array
    from engine.runtime.plan import Plan


def look_at_launch(plan: Plan, values: list[Any]) -> None:
    """Prints where arrays that a launch wrote are not finite."""
    written = [plan.params[i] for i in plan.writes]
    look(f"kernel {plan.kernel.key!r}",
         [(p.name, values[p.index]) for p in written if values[p.index] is not None])  # fmt: skip


def look(who: str, arrays: Iterable[tuple[str, array]]) -> None:
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
