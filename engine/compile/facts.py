"""Facts about a kernel that launches need, read from its IR once and cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.classes import dataclass
from engine.diagnostics import Span
from engine.lang.structs import Argument
from engine.lang.types import Type

if TYPE_CHECKING:
    from engine.ir.nodes import Function


@dataclass(frozen=True, slots=True)
class Facts:
    """Of one kernel; array parameters are told by name.

    params: names and types. arguments: the user's parameters, where the IR has others; tables:
    the last of them, which launches add. apart: pairs that must not share memory. read, written,
    updated: arrays that are read, changed, and changed by atomics; read_again: those that the
    backward pass may read, rewritten: those that it writes, replayed: those that it reads as they
    are; needed: those that every thread touches, so that None will not do.
    """

    name: str
    span: Span
    params: tuple[tuple[str, Type], ...]
    arguments: tuple[Argument, ...]
    tables: tuple[Argument, ...]
    apart: tuple[tuple[str, str], ...]
    read: frozenset[str]
    written: frozenset[str]
    updated: frozenset[str]
    read_again: frozenset[str]
    rewritten: frozenset[str]
    replayed: frozenset[str]
    needed: frozenset[str]
    differentiable: frozenset[str]


def facts_of(ir: Function) -> Facts:
    """The facts of a kernel."""
    # Late: what was compiled before comes with its facts.
    from engine import ad
    from engine.ad.cleanup import float_params
    from engine.ad.structure import by_every_thread
    from engine.builtins.queries import TABLES
    from engine.compile.touched import accessed, arrays_of, updated

    read = ad.read_params(ir)
    return Facts(
        ir.name, ir.span,
        tuple((p.name, p.type) for p in ir.params),
        ir.arguments,
        tuple(t for t in ir.arguments if str(t.type) in TABLES),
        ir.apart,
        read,
        ad.written_params(ir),
        arrays_of(ir, updated),
        read | ad.replay_read_params(ir),
        ad.replay_written_params(ir),
        ad.replayed_params(ir),
        # What is accessed under a condition may be left out: the kernel decides.
        arrays_of(ir, accessed, by_every_thread, custom=True),
        frozenset(p.name for p in float_params(ir)),
    )  # fmt: skip
