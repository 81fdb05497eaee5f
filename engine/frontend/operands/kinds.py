"""Operands taken apart into a static kind and atoms, and put together again.

A kind says everything about a struct, a view or an array but which variables it is made
of: it is the type of a parameter in an instance of a function, and what the values of
one variable must share. `decompose` and `compose` are each other's inverse.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.classes import dataclass
from engine.frontend.operands.operand import (
    Absent,
    Choice,
    Dim,
    Known,
    LiteralTable,
    Operand,
    Root,
    Several,
    Span,
    Struct,
    Value,
    View,
)
from engine.ir.nodes import Atom, Const, Var
from engine.lang.structs import (
    ARRAYS,
    ElementType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    TupleType,
    UserType,
    array_of,
    leaves,
)
from engine.lang.types import (
    FLOAT32,
    INT32,
    ArrayType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)


@dataclass(frozen=True, slots=True)
class StructKind:
    """A struct, and what its fields hold."""

    type: StructType
    items: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class TupleKind:
    """Several values."""

    items: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class ViewKind:
    """A view. dims: for each dimension of the root `i` (one place), `s` (a span) or `w` (all).

    shape: of a local array, whose `number` tells local arrays among arguments apart.
    pooled: it is a part of a pool.
    """

    element: ElementType
    dims: str
    indexed: bool = False
    shape: tuple[int, ...] = ()
    number: int = 0
    pooled: bool = False

    @property
    def ndim(self) -> int:
        """Dimensions of the view."""
        return len(self.dims) - self.dims.count("i")

    @property
    def by_value(self) -> bool:
        """True for a whole local array, which assignment copies; other views share memory."""
        return bool(self.shape) and set(self.dims) == {"w"}


@dataclass(frozen=True, slots=True)
class AbsentKind:
    """A field for an array that holds none."""

    type: UserType


@dataclass(frozen=True, slots=True)
class ChoiceKind:
    """One of several arrays, and the type of what says which."""

    selector: ScalarType
    items: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class LiteralKind:
    """A literal of floats as a parameter or result: its numbers. It is made of the number as
    float32 and, where there are several, of the place of the one that it is. exact: see
    `LiteralTable`.
    """

    items: tuple[Const, ...]
    exact: bool


# A function or type that is passed is known, and is no parameter.
Kind = Type | StructKind | TupleKind | ViewKind | AbsentKind | ChoiceKind | LiteralKind | Known
# What is made of any number of atoms.
COMPOUND_KINDS = (StructKind, TupleKind, ViewKind, AbsentKind, ChoiceKind, LiteralKind)


@dataclass(frozen=True, slots=True)
class Slot:
    """One atom of a kind. suffix: of its name. static: the array itself, not a value."""

    suffix: str
    type: Type
    static: bool = False


def kind_of_type(t: UserType) -> Kind:
    """What a parameter of an annotated type is when nothing else is known."""
    if isinstance(t, StructType):
        return StructKind(t, tuple(kind_of_type(f) for f in t.fields.values()))
    if isinstance(t, (StructArrayType, IndexedArrayType)):
        return ViewKind(t.element, "w" * t.ndim, isinstance(t, IndexedArrayType))
    if isinstance(t, TupleType):
        return TupleKind(tuple(kind_of_type(i) for i in t.items))
    return t


def local_type(element: ValueType, shape: Sequence[int]) -> VectorType:
    """The vector that holds all components of a local array."""
    return VectorType(scalar_of(element), math.prod((*shape, *shape_of(element))))


def slots(kind: Kind) -> tuple[Slot, ...]:
    """The atoms that a value of the kind is made of, in order."""
    return tuple(_slots(kind, ""))


def _slots(kind: Kind, suffix: str) -> Iterator[Slot]:
    if isinstance(kind, StructKind):
        for field, item in zip(kind.type.fields, kind.items, strict=True):
            yield from _slots(item, f"{suffix}.{field}")
    elif isinstance(kind, TupleKind):
        for k, item in enumerate(kind.items):
            yield from _slots(item, f"{suffix}.{k}")
    elif isinstance(kind, ChoiceKind):
        yield Slot(f"{suffix}.which", kind.selector)
        for k, item in enumerate(kind.items):
            yield from _slots(item, f"{suffix}.{k}")
    elif isinstance(kind, ViewKind):
        yield from _view_slots(kind, suffix)
    elif isinstance(kind, LiteralKind):
        yield Slot(suffix, FLOAT32)
        if len(kind.items) > 1:
            yield Slot(f"{suffix}.place", INT32)
    elif not isinstance(kind, (AbsentKind, Known)):
        yield Slot(suffix, kind, isinstance(kind, ArrayType))


def _view_slots(kind: ViewKind, suffix: str) -> Iterator[Slot]:
    if kind.shape:
        for path, t in element_leaves(kind.element):
            yield Slot(_suffix(suffix, path), local_type(t, kind.shape), not kind.by_value)
    else:
        for leaf in leaves(array_of(kind.element, 1 if kind.pooled else len(kind.dims))):
            yield Slot(_suffix(suffix, leaf.path), leaf.type, True)
    if kind.pooled:
        yield Slot(f"{suffix}.0_first", INT32)
        yield from (Slot(f"{suffix}.{d}_size", INT32) for d in range(len(kind.dims)))
    if kind.indexed:
        for d in range(len(kind.dims)):
            yield Slot(f"{suffix}.{d}_indices", ArrayType(INT32, 1), True)
    for d, shown in enumerate(kind.dims):
        if shown == "i":
            yield Slot(f"{suffix}.{d}", INT32)
        elif shown == "s":
            yield from (Slot(f"{suffix}.{d}_{part}", INT32) for part in ("start", "step", "count"))


def _suffix(suffix: str, path: tuple[str, ...]) -> str:
    return suffix + "".join(f".{p}" for p in path)


def element_leaves(element: ElementType) -> list[tuple[tuple[str, ...], ValueType]]:
    """Paths and types of the leaves of an element, which holds no arrays."""
    if not isinstance(element, StructType):
        return [((), element)]
    found = []
    for leaf in leaves(element):
        assert not isinstance(leaf.type, ArrayType)
        found.append((leaf.path, leaf.type))
    return found


def leaf_count(element: ElementType) -> int:
    """How many arrays an array of the elements is to the IR."""
    return len(leaves(array_of(element, 1)))


def decompose(got: Operand) -> tuple[Kind, tuple[Atom, ...]] | None:
    """A value, struct, tuple or view as its kind and atoms; None for any other operand."""
    if isinstance(got, Value):
        return got.type, (got.atom,)
    if isinstance(got, Absent):
        return AbsentKind(got.type), ()
    if isinstance(got, Known):
        return got, ()
    if isinstance(got, (Struct, Several)):
        parts = [decompose(item) for item in got.items]
        found = [p for p in parts if p is not None]
        if len(found) != len(parts):
            return None
        kinds = tuple(k for k, _ in found)
        atoms = tuple(a for _, atoms in found for a in atoms)
        return (StructKind(got.type, kinds) if isinstance(got, Struct) else TupleKind(kinds)), atoms
    if isinstance(got, View):
        return _decompose_view(got)
    if isinstance(got, Choice):
        t = got.selector.type
        chosen = [decompose(item) for item in got.options]
        assert isinstance(t, ScalarType)
        kinds = tuple(p[0] for p in chosen if p is not None)
        return ChoiceKind(t, kinds), (got.selector, *(a for p in chosen if p for a in p[1]))
    return None


def _decompose_view(got: View) -> tuple[Kind, tuple[Atom, ...]]:
    dims = ""
    atoms: list[Atom] = [*got.root.leaves, *got.root.tables, *got.root.place]
    for d in got.dims:
        if d is None:
            dims += "w"
        elif isinstance(d, Span):
            dims += "s"
            atoms += [d.start, d.step, d.count]
        else:
            dims += "i"
            atoms.append(d)
    root = got.root
    kind = ViewKind(root.element, dims, bool(root.tables), root.shape, pooled=bool(root.place))
    return kind, tuple(atoms)


def compose(kind: Kind, atoms: Sequence[Atom]) -> Operand:
    """The operand of a kind that is made of these atoms."""
    left = iter(atoms)
    made = _compose(kind, left)
    assert next(left, None) is None
    return made


def _compose(kind: Kind, atoms: Iterator[Atom]) -> Operand:
    if isinstance(kind, StructKind):
        return Struct(kind.type, tuple(_compose(item, atoms) for item in kind.items))
    if isinstance(kind, TupleKind):
        return Several(tuple(_compose(item, atoms) for item in kind.items))
    if isinstance(kind, AbsentKind):
        return Absent(kind.type)
    if isinstance(kind, ChoiceKind):
        return Choice(next(atoms), tuple(_compose(item, atoms) for item in kind.items))
    if isinstance(kind, Known):
        return kind
    if isinstance(kind, LiteralKind):
        return _compose_literal(kind, atoms)
    if not isinstance(kind, ViewKind):
        return Value(next(atoms))
    roots = tuple(next(atoms) for _ in range(leaf_count(kind.element)))
    tables = tuple(next(atoms) for _ in kind.dims) if kind.indexed else ()
    place = tuple(next(atoms) for _ in (0, *kind.dims)) if kind.pooled else ()
    dims: list[Dim] = []
    for shown in kind.dims:
        if shown == "w":
            dims.append(None)
        elif shown == "i":
            dims.append(next(atoms))
        else:
            dims.append(Span(next(atoms), next(atoms), next(atoms)))
    return View(Root(kind.element, len(kind.dims), roots, tables, kind.shape, place), tuple(dims))


def _compose_literal(kind: LiteralKind, atoms: Iterator[Atom]) -> Value:
    atom = next(atoms)
    items = tuple(Value(c, weak=True) for c in kind.items)
    if len(items) == 1:
        return items[0]
    axes = ((next(atoms), len(items)),)
    return Value(atom, weak=True, table=LiteralTable(axes, items, kind.exact))


def as_view(got: Operand) -> View | None:
    """An array of any form as a view; None for anything else."""
    if isinstance(got, View):
        return got
    if isinstance(got, Value) and isinstance(got.type, ArrayType):
        return View(Root(got.type.element, got.type.ndim, (got.atom,)), (None,) * got.type.ndim)
    return None


def plain(view: View) -> Operand:
    """The view, or the array itself where it shows the whole of an ordinary one."""
    root = view.root
    special = root.shape or root.tables or root.place
    ordinary = not (special or isinstance(root.element, StructType))
    return Value(root.leaves[0]) if ordinary and view.is_whole else view


def user_type(kind: Kind) -> UserType:
    """The type that a user would annotate a value of the kind with."""
    assert not isinstance(kind, Known)
    if isinstance(kind, (StructKind, AbsentKind)):
        return kind.type
    if isinstance(kind, TupleKind):
        return TupleType(tuple(user_type(k) for k in kind.items if not isinstance(k, Known)))
    if isinstance(kind, ChoiceKind):
        return user_type(kind.items[0])
    if isinstance(kind, ViewKind):
        if kind.indexed and kind.ndim:
            return IndexedArrayType(kind.element, kind.ndim)
        return array_of(kind.element, max(kind.ndim, 1))
    return FLOAT32 if isinstance(kind, LiteralKind) else kind


def accepts(want: UserType, have: Kind) -> bool:
    """Whether a parameter of a type takes a value of a kind. Arrays fit by element and ndim."""
    if isinstance(want, StructType):
        return isinstance(have, StructKind) and have.type is want
    if isinstance(want, ARRAYS):
        if isinstance(have, ChoiceKind):
            return all(accepts(want, item) for item in have.items)
        if isinstance(have, ArrayType) or (isinstance(have, ViewKind) and have.ndim):
            return have.element == want.element and have.ndim == want.ndim
        return isinstance(have, AbsentKind) and have.type == want
    if isinstance(want, TupleType) and isinstance(have, TupleKind):
        same = len(want.items) == len(have.items)
        return same and all(accepts(w, h) for w, h in zip(want.items, have.items, strict=True))
    return want == have


def static_atoms(kind: Kind, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
    """The arrays among the atoms of a kind."""
    return tuple(a for s, a in zip(slots(kind), atoms, strict=True) if s.static)


def numbered(kind: Kind, atoms: Sequence[Atom], known: list[tuple[Atom, ...]]) -> Kind:
    """The kind of an argument, with its local arrays numbered by identity in `known`."""
    if isinstance(kind, (StructKind, TupleKind)):
        return kind  # these never hold local arrays
    if not isinstance(kind, ViewKind) or not kind.shape:
        return kind
    roots = tuple(atoms[: leaf_count(kind.element)])
    if roots not in known or not all(isinstance(a, Var) for a in roots):
        known.append(roots)
    return replace(kind, number=known.index(roots))
