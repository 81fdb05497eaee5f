"""Flattens launch arguments into the parameters of a kernel's IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.lang.structs import (
    Argument,
    IndexedArrayType,
    StructArrayType,
    StructType,
    UserType,
    leaves,
    record_dtype,
)
from engine.lang.vectors import Components
from engine.runtime.adopted import wrap
from engine.runtime.annotation import describe
from engine.runtime.array import array
from engine.runtime.indexed import indexedarray
from engine.runtime.links import spread
from engine.runtime.outside import misfit
from engine.runtime.pack import Mismatch, shown_value

Split = Callable[[Any], list[Any]]


class Arguments:
    """The parameters of a kernel as its user wrote them.

    names: of the parameters. first: where the leaves of each begin, and the end of all.
    linked: whether there are arrays of structs that hold arrays.
    """

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self.arguments = tuple(arguments)
        self.names = [a.name for a in arguments]
        self.first = [0]
        self._splits: list[Split] = []
        for a in arguments:
            self.first.append(self.first[-1] + len(leaves(a.type)))
            self._splits.append(_splitter(a.type, a.name))
        self.linked = any(_holds_linked(a.type) for a in arguments)

    def split(self, k: int, value: Any) -> list[Any]:
        """The leaves of argument k. Raises Mismatch."""
        return self._splits[k](value)

    def place(self, which: str | int) -> range | None:
        """The leaves of an argument, by its name, its position or a leaf's own name."""
        if isinstance(which, int):
            k = which if 0 <= which < len(self.names) else -1
        else:
            k = self.names.index(which) if which in self.names else -1
        return None if k < 0 else range(self.first[k], self.first[k + 1])


def _holds_linked(t: UserType) -> bool:
    if isinstance(t, StructType):
        return any(_holds_linked(f) for f in t.fields.values())
    element = t.element if isinstance(t, (StructArrayType, IndexedArrayType)) else None
    return isinstance(element, StructType) and element.linked


def _splitter(t: UserType, path: str) -> Split:
    """path: the name of the argument, or of the field in it."""
    if isinstance(t, StructType):
        return _struct(t, path)
    if isinstance(t, StructArrayType):
        return _structs(t, path)
    if isinstance(t, IndexedArrayType):
        return _indexed(t, path)
    return lambda value: [value]


def _struct(t: StructType, path: str) -> Split:
    fields = [(name, _splitter(f, f"{path}.{name}")) for name, f in t.fields.items()]

    def split(value: Any) -> list[Any]:
        if getattr(type(value), "__ir_type__", None) is not t:
            raise _no_value_of(t, value)
        held = value.__dict__
        out: list[Any] = []
        for name, inner in fields:
            item = held[name]
            # A vector can change later, which must not change what was launched.
            out += [+item] if isinstance(item, Components) else inner(item)
        return out

    return split


def _no_value_of(t: StructType, value: Any) -> Mismatch:
    """What is wrong with an argument that is no value of a struct."""
    own = getattr(type(value), "__ir_type__", None)
    if isinstance(own, StructType) and own.name == t.name:
        got = f"a value of another struct of the name {t.name}"
        return Mismatch("E202", got, _anew(t.name))
    return Mismatch("E202", shown_value(value), f"pass a value of the struct: {t.name}()")


def _anew(name: str) -> str:
    return f"where {name} was defined anew, define the kernel anew, too"


def _structs(t: StructArrayType, path: str) -> Split:
    count = len(leaves(t))

    def split(value: Any) -> list[Any]:
        if value is None:
            return [None] * count
        if isinstance(value, np.ndarray):
            why = misfit(value, record_dtype(t.element))
            if why is not None:
                raise Mismatch("E202", *why)
            address = value.__array_interface__["data"][0]
            value = array._make(
                wrap(value, address=address), address, value.shape, value.strides, t.element
            )
        _same_array(value, t, array)
        return spread(value, path)

    return split


def _indexed(t: IndexedArrayType, path: str) -> Split:
    structs = isinstance(t.element, StructType)
    inner = _splitter(StructArrayType(t.element, t.ndim), path) if structs else (  # type: ignore[arg-type]
        lambda value: [value]
    )  # fmt: skip

    def split(value: Any) -> list[Any]:
        if value is None:
            return [*([None] * (len(leaves(t)) - t.ndim)), *[None] * t.ndim]
        _same_array(value, t, indexedarray)
        return [*inner(value.data), *value.tables]

    return split


def _same_array(value: Any, t: StructArrayType | IndexedArrayType, cls: type) -> None:
    """Raises Mismatch for an array of another type."""
    have = getattr(value, "_ir", None)
    if isinstance(value, cls) and have == t:
        return
    if have is None:
        raise Mismatch("E202", shown_value(value))
    same = isinstance(value, cls) and have.element == t.element
    if not same and describe(have) == describe(t):
        raise Mismatch(
            "E202", "an array of another struct of that name", _anew(describe(t.element))
        )
    help_text = "" if same or cls is array else "make one: indexedarray(array, [indices])"
    raise Mismatch("E203" if same else "E202", describe(have), help_text)
