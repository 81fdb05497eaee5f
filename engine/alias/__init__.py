"""`engine` under another name: programs that `import warp` run without a change.

::

    import engine.alias
    engine.alias.install("warp")
    import warp as wp  # the engine

`adtool check --alias warp script.py` does this before the script begins.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from engine import config
from engine.alias.modules import AliasFinder, front
from engine.classes import dataclass
from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.itself import ENGINE

# The version of Warp whose documents the engine follows: what `warp.__version__` says.
VERSION = "1.19.0"


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that differs under an alias, since programs can tell.

    setting, value: of `engine.config`. here: what the engine does else. there: what Warp does.
    """

    setting: str
    value: Any
    here: str
    there: str


DIFFERENCES = (
    Difference(
        "overwrites", "present",
        "a backward pass reads the values that launches read, also if the tape overwrote them",
        "it reads values that a later launch overwrote as they are when the pass runs; `adtool "
        "check` reports an error (G003) if this makes a gradient wrong. It restores values that a "
        "launch itself read and overwrote, with a warning (G003)",
    ),
    Difference(
        "expect", "print",
        "a failed `expect_eq`, `expect_neq` or `expect_near` raises at the end of the launch",
        "it prints its message, and the program goes on",
    ),
    Difference(
        "integers", "lenient",
        "the engine refuses integers that do not fit the array or vector (E206, E202), and warns "
        "of `requires_grad` of integers, which has no effect",
        "integers of NumPy arrays and vectors wrap, and there is no warning",
    ),
    Difference(
        "atomics", "native",
        "`atomic_add` and similar functions take arrays of any numbers",
        "they refuse (E104) integers of 8 and 16 bits, float16 except for sums, and bfloat16 "
        "except for sums, `atomic_min` and `atomic_max`",
    ),
    Difference(
        "inner_axes", "elements",
        "`from_numpy` without a dtype keeps the axes of its array as dimensions",
        "it makes the last axis of two vectors, and the last two axes of three matrices",
    ),
    Difference(
        "immutable", "warn",
        "the engine refuses to write memory of a JAX array, and memory that `to_jax` shared while "
        "JAX holds it (E206), because JAX treats it as immutable",
        "it writes the memory, with one warning; Warp does not warn",
    ),
)  # fmt: skip


def install(name: str = "warp") -> None:
    """Makes `import NAME` give the engine, with Warp's meaning where programs can tell.

    From then on `engine.config` has the settings of `DIFFERENCES`, and `NAME.x.y` is `engine.x.y`.
    What the engine has not may be mentioned, and is E112 where it is used. Once more does nothing.

    Raises:
        LaunchError: E202: NAME is no name of a module, or the module has been imported already.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) or name in ("engine", "adtool"):
        raise _refused(f"{name!r} cannot be a name of the engine", "take a name such as warp")
    if any(f.name == name for f in sys.meta_path if isinstance(f, AliasFinder)):
        return
    if name in sys.modules and sys.modules[name] is not ENGINE:
        raise _refused(
            f"the module {name!r} has been imported before the alias was made",
            f"call `engine.alias.install({name!r})` before the first `import {name}`",
        )
    sys.meta_path.insert(0, AliasFinder(name))
    sys.modules[name] = front(name, VERSION)
    for d in DIFFERENCES:
        setattr(config, d.setting, d.value)


def _refused(message: str, help: str) -> LaunchError:
    return LaunchError(Diagnostic("E202", message, call_span(), help))


__all__ = ["DIFFERENCES", "VERSION", "Difference", "install"]
