"""The data of an archive. Indices count from 0; -1 stands for nothing.

Types are texts: `float32`, `vec<3,float32>`, `mat<2,2,float64>`, `quat<float32>`,
`array<vec<3,float32>,1>`, `struct<0>`, `structs<0,1>` (an array of structs), `indexed<float32,2>`.
A constant is a list of texts, floats in hexadecimal, in the order of its components.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol

from engine.autograd.facts import Fact
from engine.classes import dataclass

if TYPE_CHECKING:
    import numpy as np

# File (a number), line, column, end line, end column.
Place = tuple[int, int, int, int, int]
NOWHERE: Place = (-1, 0, 0, 0, 0)


class ArchiveError(ValueError):
    """An archive does not hold together: the text says where."""


class Sink(Protocol):
    """Where contents of arrays are kept, by digests of what they hold."""

    def put(self, values: np.ndarray[Any, Any]) -> str:
        """Keeps an array, and gives its digest."""


class Supply(Protocol):
    """Where contents of arrays were kept."""

    def get(
        self, digest: str, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> np.ndarray[Any, Any]:
        """An array that was kept. Raises ArchiveError unless it is of that shape and type."""


class Store(Sink, Supply, Protocol):
    """Both: what is made of contents is kept with them."""


@dataclass(frozen=True, slots=True)
class AtomData:
    """A variable (name, type, mutable), or a constant (an empty name, type, numbers)."""

    name: str
    type: str
    mutable: bool = False
    numbers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementData:
    """A statement. atoms: of each field that it writes or reads, in the order of its class.

    Each is a list of positions in the function's table; `absent` names fields that are None.
    word: the operation, or the kind of atomic or message. func: of a call.
    """

    kind: str
    span: Place
    atoms: tuple[tuple[int, ...], ...] = ()
    absent: tuple[int, ...] = ()
    blocks: tuple[tuple[StatementData, ...], ...] = ()
    word: str = ""
    pieces: tuple[str, ...] = ()
    formats: tuple[str, ...] = ()
    func: int = -1


@dataclass(frozen=True, slots=True)
class NativeData:
    """C++ text in place of a body; see `engine.ir.nodes.Native`."""

    text: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    updates: tuple[str, ...]
    inputs: tuple[str, ...] | None
    absent: tuple[str, ...]
    pure: bool


@dataclass(frozen=True, slots=True)
class NamedType:
    """A field of a struct, or a parameter as its user wrote it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class StructData:
    """A struct. Its fields name structs that come before it."""

    name: str
    fields: tuple[NamedType, ...]


@dataclass(frozen=True, slots=True)
class UnassignedData:
    """A read of a variable without a value; see `engine.ir.unassigned`."""

    name: str
    variables: tuple[str, ...]
    span: Place


@dataclass(frozen=True, slots=True)
class FunctionData:
    """A kernel or function; it names functions that come before it. atoms: what it consists of."""

    name: str
    params: tuple[int, ...]
    results: tuple[str, ...]
    atoms: tuple[AtomData, ...]
    body: tuple[StatementData, ...]
    span: Place
    is_kernel: bool = False
    grad: int = -1
    replay: int = -1
    gradients: tuple[str, ...] = ()
    native: NativeData | None = None
    mirrored: bool = False
    arguments: tuple[NamedType, ...] = ()
    unassigned: tuple[UnassignedData, ...] = ()


@dataclass(frozen=True, slots=True)
class KernelData:
    """A kernel as it was launched. why: where it cannot be packed, the reason, and no function."""

    name: str
    function: int
    enable_backward: bool = True
    debug: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class ArrayData:
    """An array as its geometry. address, strides: in bytes. root: the memory of its gradient."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: str
    requires_grad: bool
    root: int


@dataclass(frozen=True, slots=True)
class HeldData:
    """What an array held, field by field where it is one of structs. why: where that is lost.

    array: which; digests: of its leaves, in order.
    """

    array: int
    digests: tuple[str, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentData:
    """An argument: an array (-1 for None), or numbers as in a constant. passed: its text.

    held: a position among the archive's contents.
    """

    array: int = -1
    numbers: tuple[str, ...] = ()
    held: int = -1
    passed: str = ""


@dataclass(frozen=True, slots=True)
class RecordData:
    """An operation on a tape. kind: `launch`, `function`, or that of a `LinearRecord`.

    arguments: of a launch; of what is none, its numbers. arrays, written, source: of what is none.
    in_order: whether its threads ran one after the other, or as if they did: not on a GPU.
    """

    kind: str
    name: str
    site: Place
    kernel: int = -1
    dim: tuple[int, ...] = ()
    arguments: tuple[ArgumentData, ...] = ()
    inputs: int = 0
    wrt: tuple[str, ...] = ()
    aliased: tuple[str, ...] = ()
    arrays: tuple[int, ...] = ()
    written: tuple[int, ...] = ()
    source: int = -1
    in_order: bool = True


@dataclass(frozen=True, slots=True)
class OtherData:
    """Contents of a record's parameter at the backward pass. where: a mask's digest, or empty.

    held: where the mask is empty; else values, by digest, of the elements in the mask.
    """

    record: int
    parameter: int
    held: int = -1
    where: str = ""
    values: str = ""
    count: int = 0


@dataclass(frozen=True, slots=True)
class BackwardData:
    """A backward pass; see `engine.tape.captured_pass.Backward`."""

    records: int
    seeded: tuple[int, ...]
    restored: bool
    changed: tuple[OtherData, ...]
    read: tuple[OtherData, ...]


@dataclass(frozen=True, slots=True)
class TapeData:
    """A tape: its operations, and what was seen while its program ran."""

    records: tuple[RecordData, ...]
    arrays: tuple[ArrayData, ...]
    backward: BackwardData | None
    passes: int
    facts: tuple[Fact, ...] = ()
    contents: tuple[HeldData, ...] = ()


@dataclass(frozen=True, slots=True)
class Archive:
    """Tapes, and what they share: kernels, functions, structs, and names of files."""

    files: tuple[str, ...]
    structs: tuple[StructData, ...]
    functions: tuple[FunctionData, ...]
    kernels: tuple[KernelData, ...]
    tapes: tuple[TapeData, ...]
    overwrites: Literal["restore", "present", "warn", "error"] = "restore"
