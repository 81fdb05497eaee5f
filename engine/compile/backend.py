"""The interface of a device's backend: it writes text, compiles, holds memory and runs.

Everything else is keyed by such an object and knows nothing of the device.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from engine import config
from engine.classes import NamedTuple, Protocol, dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from engine.compile.threads import Threads
    from engine.diagnostics import Span
    from engine.ir.nodes import Function, Message

# How a run ended: numbers that kernels and backends agree on.
NO_MEMORY, NOT_SAVED, TOO_LARGE, STACK_LIMIT, JOURNAL_LIMIT, ASSERTED = 1, 2, 3, 4, 5, 6
NOT_MADE = 7  # the code for these arrays, of which backends see to it that it is


def configured() -> bool:
    """Whether GPUs run threads one after the other where their order matters, by the settings."""
    return bool(config.deterministic)


@dataclass(frozen=True)
class Entry:
    """A compiled kernel.

    symbol: the kernel's name and a hash. code: what its backend calls. key: what the backend finds
    it by in later processes, empty for nothing. messages: what the
    numbers in its output stand for. bound: arguments that follow those of each call. threads:
    what its threads do to each other. in_order: whether GPUs run its threads one after the other
    where their order matters. `pipeline.prefetch` fills in the last four.
    """

    symbol: str
    code: Any
    messages: Sequence[Message] = ()
    bound: bytes = b""
    threads: Threads | None = None
    key: str = ""
    in_order: Callable[[], bool] = configured


class Journal(ABC):
    """What a run wrote to its journal, for another one to read. Its memory ends with it.

    in_order: the run came out as one of threads that run one after the other.
    """

    __slots__ = ()

    in_order: bool = False

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of saved values."""

    @abstractmethod
    def words(self) -> NDArray[np.int64]:
        """A copy of what a run of the form `accesses` wrote; see `engine.ad.accesses`."""


class _InOrder(Journal):
    """Of a run that came out so and saved nothing."""

    __slots__ = ()

    in_order = True
    nbytes = 0

    def words(self) -> NDArray[np.int64]:
        return np.zeros(0, np.int64)


IN_ORDER = _InOrder()


@dataclass(frozen=True)
class Restless:
    """Why the order of a launch's threads may matter to its bits. span: of an access."""

    what: str
    span: Span | None = None


class Limits(NamedTuple):
    """Bytes that a run may save: each thread on its stack, all in the journal. 0: any number."""

    stack: int
    journal: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    error: 0, or how it ended. journal: what it saved for another one, None where nothing.
    output: its messages, each a number and values in slots of 8 bytes. stack_bytes: the memory
    that saved values of a thread took up.
    """

    error: int = 0
    journal: Journal | None = None
    output: bytes = b""
    stack_bytes: int = 0


NOTHING = Outcome()  # as most runs end

# What a launch asks of a GPU: threads of a block, and how many blocks at most (0 for any number).
shape: ContextVar[tuple[int, int] | None] = ContextVar("engine_shape", default=None)
# Whether adjoints run in any order that would need one: somebody was told of a race in the kernel.
raced: ContextVar[bool] = ContextVar("engine_raced", default=False)


class Marks(NamedTuple):
    """Positions of arguments: arrays that a kernel writes, or those of an adjoint's gradients."""

    places: tuple[int, ...]
    gradients: bool


@dataclass(frozen=True)
class Properties:
    """What a GPU is. arch: of its machine code, as the compiler names it."""

    name: str
    arch: str
    sm_count: int
    total_memory: int
    shared_memory: int
    uuid: str
    pci_bus_id: str


class CachedLaunch(Protocol):
    """A short way to run small launches that are alike.

    stack, journal: the limits of all its runs.
    """

    stack: int
    journal: int

    @property
    def any_arguments(self) -> bool:
        """Whether it is the short way for all arguments alike."""

    def outcome_of(
        self, values: list[Any], args: bytes, came: bytes, spare: Callable[[], Entry] | None
    ) -> Outcome:
        """What came of one of many that left something."""

    def run(self, args: bytes, spare: Callable[[], Entry] | None) -> Outcome | None:
        """What `Backend.run` gives; None where that has to be asked, and nothing has run."""


# A launch or write among others: how it is run, which its backend knows, its arguments, and what
# `Backend.run` takes as `spare`.
Step = tuple[Any, bytes, "Callable[[], Entry] | None"]


class NotCaptured(BaseException):
    """Raised by what a device cannot capture; it says what that is. Nobody else may catch it."""


class Streams(Protocol):
    """Streams and events of a device; both are objects of the library that computes there."""

    def new_stream(self, priority: int = 0) -> Any:
        """A stream of its own, which waits for no other one by itself."""

    def current_stream(self) -> Any:
        """The one that work goes to in this thread."""

    def use(self, stream: Any) -> None:
        """Makes a stream the current one of this thread."""

    def new_event(self, timing: bool) -> Any:
        """A mark for streams."""

    def follow(self, stream: Any, other: Any) -> None:
        """Makes a stream wait for what another one has to do now."""

    def captured(self, work: Callable[[], object]) -> Callable[[], None]:
        """Captures what some work asks of the device; what it gives runs that.

        Raises NotCaptured. Memory that the work takes stays as long as what it gives.
        """

    def milliseconds(self, first: Any, last: Any) -> float:
        """The time from one event to another."""


class Backend(ABC):
    """One kind of device.

    kind: the first part of its devices' names. on_host: its memory is that of the host, which
    NumPy sees without a copy.
    """

    kind: ClassVar[str]
    on_host: ClassVar[bool] = False

    # ---- the device

    @property
    def properties(self) -> Properties | None:
        """What the device is; None of the host."""
        return None

    @property
    def free_memory(self) -> int | None:
        """Bytes of its memory that nobody has; None of the host."""
        return None

    @property
    def stream(self) -> int:
        """The queue that runs go to, by its number; 0 where there is but one."""
        return 0

    @property
    def streams(self) -> Streams | None:
        """What makes streams and events of its own; None where all queues are one."""
        return None

    def wait(self, stream: int) -> None:
        """Makes runs wait for what another queue has to do now."""
        del stream

    def device_of(self, address: int) -> int:
        """Which device of this kind memory is on."""
        del address
        return 0

    def synchronize(self) -> None:
        """Waits for all that the device has to do."""
        return

    # ---- code

    @abstractmethod
    def emit(self, fn: Function, symbol: str) -> str:
        """A kernel as text, with an entry point of that name."""

    @abstractmethod
    def compile(self, fns: Sequence[Function]) -> list[Entry]:
        """The kernels compiled, in order; those that are known already are not compiled again.

        Raises CompilerError: E301 (no compiler), E302 (it failed), E303 (unsafe cache folder),
        E304 (a native function does not compile).
        """

    @abstractmethod
    def is_cached(self, fn: Function) -> bool:
        """Whether a kernel can be had without a compiler run."""

    def load(self, key: str, symbol: str) -> Entry | None:
        """What an earlier process compiled, without a look at its text; None where it is gone."""
        del key, symbol
        return None

    # ---- memory

    @abstractmethod
    def allocate(self, ordinal: int, nbytes: int, zero: bool) -> tuple[Any, int]:
        """New memory of a device: what keeps it alive, and its address. Raises MemoryError."""

    @abstractmethod
    def view(
        self, owner: object, address: int, shape: Sequence[int],
        strides: Sequence[int] | None,
        dtype: Any, writable: bool,
    ) -> Any:  # fmt: skip
        """Memory as an array that the package computes with, without a copy.

        owner: what must live as long as the array or a view of it does. strides: in bytes, None for
        elements side by side in the order of rows.
        """

    def geometry(
        self, owner: object, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
    ) -> Any:
        """Where elements lie, as an array of NumPy: to be sliced, not to be read or written."""
        return self.view(owner, address, shape, strides, dtype, True)

    def export(
        self, owner: object, address: int, shape: Sequence[int], strides: Sequence[int], dtype: Any
    ) -> Any:
        """Memory as an array of the library that computes there (NumPy, CuPy), without a copy."""
        return self.view(owner, address, shape, strides, dtype, True)

    def taken(self, source: Any) -> Any:
        """An object with `__dlpack__` as an array of that library, without a copy."""
        raise NotImplementedError

    @abstractmethod
    def owner_of(self, view: Any) -> object | None:
        """The owner that was given with the memory of an array; None for foreign memory."""

    @abstractmethod
    def to_host(self, view: Any) -> NDArray[Any]:
        """An array as NumPy has it; a copy, unless the memory is the host's."""

    def reader(self, owner: object, lo: int, hi: int) -> Callable[[int, int], bytes]:
        """What gives copies of memory by address and size, between two addresses."""
        held = self.to_host(self.view(owner, lo, (hi - lo,), (1,), np.uint8, False))
        return lambda at, size: held[at - lo : at - lo + size].tobytes()

    @abstractmethod
    def put(self, view: Any, values: NDArray[Any]) -> None:
        """Writes NumPy values, of any type of numbers, into an array of this device."""

    def put_later(self, view: Any, values: NDArray[Any], pinned: object) -> None:
        """The same of memory that `allocate_pinned` made, which may be read later on."""
        del pinned
        self.put(view, values)

    def allocate_pinned(self, nbytes: int, zero: bool) -> tuple[Any, int]:
        """New memory of the host that this device reads by itself. Raises MemoryError."""
        raise NotImplementedError

    # ---- runs

    @abstractmethod
    def run(
        self,
        entry: Entry,
        dim: tuple[int, ...],
        args: bytes,
        limits: Limits,
        threads: tuple[int, int] | None = None,
        journal: Journal | None = None,
        spare: Callable[[], Entry] | None = None,
    ) -> Outcome:
        """Runs a kernel over a grid of at least one thread.

        args: the arguments as kernels read them (see `engine.codegen.layout`). threads: the
        linear indices to run, begin and end. journal: what a run of the same threads wrote.
        spare: gives the form of an adjoint that saves less, for threads that exceed the limit.
        """

    def restless(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, journal: Journal | None = None
    ) -> Restless | None:
        """What gives a launch other results each time; None where its threads need no order here.

        journal: of an adjoint, what the run before left.
        """
        del entry, dim, args, journal
        return None

    def cached_launch(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits,
        marks: Marks | None = None,
    ) -> CachedLaunch | None:  # fmt: skip
        """A short way to run launches like this one, without a journal; None for none."""
        del entry, dim, args, limits, marks
        return None
