"""The values of every builtin by NumPy, SciPy or mathematics, one file a family.

Each file has OPERATIONS (by the name of the operation) and COMPOSED (by the name that users
call; one entry for all overloads). An entry is a function of exact arguments, or an `Oracle`
with one. Exact are Python integers, float64 numbers, and arrays of either; a first parameter
named `_type` gets the result's type (the arguments' types, for composites). Integer results may be
of any size: they are wrapped into their type.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Oracle:
    """How to know what a builtin gives.

    value: the function; of several results, a tuple. check: instead of it, a function of
    the results, the arguments and the tolerance that raises where they do not fit.
    units: rounding that is allowed, in units in the last place of the largest number around.
    degree: the results are of the size of the arguments to this power (None: of their own).
    sample: puts random arguments where the builtin has its meaning. special: "" where the
    function knows zeros, infinities and NaN as well, else why not. raw: the function gets NumPy
    values of the arguments' own types, and gives one of the result's.
    """

    value: Callable[..., Any] | None = None
    check: Callable[[Sequence[Any], Sequence[Any], float], None] | None = None
    units: float = 64
    degree: int | None = None
    sample: Callable[[list[Any]], list[Any]] | None = None
    special: str = ""
    raw: bool = False


def _load() -> tuple[dict[str, Oracle], dict[str, Oracle]]:
    operations: dict[str, Oracle] = {}
    composed: dict[str, Oracle] = {}
    for found in sorted(m.name for m in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{found}")
        for own, every in ((module.OPERATIONS, operations), (module.COMPOSED, composed)):
            for name, entry in own.items():
                assert name not in every, f"two oracles for {name}"
                every[name] = entry if isinstance(entry, Oracle) else Oracle(entry)
    return operations, composed


OPERATIONS, COMPOSED = _load()
