"""The atoms of statements: variables and constants."""

from __future__ import annotations

from typing import ClassVar, Literal

from engine.classes import dataclass
from engine.diagnostics import Span
from engine.lang.types import Type, ValueType

# How the accesses of a compiled kernel are watched: see `engine.ir.sites`.
Watch = Literal["", "bounds", "races", "silent"]


@dataclass(frozen=True, slots=True)
class Var:
    """A variable. Names are unique in a function; two equal Vars are the same variable."""

    name: str
    type: Type
    mutable: bool = False

    def __str__(self) -> str:
        return f"%{self.name}"

    # Asked millions of times. The name says nearly all, and a string remembers its hash.
    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Const:
    """A literal: a Python number for scalars, a (nested) tuple for vectors and matrices."""

    value: bool | int | float | tuple[object, ...]
    type: ValueType

    def __str__(self) -> str:
        return f"{self.value!r}:{self.type}"

    # 0.0 == -0.0 == False in Python: compare what will be printed instead.
    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const)
            and self.type == other.type
            and repr(self.value) == repr(other.value)
        )

    def __hash__(self) -> int:
        return hash((repr(self.value), self.type))


Atom = Var | Const


class Stmt:
    """A statement. What its fields are is said by names of fields, one or a tuple each.

    DEFINES: variables that it writes. READS: atoms that it reads, arrays included, not
    counting those of nested blocks. NESTED: its blocks, in source order. EFFECT: something
    outside of the thread's variables comes to be different. LEAVES: what follows it in its
    block does not run. text: its line in the printed form; of nested blocks, what stands
    before, between and after them.
    """

    __slots__ = ()
    DEFINES: ClassVar[tuple[str, ...]] = ()
    READS: ClassVar[tuple[str, ...]] = ()
    NESTED: ClassVar[tuple[str, ...]] = ()
    EFFECT: ClassVar[bool] = False
    LEAVES: ClassVar[bool] = False
    span: Span

    def text(self) -> tuple[str, ...]:
        raise NotImplementedError
