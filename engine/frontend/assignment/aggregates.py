"""Structs and views under names, which stand for several variables.

A struct is a value, as a vector is: assigning it copies its fields. A field for an
array refers to the array. Where a branch or loop makes a name from outside, or a field of one,
refer to another array, it is one of several from then on (`chosen_arrays`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from engine.frontend.assignment.chosen_arrays import assign_choice, choice_tree, note_choices
from engine.frontend.assignment.links import set_link
from engine.frontend.context.context import Context
from engine.frontend.expressions.choices import holds_local, is_array
from engine.frontend.expressions.conversions import coerce
from engine.frontend.expressions.views import settled
from engine.frontend.operands.kinds import (
    AbsentKind,
    Kind,
    StructKind,
    TupleKind,
    accepts,
    decompose,
    plain,
    slots,
    user_type,
)
from engine.frontend.operands.lvalues import Linked
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Dim,
    Operand,
    Root,
    Several,
    Span,
    Struct,
    Value,
    View,
    adapt,
    zero,
)
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.local_variables import field_path
from engine.ir.nodes import Atom, Var
from engine.lang.structs import ARRAYS, FieldType, StructType, UserType
from engine.lang.types import ArrayType, ScalarType

AGGREGATES = (Struct, View, Absent, Choice)


# ---- construction


def zero_of(t: FieldType) -> Operand:
    """The zero of a type: numbers are 0, and fields for arrays hold none."""
    if isinstance(t, StructType):
        return Struct(t, tuple(zero_of(f) for f in t.fields.values()))
    if isinstance(t, ARRAYS):
        return Absent(t)
    return Value(zero(t))


def as_field(
    cx: Context, node: ast.expr, got: Operand, want: FieldType, what: str
) -> Operand | None:
    """The operand as the value of a field, or an error."""
    if isinstance(got, Bad):
        return None
    if not isinstance(want, (StructType, *ARRAYS)):
        one = cx.one(node, got)
        atom = None if isinstance(one, Bad) else coerce(cx, node, one, want, what)
        return None if atom is None else Value(atom)
    parts = decompose(got)
    if parts is None:
        cx.one(node, got)
        return None
    if not accepts(want, parts[0]):
        mismatch(cx, node, what, want, parts[0])
        return None
    if (isinstance(got, View) and got.is_local) or holds_local(got):
        cx.error("E104", node, f"{what} cannot hold a local array",
                 "pass the array beside the struct")  # fmt: skip
        return None
    return settled(cx, got) if isinstance(got, View) else got


def mismatch(
    cx: Context, node: ast.AST, what: str, want: UserType, have: Kind, code: str = "E104"
) -> None:
    """Says that something has one type and was given another."""
    help_text = f"make a {type_name(want)} of it" if isinstance(want, StructType) else (
        "use another name for the new value" if code == "E105" else "pass a value of that type"
    )  # fmt: skip
    shown = type_name(user_type(have))
    cx.error(code, node, f"{what} has type {type_name(want)}, but this is {shown}", help_text)


# ---- names


def set_aggregate(cx: Context, target: ast.Name, got: Operand, value: ast.expr) -> None:
    """`name = value` for a struct, a view or a local array."""
    name = target.id
    known = cx.types.get(name)
    if isinstance(got, Several) and isinstance(known, TupleKind):
        got = _adapted(cx, got, known)
    parts = decompose(got)
    assert parts is not None
    kind = parts[0]
    if known is not None and not _alike(known, kind):
        mismatch(cx, value, f"`{name}`", user_type(known), kind, "E105")
        return
    local = isinstance(got, View) and got.is_local and got.is_whole
    bind = name in cx.plan.plain and not local
    if bind and not (isinstance(got, Struct) and changes_fields(cx, name, got)):
        if isinstance(got, Struct):
            cx.types.setdefault(name, kind)
        cx.bound[name] = cx.keep(got)
        return
    tree = cx.trees.get(name)
    if tree is None:
        cx.homes[name] = cx.b
        tree = fresh(cx, name, got)
    else:
        got = _detached(cx, tree, got)
        changed = replaced(cx, name, tree, got)
        if changed is None and cx.settles(name):
            changed = fresh(cx, name, got)
        if changed is None:
            if not note_choices(cx, target, name, tree, got):
                _different_arrays(cx, target, name)
            cx.bound[name] = BAD
            return
        tree = changed
    own = decompose(tree)
    assert own is not None
    cx.types[name] = own[0]
    cx.trees[name] = tree
    cx.bound[name] = plain(tree) if isinstance(tree, View) else tree


def _adapted(cx: Context, got: Several, kind: TupleKind) -> Several:
    """A tuple with its literals in the types that a name's items have."""
    if len(got.items) != len(kind.items):
        return got
    items: list[Operand] = []
    for item, k in zip(got.items, kind.items, strict=True):
        if isinstance(item, Several) and isinstance(k, TupleKind):
            item = _adapted(cx, item, k)
        elif isinstance(item, Value) and isinstance(k, ScalarType):
            item = adapt(cx.b, item, k) or item
        items.append(item)
    return Several(tuple(items))


def _alike(a: Kind, b: Kind) -> bool:
    """Whether a name that stood for a value of kind `a` may stand for one of kind `b`."""
    if isinstance(a, TupleKind) or isinstance(b, TupleKind):
        return (
            isinstance(a, TupleKind)
            and isinstance(b, TupleKind)
            and (
                len(a.items) == len(b.items)
                and all(x == y or _alike(x, y) for x, y in zip(a.items, b.items, strict=True))
            )
        )
    if isinstance(a, StructKind) or isinstance(b, StructKind):
        return isinstance(a, StructKind) and isinstance(b, StructKind) and a.type is b.type
    first, second = user_type(a), user_type(b)
    if not isinstance(first, ARRAYS) or not isinstance(second, ARRAYS):
        return False
    return first.element == second.element


def _different_arrays(cx: Context, node: ast.AST, name: str) -> None:
    cx.error(
        "E105",
        node,
        f"`{name}` would stand for different arrays",
        "use one name for each array, and `if` / `else` around the code that uses them",
    )


def changes_fields(cx: Context, name: str, s: Struct) -> bool:
    """Whether the function assigns to fields of the struct; elements of arrays in it are none."""
    for path, indexed in cx.plan.fields.get(name, ()):
        at: object = s.type
        for field in path:
            at = at.fields.get(field) if isinstance(at, StructType) else at
        if not (indexed and isinstance(at, ARRAYS)):
            return True
    return False


def can_be_inferred(kind: Kind) -> bool:
    """Whether variables can be made from the kind alone: where it refers to no array."""
    return not any(s.static for s in slots(kind)) and not _absent(kind)


def _absent(kind: Kind) -> bool:
    if isinstance(kind, (StructKind, TupleKind)):
        return any(_absent(item) for item in kind.items)
    return isinstance(kind, AbsentKind)


def _detached(cx: Context, tree: Operand, got: Operand) -> Operand:
    """The operand, read before any of the tree's variables changes: `s = S(s.y, s.x)`."""
    old, new = decompose(tree), decompose(got)
    if old is None or new is None or not set(old[1]) & set(new[1]):
        return got
    return cx.keep(got)


def _held(cx: Context, name: str, value: Atom) -> Var:
    """A new variable with a value."""
    var = cx.owned_variable(name, value.type)
    cx.b.set(var, value)
    return var


def fresh(cx: Context, name: str, got: Operand) -> Operand:
    """The operand with its values in new variables."""
    chosen = choice_tree(cx, name, got)
    if chosen is not None:
        return chosen
    if isinstance(got, Struct):
        named = zip(got.type.fields, got.items, strict=True)
        return Struct(got.type, tuple(fresh(cx, f"{name}.{f}", item) for f, item in named))
    if isinstance(got, Several):
        return Several(tuple(fresh(cx, f"{name}_{k}", item) for k, item in enumerate(got.items)))
    if isinstance(got, View):
        got = settled(cx, got)
        root = got.root
        if got.is_local and got.is_whole:
            root = _copied(cx, name, root)
        if root.place:
            where = [_held(cx, f"{name}_place", a) for a in root.place]
            root = replace(root, place=tuple(where))
        dims: list[Dim] = []
        for d in got.dims:
            if isinstance(d, Span):
                parts = ((d.start, "start"), (d.step, "step"), (d.count, "count"))
                dims.append(Span(*(_held(cx, f"{name}_{word}", a) for a, word in parts)))
            else:
                dims.append(None if d is None else _held(cx, f"{name}_at", d))
        return View(root, tuple(dims))
    if isinstance(got, Value) and not isinstance(got.type, ArrayType):
        return Value(_held(cx, name, got.atom))
    return got


def _copied(cx: Context, name: str, root: Root) -> Root:
    leaves = tuple(_held(cx, name, leaf) for leaf in root.leaves)
    return replace(root, leaves=leaves)


def replaced(cx: Context, name: str, tree: Operand, got: Operand) -> Operand | None:
    """The tree after its variables took other values; None where it would change its arrays."""
    if isinstance(tree, Struct) and isinstance(got, Struct) and tree.type is got.type:
        items = []
        for field, old, new in zip(tree.type.fields, tree.items, got.items, strict=True):
            item = replaced(cx, f"{name}.{field}", old, new)
            if item is None:
                return None
            items.append(item)
        return Struct(tree.type, tuple(items))
    if isinstance(tree, Several) and isinstance(got, Several):
        parts = [
            replaced(cx, f"{name}_{k}", old, new)
            for k, (old, new) in enumerate(zip(tree.items, got.items, strict=True))
        ]
        found = tuple(p for p in parts if p is not None)
        return Several(found) if len(found) == len(parts) else None
    if isinstance(tree, Choice):
        return tree if is_array(got) and assign_choice(cx, tree, got) else None
    if isinstance(got, View):
        got = settled(cx, got)
    old_parts, new_parts = decompose(tree), decompose(got)
    if old_parts is None or new_parts is None or old_parts[0] != new_parts[0]:
        return None
    kind, atoms = old_parts
    every = list(zip(slots(kind), atoms, new_parts[1], strict=True))
    if any(s.static and old != new for s, old, new in every):
        return None
    for s, old, new in every:
        if not s.static:
            assert isinstance(old, Var)
            cx.b.set(old, new)
    return tree


# ---- assignment to fields


def struct_writes(
    cx: Context, where: Struct, got: Operand, value: ast.expr, what: str
) -> Sequence[tuple[Any, Atom]]:
    """Pairs of a leaf's place and the value for it; none where the types differ."""
    item = as_field(cx, value, got, where.type, what)
    if not isinstance(item, Struct):
        return ()
    for place, held in _links(where, item):
        set_link(cx, value, place, held, what)
    return list(_pairs(where, item))


def linked_write(cx: Context, where: Linked, got: Operand, value: ast.expr, what: str) -> None:
    """`a[i].field = value` for a field that holds an array."""
    item = as_field(cx, value, got, where.type, what)
    if item is not None:
        set_link(cx, value, where, item, what)


def _links(where: Struct, got: Struct) -> Iterator[tuple[Linked, Operand]]:
    for place, item in zip(where.items, got.items, strict=True):
        if isinstance(place, Struct):
            yield from _links(place, item)
        elif isinstance(place, Linked):
            yield place, item


def _pairs(where: Struct, got: Struct) -> list[tuple[Any, Atom]]:
    out: list[tuple[Any, Atom]] = []
    for place, item in zip(where.items, got.items, strict=True):
        if isinstance(place, Struct):
            out += _pairs(place, item)
        elif isinstance(item, Value) and not isinstance(place, Linked):
            out.append((place, item.atom))
    return out


def set_field(cx: Context, target: ast.expr, got: Operand, value: ast.expr) -> bool:
    """`s.field = value` where `s` is a struct variable. False where the target is none.

    Fields that are structs or refer to arrays change what the name stands for.
    """
    found = field_path(target)
    if found is None or found[2]:
        return False
    name, path, _ = found
    tree = cx.trees.get(name)
    at: Operand | None = tree
    want: FieldType | None = tree.type if isinstance(tree, Struct) else None
    for field in path:
        if not isinstance(at, Struct) or field not in at.type.fields:
            return False
        want = at.type.fields[field]
        at = at.item(field)
    if tree is None or want is None or not isinstance(want, (StructType, *ARRAYS)):
        return False
    text = ".".join((name, *path))
    item = as_field(cx, value, got, want, f"`{text}`")
    if item is None:
        return True
    assert at is not None
    item = _detached(cx, tree, item)
    changed = replaced(cx, text, at, item)
    if changed is None and cx.settles(name):
        changed = fresh(cx, text, item)
    if changed is None:
        if not note_choices(cx, target, text, at, item):
            _different_arrays(cx, target, text)
        return True
    cx.trees[name] = cx.bound[name] = _with(tree, path, changed)
    return True


def _with(tree: Operand, path: Sequence[str], item: Operand) -> Operand:
    if not path:
        return item
    assert isinstance(tree, Struct)
    items = [
        _with(old, path[1:], item) if field == path[0] else old
        for field, old in zip(tree.type.fields, tree.items, strict=True)
    ]
    return Struct(tree.type, tuple(items))
