"""One operation on a tape, of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, Span, TapeError
from engine.diagnostics.site import Site
from engine.runtime.array import array
from engine.runtime.storage import Hold
from engine.tape.restoration import Restoration

OFF = "the tape copied nothing (engine.config.tape_snapshots)"


class Record(ABC):
    """One operation on a tape."""

    __slots__ = ("_site",)
    _site: Site | None

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
    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        """Adds to the inputs' gradients, and consumes those of overwritten elements.

        restored: what it reads of arrays that later records overwrote.
        """

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        """What `backward` may read: a number for each array, and what it held at the record."""
        return ()

    def reads(self) -> Collection[int]:
        """The numbers of those arrays that `backward` reads now."""
        return ()

    def reads_journal(self) -> bool:
        """Whether `backward` reads values that the operation saved of what it overwrote."""
        return False

    @property
    def snapshots(self) -> Sequence[Hold]:
        """The holds on what it read; several records may share one."""
        return ()

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

    def requests(self) -> list[Request]:
        """What must be compiled before `backward` can run."""
        return []

    @property
    def site(self) -> Span | None:
        """The place of the user's call."""
        return None if self._site is None else self._site.span
