"""One operation on a tape, of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from engine.classes import NamedTuple, Protocol
from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, Span, TapeError
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel
    from engine.tape.forward import Tangents
    from engine.tape.records.foreign import ForeignRecord
    from engine.tape.records.launch import LaunchRecord
    from engine.tape.records.linear import LinearRecord

OFF = "the tape copied nothing (engine.config.tape_snapshots)"


class Operand(NamedTuple):
    """An array that a record read. name: in the words of messages. hold: on what it held then.

    watched: whether the backward pass may read it again, so that later changes are noted.
    """

    of: array
    name: str
    hold: Hold | None
    watched: bool


class Description(NamedTuple):
    """What listings show of a record.

    kind: `launch`, `function`, or that of a `LinearRecord`. parameters: names of those that take
    arrays. reads, writes: positions among them; what is only added to counts as written.
    """

    kind: str
    parameters: tuple[str, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Replayer(Protocol):
    """Makes something of each record by which its operation runs again."""

    def launch(self, record: LaunchRecord) -> None:
        """A kernel launch."""

    def linear(self, record: LinearRecord) -> None:
        """A linear function of an array, or new contents from the host, for all of another."""

    def foreign(self, record: ForeignRecord) -> None:
        """An operation of another framework."""

    def refuse(self, record: Record, why: str) -> None:
        """An operation that cannot run again."""


class Record(ABC):
    """One operation on a tape.

    names: what the user passed for each parameter, where that is known without the user's text.
    dim: the threads of a launch, by dimension. source: what that held which it made a copy of.
    stack_bytes: memory of the values that a thread of its last backward pass saved. repeatable:
    whether `reverse` can run once more and nobody sees it, as it calls no code of others. why: the
    reason why it can never run again.
    """

    __slots__ = ("_site",)
    _site: Site | None

    names: Sequence[str] | None = None
    dim: tuple[int, ...] = ()
    source: Hold | None = None
    stack_bytes: int = 0
    repeatable: bool = True
    why: str = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """The operation: a kernel's key, `copy`, `zero_`, ..."""

    @property
    @abstractmethod
    def arrays(self) -> Sequence[array]:
        """Every array that takes part."""

    @property
    @abstractmethod
    def written(self) -> Sequence[array]:
        """Arrays whose old contents the operation replaced, or may have."""

    @abstractmethod
    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        """Adds to the inputs' gradients, and consumes those of overwritten elements.

        restored: what it reads of arrays that later records overwrote.
        """

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        """What `reverse` may read: a number for each array, and what it held at the record."""
        return ()

    def reads(self) -> Collection[int]:
        """The numbers of those arrays that `reverse` reads now."""
        return ()

    @property
    def journal_bytes(self) -> int:
        """Memory of what the operation overwrote and saved for `reverse`."""
        return 0

    def reads_journal(self) -> bool:
        """Whether `reverse` reads values that the operation saved of what it overwrote."""
        return False

    @property
    def snapshots(self) -> Sequence[Hold]:
        """The holds on what it read; several records may share one."""
        return ()

    def let_go(self) -> None:  # noqa: B027  # most have nothing to forget
        """Forgets what the inputs of a launch held, of which nobody will ask."""

    def argument(self, index: int) -> str:
        """What to call one of them."""
        return f"array {index} of {self.name!r}"

    def unknown(self, index: int, hold: Hold | None) -> TapeError:
        """The E401 where what one of them held is not known any more."""
        return TapeError(
            Diagnostic(
                "E401", f"the content of {self.argument(index)} at that time is lost", self.site,
                help="change that setting before the launch is recorded",
                notes=(OFF if hold is None else hold.lost,),
            )
        )  # fmt: skip

    # ---- backward

    def requests(self) -> list[Request]:
        """What must be compiled before `reverse` can run."""
        return []

    def is_ready(self) -> bool:
        """Whether `run_ready` does all of `reverse`: nothing is to be compiled, or to be said."""
        return False

    def run_ready(self) -> None:
        """What `reverse` does where it `is_ready`."""
        self.reverse()

    @property
    def graded(self) -> Iterable[array | None]:
        """The arrays whose gradients it may have a part in."""
        return self.arrays

    # ---- what gradients flow through

    @property
    def stored(self) -> Iterable[array]:
        """What it certainly stores whole, so that no gradient of it goes further back."""
        return ()

    @property
    def sources(self) -> Iterable[array]:
        """The arrays to which it may pass a gradient."""
        return ()

    def fills(self, a: array) -> bool:
        """Whether it certainly stored every element of an array that it wrote."""
        return True

    def passes_gradient(self, a: array) -> bool:
        """Whether the gradient of an array that it wrote is passed on to something."""
        return False

    def operands(self) -> Iterable[Operand]:
        """What its results were computed from, as far as that is known."""
        return ()

    def only_read(self, captured: Record) -> Iterable[tuple[array, Hold | None]]:
        """What it read and did not write, with what that held. captured: the same record."""
        return ()

    def gone(self) -> TapeError:
        """The E401 where it is captured, and was to run backward."""
        return TapeError(
            Diagnostic("E401", f"the arrays of the captured {self.name!r} are gone", self.site)
        )

    # ---- what there is of some operations alone

    @property
    def launch(self) -> LaunchRecord | None:
        """The launch that it is, with all that runs it."""
        return None

    @property
    def linear(self) -> LinearRecord | None:
        """The linear function that it is."""
        return None

    @property
    def kernel(self) -> Kernel | None:
        """What was launched."""
        return None

    @property
    def function(self) -> Callable[[], Any] | None:
        """What it calls in the backward pass."""
        return None

    @property
    def declared(self) -> Sequence[array]:
        """Arrays that the user named for it: it may have read them, or computed them."""
        return ()

    @property
    def copied(self) -> tuple[array, array] | None:
        """Where it made a copy, and of what."""
        return None

    # ---- what is made of it

    @abstractmethod
    def captured(self, contents: bool = True) -> Record:
        """A record that says the same and keeps none of the user's memory alive.

        contents: whether copies of what it read are kept.
        """

    @abstractmethod
    def replay(self, by: Replayer) -> None:
        """Has what runs it again be made."""

    @abstractmethod
    def describe(self, count: int) -> Description:
        """What listings show of it. count: of its `listed` arrays."""

    @property
    def listed(self) -> Sequence[Any]:
        """Its arrays by parameter, as listings have them; None for none."""
        return self.arrays

    def alike(self, number: Callable[[Any], object]) -> Hashable:
        """Equal for operations that do the same. number: the same for arrays that are the same."""
        return (self.name, *map(number, self.arrays))

    # ---- forward mode

    def tangent_requests(self) -> list[Request]:
        """What must be compiled before `tangent` can run."""
        return []

    def tangent(self, tangents: Tangents) -> None:
        """Computes the tangents of its results. Raises TapeError (E401) where there is no rule."""
        raise NotImplementedError

    # ---- where it comes from

    @property
    def definition(self) -> Span | None:
        """The place of what it ran, in the user's text."""
        return None

    @property
    def site(self) -> Span | None:
        """The place of the user's call."""
        return None if self._site is None else self._site.span
