"""Launches without Python's overhead: the runtime data of the native functions.

See `engine.accel.launcher`. They look at the same lists, settings and slots that the way
through Python looks at, and leave to it what is not as it nearly always is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import config
from engine.accel.launcher import Functions, Words, kinds_words, maker, row_words
from engine.compile.cpu import CPU
from engine.diagnostics.site import Site, call_site
from engine.lang.types import ArrayType
from engine.locks import Lock
from engine.runtime import events, storage
from engine.runtime.array import array
from engine.runtime.chunks import Chunk
from engine.runtime.device import HOST, others

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime.execute import Executable
    from engine.runtime.plan import Plan

# What shares no memory with anything that is written; always this object.
NOBODY: frozenset[str] = frozenset()
_lock = Lock()
_MOST = 64  # arguments, as `VALUES` in native/world.h


def _late() -> dict[str, Any]:
    from engine.compile.cpu import schedule
    from engine.compile.cpu.brief import Brief
    from engine.runtime.execute import Executable
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan
    from engine.runtime.plan_parts import Selection

    return {
        "array": array, "plain_kind": ArrayType, "brief": Brief, "hold": storage.Hold,
        "chunk": Chunk, "storage": storage.Storage, "executable": Executable,
        "selection": Selection, "call": Site, "nowhere": NOBODY, "settings": vars(config),
        "cuts": vars(schedule), "host": HOST.alias, "here": events.here,
        "site": call_site,
        "total": Chunk.total, "allocate": CPU.allocate, "home": HOST,
        "kernel": Kernel, "planned": Plan,
    }  # fmt: skip


maker.begin((events.everywhere, others), _late)


def finish(plan: Plan, dim: Any, state: bytes, of: Any) -> None:
    """Tells what a native launch left. state: its launch structure. of: its values, or its record,
    which is not on the tape then.
    """
    dim = (dim,) if dim.__class__ is int else dim
    if of.__class__ is list:
        forward = plan.forward
        forward.finish(forward.left(dim, of, plan.bind(of)[1], state), dim)
    else:
        tape = events.tape()
        assert tape is not None
        tape.finish_launch(of, state)


def prepare(plan: Plan, forward: Executable) -> None:
    """Has launches of a plan go natively from now on, where that can be."""
    made = recipe(plan, forward) if plan.plain else None
    with _lock:  # others may be here, and what they use stays
        if plan.recipe == 0:
            plan._recipe, plan.recipe = made, None if made is None else made.at


def functions() -> Functions | None:
    """The native functions; None before they are made, and where they are not to be used."""
    return maker.functions


def tell(**known: Any) -> None:
    """What the tape is, by the names of `engine.accel.slots`."""
    maker.tell(**known)


def recipe(plan: Plan, forward: Executable) -> Words | None:
    """What the functions are told of a plan; None where its launches need Python."""
    kinds = kinds_words([(p.array_kind, p.kind) for p in plan.params])
    if kinds is None or plan.backend is not CPU or plan.count > _MOST:
        return None
    parts = [
        _counted(plan.writes, 1), _counted([i for pair in plan.pairs for i in pair], 2),
        _counted([i for pair in plan.bits for i in pair], 2), _counted(plan.held, 1),
    ]  # fmt: skip
    objects = (plan.kernel, plan, forward, plan.usual)
    # The plan keeps the recipe: it lives longer than what is asked of it.
    return Words([plan.count, kinds.at, *map(id, objects), *(p.at for p in parts)], kinds, parts)


def pairs(of: Sequence[tuple[array, object]]) -> Words | None:
    """Arrays with what is known of each, for `Functions.ask_same`, `have_same`.

    None where Python has to look.
    """
    return row_words(of, array)


def _counted(numbers: Sequence[int], each: int) -> Words:
    return Words([len(numbers) // each, *numbers])
