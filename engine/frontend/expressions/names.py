"""Names and constants."""

from __future__ import annotations

import ast
import builtins

from engine.frontend.context.context import Context
from engine.frontend.expressions.attributes import not_here, unknown
from engine.frontend.operands.captured import describe, operand_of
from engine.frontend.operands.kinds import (
    COMPOUND_KINDS,
    Kind,
    compose,
    slots,
)
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Known,
    Operand,
    Struct,
    Value,
    literal,
)
from engine.frontend.parsing.fence_table import CONSTANTS
from engine.frontend.parsing.scope import MISSING, type_of
from engine.itself import ENGINE
from engine.lang.stand_ins import StandIn


def lower_constant(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return cx.error("E101", node, "this integer has more than 64 bits", "use a float")
    if not isinstance(value, (bool, int, float)):
        what, help_text = CONSTANTS.get(type(value).__name__, ("this constant", ""))
        return cx.error("E101", node, f"{what} is not supported in kernels", help_text)
    return literal(value)


def lower_name(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Name)
    got = named(cx, node)
    # An assignment inside the same expression may change the variable after this read.
    changes = node.id in cx.plan.touched and (node.id not in cx.bound or isinstance(got, Struct))
    return cx.keep(got) if changes else got


def named(cx: Context, node: ast.Name) -> Operand:
    """What a name stands for: a variable itself."""
    name = node.id
    if name in cx.plan.assigned:
        return _local(cx, node, name)
    found = cx.scope.lookup(name)
    if found is MISSING:
        found = _bare(name)
    if found is MISSING:
        others = [*cx.plan.assigned, *cx.scope.names(), *vars(builtins)]
        return unknown(cx, node, name, True, others, name)
    if isinstance(found, StandIn):
        return not_here(cx, node, found, name)
    got = operand_of(found)
    if got is None:
        what, help_text = describe(found)
        return cx.error(
            "E107", node, f"`{name}` is {what}, which a kernel cannot capture", help_text
        )
    return got


def _bare(name: str) -> object:
    """What the language itself calls so: `vec3` and `dot` need not have the engine's name."""
    found = MISSING if name.startswith("_") else getattr(ENGINE, name, MISSING)
    return found if hasattr(found, "__builtin_name__") or type_of(found) is not None else MISSING


def _local(cx: Context, node: ast.Name, name: str) -> Operand:
    if name in cx.bound:
        return cx.bound[name]
    if name in cx.types:
        kind = cx.types[name]
        if isinstance(kind, COMPOUND_KINDS):
            return _tree(cx, name, kind)
        assert not isinstance(kind, Known)  # those are bound
        return Value(cx.variable(name, kind))
    if any(name in cx.plan.stored_in[id(loop)] for loop in cx.loops):
        # Assigned further down in a loop: its type is known after this round.
        cx.deferred.setdefault(name, node)
        return BAD
    return unassigned(cx, node, name)


def _tree(cx: Context, name: str, kind: Kind) -> Operand:
    """The variables of a name whose kind is known before its first assignment in the text."""
    if name not in cx.trees:
        atoms = [cx.owned_variable(f"{name}{s.suffix}", s.type) for s in slots(kind)]
        cx.trees[name] = compose(kind, atoms)
        cx.types[name] = kind
    return cx.trees[name]


def unassigned(cx: Context, node: ast.AST, name: str) -> Bad:
    """E102 for a local variable without a value."""
    notes = []
    if cx.scope.lookup(name) is not MISSING:
        notes.append(f"`{name}` is assigned in this function, which hides the one outside")
    return cx.error(
        "E102",
        node,
        f"`{name}` is read before it has a value",
        f"assign it first, for example `{name} = 0.0`",
        notes,
    )
