"""Arguments by reference: variables, components, fields and elements that a function changes.

A function gets their values and gives them back, and the caller assigns them. This is what a
reference does, unless two ways lead to one place: such calls are refused, and launches where two
arrays would be one (`Function.apart`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend.assignment.links import join
from engine.frontend.assignment.names import set_name
from engine.frontend.assignment.targets import give
from engine.frontend.context.context import Context
from engine.frontend.context.lowered import LoweredExpression
from engine.frontend.expressions.subscripts import lvalue, read
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.kinds import Kind, slots
from engine.frontend.operands.lvalues import Chosen, Element, Linked, Local, LValue, Part, Region
from engine.frontend.operands.operand import Choice, Operand, Struct, Value, View
from engine.frontend.parsing.local_variables import root_name
from engine.ir.nodes import Atom, Const, Function, Var
from engine.lang.types import ArrayType


class PlacedExpression(LoweredExpression):
    """An argument that is lowered already, and where its value is."""

    where: LValue
    node: ast.expr


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument comes from. where: None for a variable."""

    node: ast.expr
    where: LValue | None


def with_place(cx: Context, node: ast.expr) -> ast.expr:
    """A part or element with its place, whose indices are computed once."""
    if not isinstance(node, (ast.Attribute, ast.Subscript)) or id(node) in cx.function.rejected:
        return node
    where = lvalue(cx, node)
    made = ast.copy_location(PlacedExpression(), node)
    made.operand, made.where, made.node = read(cx, where), where, node
    return made


def place_of(cx: Context, node: ast.expr) -> Place:
    """The place of an argument that a function takes by reference."""
    if isinstance(node, PlacedExpression):
        return Place(node.node, node.where)
    return Place(node, None)


def write_back(cx: Context, place: Place, got: Operand) -> None:
    """Gives a place the value that the function left there."""
    if place.where is not None:
        give(cx, place.node, place.where, got, place.node)
    elif isinstance(place.node, ast.Name):
        set_name(cx, place.node, got, place.node)


def may_refer(
    cx: Context,
    node: ast.expr,
    target: UserFunc,
    references: Sequence[tuple[Place, Kind]],
    atoms: Sequence[Atom],
) -> bool:
    """Whether a call may have these references; says so where not."""
    taken: list[tuple[Place, Element | None]] = []
    arrays = {a for a in atoms if isinstance(a.type, ArrayType)}
    for place, kind in references:
        if any(s.static for s in slots(kind)):
            cx.error("E104", place.node, "a value that holds arrays cannot be passed by reference",
                     "pass the numbers and the arrays separately")  # fmt: skip
            return False
        if not _is_place(cx, place):
            cx.error("E104", place.node, f"`{target.name}` takes this by reference, but it is "
                                         "neither a variable nor an element of an array",
                     "give it a name first: `x = ...`")  # fmt: skip
            return False
        elements: list[Element | None] = [*_elements(place.where)]
        root = root_name(place.node)
        if not elements and root not in cx.plan.touched:
            cx.error("E106", place.node, f"`{target.name}` changes `{root}`, but has another name "
                     "here", f"call it by its own name: `{target.name}(...)`")  # fmt: skip
            return False
        for one in elements or [None]:
            if one is not None:
                if one.array in arrays:
                    return _twice(cx, place, f"`{one.array.name}` is passed as an array too")
                for a in arrays:
                    keep_apart(cx, one.array, a)
            for before, other in taken:
                if before is not place and _may_be_one(before, other, place, one):
                    return _twice(cx, place, "it may be the same as another reference of this call")
                if before is not place and one is not None and other is not None:
                    keep_apart(cx, other.array, one.array)
            taken.append((place, one))
    return True


def keep_apart(cx: Context, a: Atom, b: Atom) -> None:
    """Notes that launches must not give two array parameters the same memory."""
    if isinstance(a, Var) and isinstance(b, Var) and a.name != b.name:
        cx.apart[min(a.name, b.name), max(a.name, b.name)] = None


def meeting(fn: Function, atoms: Sequence[Atom]) -> Var | None:
    """An array that a call gives a function for two that must not be one; None for none."""
    given = {p.name: a for p, a in zip(fn.params, atoms, strict=False)}
    pairs = ((given[first], given[second]) for first, second in fn.apart)
    return next((a for a, b in pairs if isinstance(a, Var) and a == b), None)


def take_over(cx: Context, fn: Function, atoms: Sequence[Atom]) -> None:
    """Takes over what a called function needs of arrays: which must not meet, and which have to."""
    given = {p.name: a for p, a in zip(fn.params, atoms, strict=False)}
    for first, second in fn.apart:
        keep_apart(cx, given[first], given[second])
    for first, second, _ in fn.links.joined:
        a, b = given[first], given[second]
        if isinstance(a, Var) and isinstance(b, Var):
            join(cx, a, b)


def one_for_two(fn: Function, array: Var, at: Span) -> KernelError:
    """What to say of such a call."""
    return KernelError(
        Diagnostic(
            "E104",
            f"`{fn.name}` passes references to elements of two arrays, which are both "
            f"`{array.name}` here",
            at,
            "pass copies in variables, and assign them afterwards",
        )
    )


def _twice(cx: Context, place: Place, why: str) -> bool:
    cx.error("E104", place.node, f"this cannot be passed by reference: {why}",
             "pass copies in variables, and assign them afterwards")  # fmt: skip
    return False


def _is_place(cx: Context, place: Place) -> bool:
    where = place.where
    if where is None:
        return isinstance(place.node, ast.Name) and place.node.id in cx.plan.assigned
    if isinstance(where, (Element, Local, Chosen, Linked)):
        return not isinstance(where, Linked)
    return isinstance(where, (Part, Region, Struct, Value)) and _in_variable(cx, place, where)


def _in_variable(cx: Context, place: Place, where: LValue) -> bool:
    """Whether a part belongs to a variable or an array, and not to what a call gave."""
    node = place.node
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return isinstance(node, ast.Name) and node.id in cx.plan.assigned


def _elements(where: LValue | None) -> Iterator[Element]:
    """The elements of arrays that a place is made of."""
    if isinstance(where, Element):
        yield where
    elif isinstance(where, Region) and isinstance(where.base, Element):
        yield where.base
    elif isinstance(where, Struct):
        for item in where.items:
            yield from _elements(item)
    elif isinstance(where, Chosen):
        for option in _options(where.choice):
            roots = option.root.leaves if isinstance(option, View) else ()
            for leaf in [option.atom] if isinstance(option, Value) else roots:
                if not isinstance(leaf, Const):
                    yield Element(leaf, ())


def _options(choice: Choice) -> Iterator[Operand]:
    for option in choice.options:
        if isinstance(option, Choice):
            yield from _options(option)
        else:
            yield option


def _may_be_one(a: Place, x: Element | None, b: Place, y: Element | None) -> bool:
    """Whether two places may have something in common."""
    if x is None and y is None:
        name = root_name(a.node)
        return name == root_name(b.node) and not _different_parts(a.node, b.node)
    if x is None or y is None or x.array != y.array:
        return False
    pairs = list(zip((*x.index, *x.path), (*y.index, *y.path), strict=False))
    return not any(_is_place_of_its_own(i, j) for i, j in pairs)


def _is_place_of_its_own(i: Atom, j: Atom) -> bool:
    """Whether two indices are known and differ; negative ones count from the end."""
    if not isinstance(i, Const) or not isinstance(j, Const) or i == j:
        return False
    return all(isinstance(k.value, int) and k.value >= 0 for k in (i, j))


def _different_parts(a: ast.expr, b: ast.expr) -> bool:
    """Whether `s.x` and `s.y.z`, or `v[0]` and `v[1]`, are told apart by their text."""
    for p, q in zip(_path(a), _path(b), strict=False):
        if p != q:
            return p is not None and q is not None and type(p) is type(q)
        if p is None:
            return False
    return False


def _path(node: ast.expr) -> list[str | int | None]:
    """Attributes and constant indices after a name; None for any other index."""
    out: list[str | int | None] = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        at = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Attribute):
            out.insert(0, node.attr)
        else:
            known = isinstance(at, ast.Constant) and isinstance(at.value, int) and at.value >= 0
            out.insert(0, at.value if known else None)  # type: ignore[union-attr]
        node = node.value
    return out
