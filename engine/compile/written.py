"""IR as text, and back: a numbered table of objects.

Whatever is one object stays one. Only classes that are named here are ever made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from engine import builtins as _operations  # fills the table of operations, which IR names
from engine.ad.threads import Access, Collected, affine
from engine.compile.remembered import Damaged, type_data, type_of
from engine.diagnostics import Span
from engine.ir import links, unassigned
from engine.ir import nodes as n
from engine.lang.structs import Argument, UserType
from engine.lang.types import ArrayType, MatrixType, ScalarType, VectorType

assert _operations
T = TypeVar("T")
_PLAIN = (str, int, bool, type(None))
_TYPES = (ScalarType, VectorType, MatrixType, ArrayType)
_STATEMENTS = (
    n.Let, n.Set, n.Load, n.Store, n.Atomic, n.Message, n.Call, n.If, n.For, n.While, n.Break,
    n.Continue, n.Return,
)  # fmt: skip
_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        Span, n.Var, n.Const, *_STATEMENTS, n.Native, n.Function, links.Links,
        unassigned.UnassignedRead, affine.Poly, affine.Form, affine.Axis, affine.Turn, affine.Part,
        affine.Between, affine.Given, affine.Trips, affine.Need, affine.Value, affine.Fact,
        Access, Collected,
    )
}  # fmt: skip


class NotWritten(Exception):
    """Something has no text."""


def write(x: object, kind: type, given: Mapping[str, UserType]) -> str:
    """An object of a class, which is IR. given: the user's types of a kernel's parameters.

    Raises NotWritten.
    """
    assert isinstance(x, kind)
    writer = _Writer(given)
    try:
        writer.of(x)
    except RecursionError:
        raise NotWritten from None
    return json.dumps(writer.table, separators=(",", ":"))


def read(text: str, kind: type[T], given: Mapping[str, UserType]) -> T:
    """The object that a text stands for. Raises Damaged."""
    try:
        made: list[Any] = []
        for row in json.loads(text):
            made.append(_made(row, made, given))
        found = made[-1]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise Damaged from None
    if not isinstance(found, kind):
        raise Damaged
    return found


class _Writer:
    def __init__(self, given: Mapping[str, UserType]) -> None:
        self.table: list[Any] = []
        self._given = given
        self._objects: dict[int, int] = {}
        self._values: dict[str, int] = {}
        self._alive: list[object] = []

    def of(self, x: Any) -> int:
        """The number of an object in the table."""
        found = self._objects.get(id(x))
        if found is not None:
            return found
        row = self._row(x)
        if isinstance(x, (n.Function, n.Stmt)):  # told apart by identity
            found = len(self.table)
            self.table.append(row)
        else:
            key = json.dumps(row)
            found = self._values.setdefault(key, len(self.table))
            if found == len(self.table):
                self.table.append(row)
        self._objects[id(x)] = found
        self._alive.append(x)
        return found

    def _row(self, x: Any) -> list[Any]:
        if type(x) in _PLAIN:
            return ["=", x]
        if type(x) is float:
            sign = "-" if math.copysign(1.0, x) < 0 else ""
            return ["float", f"{sign}nan" if x != x else x.hex()]
        if type(x) is tuple:
            return ["tuple", *map(self.of, x)]
        if type(x) is frozenset:
            return ["set", *sorted(map(self.of, x))]
        if isinstance(x, _TYPES):
            return ["type", type_data(x)]
        if isinstance(x, Argument):
            if isinstance(x.type, _TYPES):
                return ["argument", x.name, type_data(x.type)]
            if self._given.get(x.name) == x.type:
                return ["argument", x.name, None]
            raise NotWritten
        if _CLASSES.get(type(x).__name__) is not type(x):
            raise NotWritten
        if isinstance(x, n.Function):
            if x.tables or x.watch or x.adjoints or x.derivative_of is not None:
                raise NotWritten
            x = replace(x, returns=())  # of no use to any pass
        return [type(x).__name__, *(self.of(getattr(x, f.name)) for f in fields(x))]


def _made(row: Any, made: list[Any], given: Mapping[str, UserType]) -> Any:
    kind, *rest = row
    if kind == "=" and type(rest[0]) in _PLAIN:
        return rest[0]
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "type":
        return type_of(rest[0])
    if kind == "argument":
        name, data = rest
        return Argument(name, given[name] if data is None else type_of(data))
    parts = [made[_place(k, len(made))] for k in rest]
    if kind == "tuple":
        return tuple(parts)
    if kind == "set":
        return frozenset(parts)
    cls: Callable[..., Any] = _CLASSES[kind]
    return cls(*parts)


def _place(k: Any, count: int) -> int:
    if type(k) is not int or not 0 <= k < count:
        raise Damaged
    return k
