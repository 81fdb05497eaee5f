"""Types made in kernels: `wp.types.vector(length=5, dtype=float)`, `wp.types.matrix(...)`, ..."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from engine.diagnostics import LaunchError
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import (
    BAD,
    Bad,
    Known,
    Operand,
    Several,
    Value,
    number,
    zero,
)
from engine.frontend.parsing.scope import type_of
from engine.lang import factories
from engine.lang.types import (
    ScalarType,
)

FACTORIES: dict[object, tuple[str, ...]] = {
    factories.vector: ("length", "dtype"),
    factories.matrix: ("shape", "dtype"),
    factories.quaternion: ("dtype",),
    factories.transformation: ("dtype",),
}


def makes_value(cx: Context, node: ast.Call, make: Callable[..., Any]) -> bool:
    """Whether a call is of values: `types.quaternion(x, y, z, w)` makes one, and no class.

    Also one that leaves out what a type needs.
    """
    names = FACTORIES[make]
    given = {w.arg for w in node.keywords}
    if not node.args:
        return not given.issuperset(names)
    last = node.args[-1]
    if len(node.args) + len(given) == len(names) and given <= set(names):
        if "dtype" in given:
            got = cx.expr(node.args[0])
            return (
                len(node.args) == 1
                and not isinstance(got, (Several, Bad))
                and (not isinstance(got, Value) or not got.weak)
            )
        return not isinstance(cx.expr(last), (Known, Bad))
    return True


def factory_of(obj: object) -> Callable[..., Any] | None:
    """The factory of `types` that an object is."""
    try:
        return obj if obj in FACTORIES else None  # type: ignore[return-value]
    except TypeError:  # not hashable
        return None


class Meaningless(Exception):
    """The call means nothing: the text says why. Empty where that has been reported.

    help: where it is more than how to write such a call.
    """

    def __init__(self, text: str = "", help: str = "") -> None:
        super().__init__(text)
        self.help = help


def scalar_type(cx: Context, node: ast.expr) -> ScalarType:
    found = cx.expr(node)
    if isinstance(found, Bad):
        raise Meaningless
    scalar = type_of(found.obj) if isinstance(found, Known) else None
    if not isinstance(scalar, ScalarType):
        raise Meaningless("the dtype is a scalar type")
    return scalar


def component_count(got: Operand, what: str) -> int:
    n = number(got) if isinstance(got, Value) else None
    if isinstance(got, Bad):
        raise Meaningless
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= factories.MAX_COMPONENTS:
        most = factories.MAX_COMPONENTS
        raise Meaningless(f"{what} is a constant whole number from 1 to {most}")
    return n


def matrix_shape(cx: Context, node: ast.expr) -> tuple[int, int]:
    got = cx.expr(node)
    if isinstance(got, Bad):
        raise Meaningless
    if not isinstance(got, Several) or len(got.items) != 2:
        raise Meaningless("the shape of a matrix is (rows, columns)")
    rows, cols = (component_count(x, "the number of rows or columns") for x in got.items)
    if rows * cols > factories.MAX_COMPONENTS:
        raise Meaningless(f"a matrix has at most {factories.MAX_COMPONENTS} components")
    return rows, cols


def named_arguments(node: ast.Call, allowed: Sequence[str]) -> dict[str, ast.expr]:
    out: dict[str, ast.expr] = {}
    for word in node.keywords:
        if word.arg is None or word.arg not in allowed:
            raise Meaningless(f"there is no argument `{word.arg}`")
        out[word.arg] = word.value
    return out


def lower_factory(cx: Context, node: ast.Call, make: Callable[..., Any]) -> Operand:
    """`types.vector(length=n, dtype=t)` and the like: a class, to be called."""
    names = FACTORIES[make]
    name = make.__name__
    try:
        words = dict(zip(names, node.args, strict=False))
        for key, value in named_arguments(node, names).items():
            words[key] = value
        if len(words) != len(names) or len(node.args) > len(names):
            raise Meaningless(f"its arguments are {' and '.join(f'`{n}`' for n in names)}")
        given: list[object] = []
        for key in names:
            n = words[key]
            if key == "dtype":
                given.append(scalar_type(cx, n))
            else:
                size = (
                    matrix_shape(cx, n)
                    if key == "shape"
                    else component_count(cx.expr(n), "the length")
                )
                given.append(size)
        made = make(*given)
        t = made.__ir_type__
        return Known(made, Value(zero(t)))
    except LaunchError as error:
        problem = error.diagnostics[0].message
    except Meaningless as wrong:
        problem = str(wrong)
    if not problem:
        return BAD
    return cx.error(
        "E104", node, f"`{name}` makes no type: {problem}",
        f"write `{cx.api}.types.{name}({', '.join(f'{n}=...' for n in names)})`",
    )  # fmt: skip
