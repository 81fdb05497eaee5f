"""Which overload of a `@func` a call means, and what is wrong with a call that means none."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.frontend.context import Context
from engine.frontend.kinds import accepts, decompose, user_type
from engine.frontend.operands import BAD, Bad, Known, Operand, Value, View, adapt
from engine.frontend.scope import operand_of
from engine.frontend.typenames import type_name
from engine.frontend.userfunc import UserFunc
from engine.lang.structs import ARRAYS, COMPOUND, UserType

Slot = tuple[ast.expr, Operand]


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call, lowered once, with their places."""

    positional: tuple[Slot, ...]
    named: Mapping[str, Slot]

    @property
    def count(self) -> int:
        return len(self.positional) + len(self.named)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call does not fit a function: a diagnostic in the making."""

    code: str
    where: ast.AST
    message: str
    help: str


def given_by(cx: Context, node: ast.Call) -> Given:
    """Lowers the arguments of a call."""
    named: dict[str, Slot] = {}
    positional = tuple((a, cx.expr(a)) for a in node.args)
    for word in node.keywords:
        if word.arg is not None:
            named[word.arg] = (word.value, cx.expr(word.value))
    return Given(positional, named)


def bind(node: ast.Call, given: Given, target: UserFunc) -> dict[str, Slot] | Problem:
    """Arguments by parameter, in their order. Raises KernelError E107 or E111."""
    params, defaults = target.parameters(), target.defaults()
    listed = f"its parameters are: {', '.join(params) or 'none'}"
    out = dict(zip(params, given.positional, strict=False))
    for name, slot in given.named.items():
        if name not in params or name in out:
            message = f"`{target.name}` takes no further argument `{name}`"
            return Problem("E109", slot[0], message, listed)
        out[name] = slot
    for name in params:
        if name not in out and name in defaults:
            out[name] = (node, defaults[name])
    if len(given.positional) > len(params) or len(out) != len(params):
        return Problem(
            "E109",
            node,
            f"`{target.name}` takes {len(params)} argument{'s' if len(params) != 1 else ''}, "
            f"got {given.count}",
            listed,
        )
    return {name: out[name] for name in params}


def misfit(target: UserFunc, name: str, slot: Slot) -> Problem | None:
    """What is wrong with one argument; None also for what is no argument at all."""
    at, got = slot
    want, pattern = target.annotated()[name], target.patterns().get(name)
    have: UserType | None = None
    if isinstance(got, Known):
        # Where one type is wanted, the object is refused as what it is.
        if want is None or not callable(got.obj):
            return None
        shown = "a function or type"
    else:
        parts = decompose(got)
        if parts is None or (isinstance(got, View) and not got.ndim):
            return None
        kind = parts[0]
        have = user_type(kind)
        shown = type_name(kind)
        if want is None:
            if pattern is None or pattern.accepts(have):
                return None
        elif accepts(want, kind) or (
            isinstance(got, Value)
            and not isinstance(want, COMPOUND)
            and adapt(got, want) is not None
        ):
            return None
    takes = f"has type {type_name(want)}" if want is not None else f"takes {pattern}"
    return Problem(
        "E104",
        at,
        f"parameter `{name}` of `{target.name}` {takes}, but this is {shown}",
        _advice(want, pattern is not None and pattern.role == "array", have),
    )


def _advice(want: UserType | None, array: bool, have: UserType | None) -> str:
    wants_array = array or isinstance(want, ARRAYS)
    if wants_array and not isinstance(have, ARRAYS):
        return "pass the array itself, not an element of it"
    if isinstance(have, ARRAYS) and not wants_array:
        return "pass an element: `a[i]`"
    if want is None:
        return "pass the name of a function, or convert the argument"
    return "convert the argument, or change the annotation of the parameter"


def choose(
    node: ast.Call, given: Given, target: UserFunc
) -> tuple[UserFunc, dict[str, Slot]] | Problem:
    """The overload that fits best: no conversion of literals, then the fewest open parameters.

    Raises KernelError E107 or E111.
    """
    found = target.candidates()
    if len(found) == 1:
        slots = bind(node, given, found[0])
        return slots if isinstance(slots, Problem) else (found[0], slots)
    return _best(node, given, found) or _none(node, given, target, found)


def _best(
    node: ast.Call, given: Given, found: Sequence[UserFunc]
) -> tuple[UserFunc, dict[str, Slot]] | None:
    best: tuple[tuple[int, int], UserFunc, dict[str, Slot]] | None = None
    for f in found:
        slots = bind(node, given, f)
        if isinstance(slots, Problem) or any(misfit(f, n, s) for n, s in slots.items()):
            continue
        rank = _rank(f, slots)
        if best is None or rank <= best[0]:  # of equals, the one defined last
            best = (rank, f, slots)
    return None if best is None else (best[1], best[2])


def for_host(target: UserFunc, args: Sequence[Any], named: Mapping[str, Any]) -> UserFunc:
    """The overload that a call in Python means: by types as in kernels, else the last one."""
    node = ast.Call(ast.Name("f", ast.Load()), [], [])

    def slot(value: Any) -> Slot:
        return node, operand_of(value) or BAD

    given = Given(tuple(slot(a) for a in args), {k: slot(v) for k, v in named.items()})
    best = _best(node, given, target.candidates())
    return target if best is None else best[0]


def _rank(f: UserFunc, slots: Mapping[str, Slot]) -> tuple[int, int]:
    annotated = f.annotated()
    adapted = open_ = 0
    for name, (_, got) in slots.items():
        want = annotated[name]
        open_ += want is None
        adapted += want is not None and isinstance(got, Value) and got.type != want
    return adapted, open_


def _none(node: ast.Call, given: Given, target: UserFunc, found: Sequence[UserFunc]) -> Problem:
    shown = ", ".join(_shown(got) for _, got in (*given.positional, *given.named.values()))
    listed = "; ".join(f"`{f.name}({f.parameter_text()})` at {f.place()}" for f in found)
    return Problem(
        "E104",
        node,
        f"no overload of `{target.name}` takes ({shown})",
        f"its overloads are: {listed}",
    )


def _shown(got: Operand) -> str:
    if isinstance(got, Known):
        return str(getattr(got.obj, "__name__", got.obj))
    parts = decompose(got)
    if parts is not None:
        return type_name(parts[0])
    return "?" if isinstance(got, Bad) else "several values"
