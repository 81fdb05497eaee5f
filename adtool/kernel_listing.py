"""The code of kernels at a stage, found in the child process and returned as data."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from adtool import codec, files
from adtool.job import ListingOptions
from adtool.outcome import Outcome
from engine import KernelStage
from engine.classes import dataclass

if TYPE_CHECKING:
    from engine import CapturedTape


@dataclass(frozen=True, slots=True)
class KernelListing:
    """The code of every kernel that was asked for."""

    kernels: tuple[KernelStage, ...]


def list_kernels(
    tapes: Sequence[CapturedTape], options: ListingOptions, folder: Path
) -> Outcome | None:
    """Writes the code of the kernels that are asked for; or says why there is none.

    Those on tapes come as they ran, others as they would. Raises EngineError for a kernel that
    does not have the stage.
    """
    known: dict[str, Any] = {}
    for tape in tapes:
        for r in tape.records:
            if r.kernel is not None:
                known.setdefault(r.kernel.key, r)
    open_types = []
    for k in _defined():
        if k.is_generic and not k.overloads:
            open_types.append(k.key)
        for typed in k.overloads.values() if k.is_generic else (k,):
            known.setdefault(typed.key, typed)
    mine = [known[k] for k in known if fnmatchcase(k, options.kernel)]
    if not mine and options.kernel in open_types:
        return Outcome(
            "target", f"kernel `{options.kernel}` is generic and was not launched: it has no types",
            "launch it in the script, or add an overload (engine.overload)",
        )  # fmt: skip
    if not mine:
        return _unknown(options.kernel, list(known))
    found = tuple(engine.kernel_stage(k, options.stage) for k in mine)
    (folder / files.LISTING).write_text(codec.dumps(KernelListing(found)), encoding="ascii")
    return None


def _defined() -> list[Any]:
    """Kernels that the modules of the program name."""
    found: list[Any] = []
    own = str(Path(str(engine.__file__)).parent)
    for module in list(sys.modules.values()):
        if not str(getattr(module, "__file__", None) or own).startswith(own):
            found += [v for v in vars(module).values() if isinstance(v, engine.Kernel)]
    return found


def _unknown(kernel: str, known: list[str]) -> Outcome:
    if not known:
        return Outcome("target", "the script has no kernel", "kernels are functions with "
                       "`@engine.kernel`")  # fmt: skip
    near = difflib.get_close_matches(kernel, known, 3, 0.5)
    help = "did you mean " + " or ".join(f"`{k}`" for k in near) + "?" if near else ""
    if not near:
        listed = ", ".join(f"`{k}`" for k in known[:12])
        help = f"its kernels are {listed}" + " ..." * (len(known) > 12)
    return Outcome("target", f"the script has no kernel `{kernel}`", help)
