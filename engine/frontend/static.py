"""`static(expr)`: Python that runs while a kernel is compiled, and loops that it unrolls."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from engine.frontend.operands import Known, Operand, Value, literal, number
from engine.frontend.scope import MISSING, Scope, describe, operand_of
from engine.ir.nodes import Const, Return
from engine.lang.types import ScalarType
from engine.lang.values import value_class

if TYPE_CHECKING:
    from engine.frontend.context import Context

T = TypeVar("T")
# Loops that are unrolled for `static(i)` have at most this many iterations.
MAX_UNROLL = 4096


def static(expr: T) -> T:
    """A value that a kernel computes while it is compiled; outside of kernels, just the value.

    The expression is Python of any kind over names that the kernel captures, constant
    locals, and variables of loops with constant bounds, which are unrolled then. Its value
    must be something that a kernel can capture: a number, a vector, a type or a function.
    """
    return expr


static.__builtin_name__ = "static"  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Expression:
    """The argument of one call. names: those that it reads from outside."""

    code: CodeType
    names: frozenset[str]
    node: ast.expr


Expressions = dict[int, Expression]


def _means_static(scope: Scope, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return scope.lookup(node.id) is static
    if isinstance(node, ast.Attribute) and node.attr == "static":
        base = node.value
        found = scope.lookup(base.id) if isinstance(base, ast.Name) else MISSING
        return getattr(found, "static", None) is static
    return False


def take_expressions(tree: ast.FunctionDef, scope: Scope) -> Expressions:
    """Takes the arguments of `static` out of a function's tree, by the id of the call's node.

    They are Python, not the kernel language: no later stage may look at them.
    """
    out: Expressions = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            continue
        if not _means_static(scope, node.func):
            continue
        (arg,) = node.args
        try:
            code = compile(ast.Expression(arg), "<static>", "eval")
        except (SyntaxError, ValueError):
            continue  # told when the call is lowered
        node.args = []
        out[id(node)] = Expression(code, frozenset(_free_names(arg)), arg)
    return out


def _free_names(node: ast.expr) -> set[str]:
    loads: set[str] = set()
    own: set[str] = set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            (loads if isinstance(n.ctx, ast.Load) else own).add(n.id)
        elif isinstance(n, ast.arg):
            own.add(n.arg)
    return loads - own


def lower_static(cx: Context, node: ast.Call) -> Operand:
    """The value of a call of `static`."""
    found = cx.made.statics.get(id(node))
    if found is None:
        return cx.error(
            "E109", node, "`static` takes one expression", f"write `{cx.api}.static(expression)`"
        )
    names: dict[str, Any] = {**cx.scope.globals, **cx.scope.closure}
    for name in sorted(found.names & cx.plan.assigned):
        value = _known(cx, name)
        if value is MISSING:
            return cx.error(
                "E107",
                found.node,
                f"`{name}` has no value yet when `static(...)` is computed",
                "static expressions read captured names, constants, and variables of loops over "
                "a constant `range`",
            )
        names[name] = value
    names.setdefault("__builtins__", builtins)
    try:
        value = eval(found.code, names)
    except Exception as error:
        return cx.error(
            "E107",
            found.node,
            f"the static expression fails ({type(error).__name__}: {error})",
            "it is plain Python: make it work outside the kernel first",
        )
    got = operand_of(value)
    if got is None:
        what, help_text = describe(value)
        return cx.error("E107", found.node, f"the static expression gives {what}", help_text)
    return got


def _known(cx: Context, name: str) -> Any:
    """The Python value of a local name that is a constant; MISSING where it is not."""
    if name in cx.unrolled:
        return cx.unrolled[name]
    got = cx.bound.get(name)
    if isinstance(got, Known):
        return got.obj
    if not isinstance(got, Value) or not isinstance(got.atom, Const):
        return MISSING
    t = got.atom.type
    if got.weak or (isinstance(t, ScalarType) and t.kind == "b"):
        return got.atom.value
    return value_class(t)(got.atom.value)


# ---- loops


def unrolls(cx: Context, node: ast.For) -> bool:
    """Whether a loop's body has a `static` that reads the loop's variable."""
    name = node.target.id if isinstance(node.target, ast.Name) else None
    return any(
        name in found.names
        for s in node.body
        for n in ast.walk(s)
        if (found := cx.made.statics.get(id(n))) is not None
    )


def unroll(cx: Context, node: ast.For, bounds: list[Value]) -> None:
    """Lowers the body of a loop once for each iteration."""
    from engine.frontend.variables import set_name

    start, stop, step = (number(v) for v in bounds)
    if not all(isinstance(k, int) for k in (start, stop, step)):
        cx.error(
            "E107",
            node.iter,
            "`static(...)` in the body reads the loop's variable, but the bounds are not constant",
            "write numbers or captured names as bounds, or do without `static`",
        )
        return
    count = range(int(start or 0), int(stop or 0), int(step or 1))
    jump = next(_jumps(node.body), None)
    if jump is not None or len(count) > MAX_UNROLL:
        cx.error(
            "E101",
            jump or node.iter,
            "a loop that `static(...)` unrolls cannot be left early"
            if jump is not None
            else f"a loop that `static(...)` unrolls has {len(count)} iterations, "
            f"more than {MAX_UNROLL}",
            "put the rest of the body under an `if`" if jump is not None else "use fewer of them",
        )
        return
    assert isinstance(node.target, ast.Name)
    name = node.target.id
    before = dict(cx.unrolled)
    for k in count:
        cx.unrolled = {**before, name: k}
        with cx.at(node.target):
            value = literal(k)
            if bounds[0].weak:
                set_name(cx, node.target, value, node.target)
            else:
                set_name(cx, node.target, Value(Const(k, bounds[0].type)), node.target)  # type: ignore[arg-type]
        cx.block(node.body)
        if cx.b.stmts and isinstance(cx.b.stmts[-1], Return):
            break
    cx.unrolled = before


def _jumps(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """`break` and `continue` that belong to the loop of this body."""
    for s in body:
        if isinstance(s, (ast.Break, ast.Continue)):
            yield s
        elif isinstance(s, ast.If):
            yield from _jumps([*s.body, *s.orelse])
