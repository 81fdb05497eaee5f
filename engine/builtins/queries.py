"""Queries of geometry: builtins that look into tables outside of their arguments.

A kernel that uses one has further parameters, the arrays of the tables, which the launch fills in
from the objects that are alive (`engine.runtime.geometry`). So a query reads arrays as all other
code does, and nothing else about it is special: its functions are written in the kernel language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from typing import Any, TypeVar

from engine.builtins.composite import helper
from engine.classes import dataclass
from engine.lang.structs import StructType
from engine.lang.types import INT32, ArrayType, Type

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Query:
    """One overload.

    func: a function in the kernel language: of the table, if there is one, and the arguments.
    types: of the arguments; names: of them, and defaults of the last ones. updates: positions of
    arguments that the call changes: func returns their new values after its results.
    """

    user: str
    func: Callable[..., Any]
    table: StructType | None
    types: tuple[Type | StructType, ...]
    names: tuple[str, ...]
    defaults: tuple[float | int, ...]
    updates: tuple[int, ...]
    doc: str
    gradient: str

    @property
    def shown(self) -> str:
        """How it is called, with types."""
        named = [f"{n}: {t}" for n, t in zip(self.names, self.types, strict=True)]
        first = len(named) - len(self.defaults)
        named[first:] = [f"{n} = {d}" for n, d in zip(named[first:], self.defaults, strict=True)]
        return f"{self.user}({', '.join(named)})"


QUERIES: dict[str, list[Query]] = {}
# The tables that there are, by name: structs of users have no such names.
TABLES = frozenset(
    [*(f"geometry.{x}_data" for x in ("bvh", "hash_grid", "mesh")), "links.argument_data"]
)
# Where arguments lie that structs in arrays are made to hold: see `engine.ir.links`.
ARGUMENTS = StructType("links.argument_data", {"starts": ArrayType(INT32, 1)})
# What goes round in `for i in q:`, with the builtin that takes the next step.
STEPS: dict[StructType, str] = {}


def query(
    doc: str,
    table: StructType | None,
    types: Sequence[Type | StructType],
    *,
    user: str = "",
    updates: tuple[int, ...] = (),
    gradient: str = "none, its results are integers",
) -> Callable[[F], F]:
    """Registers a function as an overload of `user` (its own name where left out).

    gradient: what its derivative is. Raises ValueError for types that do not fit.
    """

    def make(func: F) -> F:
        given = list(signature(func).parameters.values())[0 if table is None else 1 :]
        if len(given) != len(types):
            raise ValueError(f"query {func.__name__!r}: {len(types)} types of {len(given)}")
        defaults = tuple(p.default for p in given if p.default is not Parameter.empty)
        name = user or func.__name__
        names = tuple(p.name for p in given)
        made = Query(
            name, helper(func), table, tuple(types), names, defaults, updates, doc, gradient
        )  # fmt: skip
        if table is not None and table.name not in TABLES:
            raise ValueError(f"query {name!r}: there is no table {table.name!r}")
        QUERIES.setdefault(name, []).append(made)
        return func

    return make


def kernel_type(name: str, **fields: Any) -> StructType:
    """A struct of the library. Until the host gives it a class, this one stands for it."""
    made = StructType(name, fields)
    made.cls = type(name, (), {"__ir_type__": made})
    return made
