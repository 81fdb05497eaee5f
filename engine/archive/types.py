"""Types as texts, and back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from engine.archive.data import ArchiveError, NamedType, StructData
from engine.lang.structs import (
    COMPOUND,
    Argument,
    ElementType,
    FieldType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    UserType,
)
from engine.lang.types import (
    BY_NAME,
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
)
from engine.runtime.annotation import MAX_DIMS, array_type

_LARGEST = 4096  # components of a vector or matrix
_STRUCT = 1 << 20  # bytes of a struct
_NAME = re.compile(r"[\w.]{1,1000}")


class TypeWriter:
    """Writes types, and keeps the structs that they name."""

    def __init__(self) -> None:
        self.structs: list[StructData] = []
        self._known: dict[int, int] = {}
        self._alive: list[StructType] = []

    def text(self, t: UserType) -> str:
        """A type as text."""
        if isinstance(t, StructType):
            return f"struct<{self._struct(t)}>"
        if isinstance(t, StructArrayType):
            return f"structs<{self._struct(t.element)},{t.ndim}>"
        if isinstance(t, IndexedArrayType):
            return f"indexed<{self.text(t.element)},{t.ndim}>"
        if isinstance(t, COMPOUND):
            raise TypeError(f"captures have no text for {t}")
        return str(t)

    def named(self, arguments: Sequence[Argument]) -> tuple[NamedType, ...]:
        """Parameters as their user wrote them."""
        return tuple(NamedType(a.name, self.text(a.type)) for a in arguments)

    def _struct(self, t: StructType) -> int:
        found = self._known.get(id(t))
        if found is None:
            fields = tuple(NamedType(f, self.text(k)) for f, k in t.fields.items())
            found = self._known[id(t)] = len(self.structs)
            self.structs.append(StructData(t.name, fields))
            self._alive.append(t)
        return found


class TypeReader:
    """Reads types. Raises ArchiveError for texts that are none."""

    def __init__(self, structs: Sequence[StructData]) -> None:
        self._structs: list[StructType] = []
        for s in structs:
            fields = {name_of(f.name): self.user(f.type) for f in s.fields}
            if len(fields) != len(s.fields):
                raise ArchiveError(f"struct {s.name[:40]!r} has a field twice")
            kind = StructType(name_of(s.name), fields)
            if kind.size > _STRUCT:
                raise ArchiveError(f"struct {s.name[:40]!r} is larger than {_STRUCT} bytes")
            # Stands for the user's class, which is not there.
            kind.cls = type(kind.name, (), {"__ir_type__": kind})
            self._structs.append(kind)

    def value(self, text: str) -> ValueType:
        """A scalar, a vector or a matrix."""
        found = self._value(text)
        if found is None:
            raise ArchiveError(f"{text[:60]!r} is not a type of a value")
        return found

    def ir(self, text: str) -> Type:
        """A type that the IR has."""
        found = self.user(text)
        if isinstance(found, (ScalarType, VectorType, MatrixType, ArrayType)):
            return found
        raise ArchiveError(f"{text[:60]!r} is not a type of a variable")

    def element(self, text: str) -> ElementType:
        """What an array can consist of."""
        return self._element(text)

    def user(self, text: str) -> FieldType:
        """A type of a parameter or field."""
        head, _, rest = text.partition("<")
        if head in ("array", "structs", "indexed") and rest.endswith(">"):
            inner, _, count = rest[:-1].rpartition(",")
            ndim = _number(count, 1, MAX_DIMS)
            if head == "structs":
                return StructArrayType(self._struct(inner), ndim)
            if head == "indexed":
                return IndexedArrayType(self._element(inner), ndim)
            return array_type(self.value(inner), ndim)
        return self._element(text)

    def _element(self, text: str) -> ElementType:
        if text.startswith("struct<") and text.endswith(">"):
            return self._struct(text[len("struct<") : -1])
        return self.value(text)

    def _struct(self, number: str) -> StructType:
        return self._structs[_number(number, 0, len(self._structs) - 1)]

    def _value(self, text: str) -> ValueType | None:
        if text in BY_NAME:
            return BY_NAME[text]
        match = re.fullmatch(r"(vec|mat|quat|transform)<(?:(\d+),)?(?:(\d+),)?(\w+)>", text)
        if match is None or match[4] not in BY_NAME:
            return None
        kind, scalar = match[1], BY_NAME[match[4]]
        sizes = [_number(x, 1, _LARGEST) for x in (match[2], match[3]) if x is not None]
        if kind == "vec" and len(sizes) == 1:
            return VectorType(scalar, sizes[0])
        if kind == "mat" and len(sizes) == 2 and sizes[0] * sizes[1] <= _LARGEST:
            return MatrixType(scalar, sizes[0], sizes[1])
        if kind in ("quat", "transform") and not sizes:
            return VectorType(scalar, 4 if kind == "quat" else 7, cast(Any, kind))
        return None


def plain(text: str) -> str:
    """The name that stands for a kernel's in an archive: users may give them any."""
    return re.sub(r"[^\w.]", "_", text)[:1000] or "_"


def name_of(text: str) -> str:
    """A name of a variable, field or function. Raises ArchiveError: it would go into C++ text."""
    if _NAME.fullmatch(text) is None:
        raise ArchiveError(f"{text[:60]!r} is not a name")
    return text


def _number(text: str, least: int, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise ArchiveError(f"{text[:40]!r} is not a number from {least} to {most}")
    return int(text)
