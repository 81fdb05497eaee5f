"""The parts of a plan: parameters, selections of gradients, launches and runs."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.classes import NamedTuple, dataclass
from engine.lang.types import ArrayType, Type
from engine.runtime.annotation import array_type
from engine.runtime.execute import Executable
from engine.runtime.pack import Packer, null, pack_numpy, packer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.compile.backend import Journal
    from engine.diagnostics.site import Site
    from engine.runtime.execute import Done, ThreadRange
    from engine.runtime.links import Gathered
    from engine.runtime.plan import Plan


# The arrays of a launch that share memory with what it writes, where none does: always this object.
NOBODY: frozenset[str] = frozenset()


class Param:
    """One kernel parameter. `array_kind` is None for scalars, vectors and matrices."""

    __slots__ = ("_packer", "array_kind", "index", "kind", "name", "null")

    def __init__(self, index: int, name: str, kind: Type) -> None:
        self.index = index
        self.name = name
        self.kind = kind
        self.array_kind: ArrayType | None = None
        self._packer: Packer = bytes
        self.null = b""
        if isinstance(kind, ArrayType):
            self.array_kind = array_type(kind.element, kind.ndim)
            self.null = null(kind)
        else:
            self._packer = packer(kind, name)

    def packed(self, value: Any) -> bytes:
        """An argument as the kernel reads it: an array of the kind, None for none, or a number.

        An array of NumPy has components last, and must outlive what reads it. Raises Mismatch for
        what is no such number.
        """
        if self.array_kind is None:
            return self._packer(value)
        if value.__class__ is np.ndarray:
            return pack_numpy(value, self.array_kind.ndim)
        return self.null if value is None else value._packed


@dataclass(slots=True, eq=False)
class Selection:
    """How a launch with a certain set of gradients is recorded and differentiated.

    useful: False where no gradient can flow, so that nothing runs in the backward
    pass. executable: what a recorded launch runs. saves_journal: whether that does.
    reads: positions of the parameters whose contents the adjoint reads. watched: of those that
    it may come to read, should more arrays require a gradient by then. gradients: positions of
    the arrays whose gradients follow the adjoint's arguments.
    adjoint, ready_grids: the compiled adjoint, and the grids for which nothing is to be said of it;
    none until a backward pass has looked.
    """

    wrt: frozenset[str]
    journaled: frozenset[str]
    useful: bool
    executable: Executable
    saves_journal: bool
    reads: frozenset[int]
    watched: tuple[int, ...]
    gradients: tuple[int, ...]
    adjoint: Executable | None = None
    ready_grids: set[tuple[int, ...]] = field(default_factory=set)


class Activity(NamedTuple):
    """What is compiled of a kernel for a certain set of gradients: see `Selection`."""

    wrt: frozenset[str]
    journaled: frozenset[str]
    useful: bool
    saves_journal: bool


class FormRun(NamedTuple):
    """A run of one form of a kernel: what runs, and how (see `Executable.execute`)."""

    executable: Executable
    done: Done | None = None
    journal: Journal | None = None
    journal_limit: int | None = None
    threads: ThreadRange | None = None
    drop_output: bool = False
    inside: bool = False
    look: bool = False


class BoundLaunch(NamedTuple):
    """One launch with checked arguments: `blob` is `values` as the kernel reads them.

    inputs: how many of the arguments the caller named as inputs. site: of the user's call.
    on_tape: whether a tape that is active records it. gathered: what stands for arrays in structs
    in arrays. given: the arguments as the user gave them, where they have to be bound again.
    form_run: what runs in place of the kernel as written, and no observer is told of it: an
    adjoint, any form on memory that a check or another framework keeps.
    """

    plan: Plan
    dim: tuple[int, ...]
    values: list[Any]
    blob: bytes
    inputs: int = 0
    site: Site | None = None
    on_tape: bool = True
    gathered: Gathered | None = None
    given: Sequence[Any] = ()
    form_run: FormRun | None = None

    @property
    def simple(self) -> bool:
        """Whether it takes just its arguments, as they are, each time that it runs."""
        return self.gathered is None and not self.plan.tables
