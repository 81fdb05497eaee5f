"""The parameters of a kernel as programs read them: `kernel.adj.args`."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from engine.classes import dataclass
from engine.lang import generics
from engine.lang.generics import Pattern
from engine.lang.structs import IndexedArrayType, StructArrayType, TupleType, UserType
from engine.lang.types import ArrayType
from engine.lang.values import value_class
from engine.runtime.annotation import ArrayAnnotation
from engine.runtime.indexed import IndexedArrayAnnotation

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Parameter:
    """label: its name. type: what an annotation would be; None where the kernel's is wrong."""

    label: str
    type: Any
    _kernel: Kernel = field(repr=False, compare=False)

    @property
    def is_read(self) -> bool:
        """Whether launches read elements of the array, or of one in the struct.

        Raises KernelError as a launch does.
        """
        return self._among(self._kernel.plan.reads)

    @property
    def is_write(self) -> bool:
        """Whether launches write elements of it, as above."""
        return self._among(self._kernel.plan.writes)

    def _among(self, places: tuple[int, ...]) -> bool:
        names = (self._kernel.plan.params[i].name for i in places)
        return any(name.partition(".")[0] == self.label for name in names)


@dataclass(frozen=True, slots=True)
class Parameters:
    """What Warp keeps its adjoint code with. args: the parameters, in order."""

    args: tuple[Parameter, ...]


def parameters_of(kernel: Kernel) -> Parameters:
    """The parameters of a kernel, or of an instance of a generic one."""
    signature = kernel.signature
    types = kernel.types or signature.types.values()
    return Parameters(
        tuple(
            Parameter(name, _annotation(found, signature.patterns.get(name)), kernel)
            for name, found in zip(signature.types, types, strict=True)
        )
    )


def _annotation(found: UserType | None, pattern: Pattern | None) -> Any:
    if found is None:
        if pattern is None:
            return None
        kinds: dict[str, Any] = {"iuf": generics.Scalar, "f": generics.Float, "iu": generics.Int}
        of = kinds.get(pattern.kinds, Any)
        return ArrayAnnotation(of, pattern.ndim) if pattern.role == "array" else of
    if isinstance(found, IndexedArrayType):
        return IndexedArrayAnnotation(value_class(found.element), found.ndim)
    if isinstance(found, (ArrayType, StructArrayType)):
        return ArrayAnnotation(value_class(found.element), found.ndim)
    return None if isinstance(found, TupleType) else value_class(found)
