"""Dispatches calls to builtins, user functions, casts and constructors; refuses others."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins.argument_names import argument_names
from engine.builtins.composite import COMPOSITES, HELPERS
from engine.builtins.generic_constructors import GENERIC_CONSTRUCTORS, IDENTITIES
from engine.builtins.queries import QUERIES
from engine.builtins.resolve import resolve
from engine.builtins.stubs import BUILTINS
from engine.classes import dataclass
from engine.frontend.calls.atomics import ATOMICS, lower_atomic
from engine.frontend.calls.chosen_arguments import arguments_apart
from engine.frontend.calls.constructors import (
    lower_constructor,
    lower_identity,
    matrix_from_vectors,
)
from engine.frontend.calls.expectations import lower_expect
from engine.frontend.calls.generic_constructors import (
    lower_generic_constructor,
    lower_rigid_identity,
)
from engine.frontend.calls.gradient_calls import call_gradient, lower_grad
from engine.frontend.calls.library_calls import call_library
from engine.frontend.calls.printing import lower_print, lower_printf
from engine.frontend.calls.query_calls import lower_query
from engine.frontend.calls.reinterpret import lower_reinterpret
from engine.frontend.calls.static_calls import lower_static
from engine.frontend.calls.struct_constructors import lower_struct
from engine.frontend.calls.tile_calls import (
    lower_block_dim,
    lower_reduction,
    lower_tile,
    lower_tile_reduce,
    lower_untile,
)
from engine.frontend.calls.type_factories import factory_of, lower_factory, makes_value
from engine.frontend.calls.user_calls import call_user
from engine.frontend.context.context import Context
from engine.frontend.expressions.addresses import array_at, is_array_class
from engine.frontend.expressions.attributes import not_here
from engine.frontend.expressions.local_arrays import lower_zeros
from engine.frontend.expressions.logic import lower_where
from engine.frontend.expressions.operators import apply
from engine.frontend.expressions.sequences import expanded
from engine.frontend.expressions.views import size
from engine.frontend.features import missing_feature, plural
from engine.frontend.functions.gradient import Gradient
from engine.frontend.functions.library_function import library_func
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.kinds import as_view, decompose
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    View,
    literal,
)
from engine.frontend.operands.type_names import type_name, type_names
from engine.frontend.parsing.builtin_arguments import by_position
from engine.frontend.parsing.fence import is_text
from engine.frontend.parsing.scope import MISSING, struct_of, type_of
from engine.ir.nodes import Const
from engine.itself import is_of_engine
from engine.lang.stand_ins import StandIn
from engine.lang.structs import StructType
from engine.lang.types import INT32, ArrayType, MatrixType, VectorType
from engine.lang.values import value_class

# Functions of Python, `math` and NumPy that mean a builtin of the language. Halves are rounded away
# from zero, as in Warp, not to even numbers.
_PYTHON: dict[object, str] = {abs: "abs", min: "min", max: "max", pow: "pow", round: "round"}
_SAME_IN_MATH = (
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "exp", "log",
    "log2", "log10", "sqrt", "pow", "floor", "ceil", "trunc", "cbrt", "erf", "erfc", "copysign",
    "degrees", "radians", "isfinite", "isinf", "isnan",
)  # fmt: skip
_MATH: dict[object, str] = {
    **{getattr(math, n): n for n in _SAME_IN_MATH if hasattr(math, n)},
    math.fabs: "abs",
    math.fmod: "mod",
}
_NUMPY: dict[object, str] = {
    getattr(np, n): n for n in _SAME_IN_MATH if isinstance(getattr(np, n, None), np.ufunc)
}


def _builtin_name(obj: object) -> str | None:
    name = getattr(obj, "__builtin_name__", None)
    if isinstance(name, str):
        return name
    try:
        return _PYTHON.get(obj) or _MATH.get(obj) or _NUMPY.get(obj)
    except TypeError:  # not hashable
        return None


def is_tid(cx: Context, node: ast.Call) -> bool:
    """True for a call of `tid`."""
    got = cx.expr(node.func)
    return isinstance(got, Known) and _builtin_name(got.obj) == "tid"


def thread_coordinates(cx: Context, node: ast.Call, arity: int) -> Operand:
    """`tid()` with as many results as there are names for them."""
    if node.args or node.keywords:
        return cx.error("E109", node, "`tid` takes no arguments", f"write `{cx.api}.tid()`")
    if not 1 <= arity <= 4:
        return cx.error(
            "E109", node, f"`tid` gives 1 to 4 values, not {arity}", "write `i, j = tid()`"
        )
    count = Const(arity, INT32)
    items = [Value(cx.b.op("tid", Const(d, INT32), count)) for d in range(arity)]
    return items[0] if arity == 1 else Several(tuple(items))


def _length(cx: Context, node: ast.Call) -> Operand:
    if len(node.args) != 1:
        return cx.error("E109", node, f"`len` takes 1 argument, got {len(node.args)}")
    got = cx.expr(node.args[0])
    if isinstance(got, Several):
        return literal(len(got.items))
    if isinstance(got, Absent):
        return literal(0)
    view = as_view(got)
    if view is not None:
        found = size(cx, view, 0)
        return Value(found, weak=isinstance(found, Const))
    one = cx.one(node.args[0], got)
    if isinstance(one, Bad):
        return BAD
    if isinstance(one.type, VectorType):
        return literal(one.type.length)
    if isinstance(one.type, MatrixType):
        return literal(one.type.rows)
    return cx.error(
        "E104", node, f"{type_name(one.type)} has no length", "use an array, vector or matrix"
    )


def _type(cx: Context, node: ast.Call) -> Operand:
    """`type(x)`: the class of a value, to cast or construct with; of an array, its `dtype`."""
    if len(node.args) != 1:
        return cx.error("E109", node, "`type` takes 1 argument")
    found = cx.expr(node.args[0])
    if isinstance(found, Struct):
        return Known(found.type.cls)
    view = as_view(found)
    if view is not None:
        return Known(ArrayClass(value_class(view.root.element), view.ndim))
    got = cx.one(node.args[0], found)
    if isinstance(got, Bad) or isinstance(got.type, ArrayType):
        return BAD
    return Known(value_class(got.type))


@dataclass(frozen=True, slots=True)
class ArrayClass:
    """What `type` gives of an array."""

    dtype: Any
    ndim: int


def _where(cx: Context, node: ast.Call) -> Operand:
    return lower_where(cx, node, "where")


def _select(cx: Context, node: ast.Call) -> Operand:
    return lower_where(cx, node, "select")


Special = Callable[[Context, ast.Call], Operand]
_SPECIAL: dict[str, Special] = {
    "tid": lambda cx, node: thread_coordinates(cx, node, 1),
    "where": _where,
    "select": _select,
    "len": _length,
    "grad": lower_grad,
    "static": lower_static,
    "matrix_from_rows": lambda cx, node: matrix_from_vectors(cx, node, rows=True),
    "matrix_from_cols": lambda cx, node: matrix_from_vectors(cx, node, rows=False),
    "expect_eq": lambda cx, node: lower_expect(cx, node, "expect_eq"),
    "expect_neq": lambda cx, node: lower_expect(cx, node, "expect_neq"),
    "expect_near": lambda cx, node: lower_expect(cx, node, "expect_near"),
}


# Those that take arguments by name.
_NAMED: dict[str, Special] = {
    "identity": lower_identity,
    "cast": lower_reinterpret,
    "print": lower_print,
    "printf": lower_printf,
    "tile": lower_tile,
    "untile": lower_untile,
    "tile_reduce": lower_tile_reduce,
    "tile_sum": lambda cx, node: lower_reduction(cx, node, "tile_sum"),
    "tile_min": lambda cx, node: lower_reduction(cx, node, "tile_min"),
    "tile_max": lambda cx, node: lower_reduction(cx, node, "tile_max"),
    "block_dim": lower_block_dim,
}


def lower_call(cx: Context, node: ast.expr) -> Operand:
    assert isinstance(node, ast.Call)
    return _call(cx, node, statement=False)


def call_statement(cx: Context, node: ast.Call) -> None:
    """A call whose result is not used."""
    _call(cx, node, statement=True)


def _call(cx: Context, node: ast.Call, statement: bool) -> Operand:
    if any(isinstance(a, ast.Starred) for a in node.args):
        nodes = expanded(cx, node.args)
        if nodes is None:
            return BAD
        node = ast.copy_location(ast.Call(node.func, nodes, node.keywords), node)
    bare = node.func.id if isinstance(node.func, ast.Name) else ""
    if id(node) in cx.function.statics:  # whatever the name has come to mean
        return lower_static(cx, node)
    if bare == "printf" and cx.scope.lookup(bare) is MISSING:
        return lower_printf(cx, node)  # Warp knows it without the module's name
    target = cx.expr(node.func)
    if isinstance(target, Bad):
        for a in node.args:  # more to say about the arguments, perhaps
            if not is_text(a):
                cx.expr(a)
        return BAD
    if not isinstance(target, Known):
        return cx.error(
            "E106",
            node,
            f"`{cx.source.text(node.func)}` is a value, not a function",
            f"write `*` for a product, or decorate the function with `@{cx.api}.func`",
        )
    obj = target.obj
    apart = arguments_apart(cx, node, obj, lambda again: _call(cx, again, statement))
    if apart is not None:
        return apart
    if isinstance(obj, UserFunc):
        return call_user(cx, node, obj)
    if isinstance(obj, Gradient):
        return call_gradient(cx, node, obj)
    t = type_of(obj)
    if t is not None:
        return lower_constructor(cx, node, t)
    struct = struct_of(obj)
    if struct is not None:
        return lower_struct(cx, node, struct)
    name = _builtin_name(obj)
    if obj is print:
        return lower_print(cx, node)
    if is_array_class(obj):
        return array_at(cx, node)
    if name == "zeros":
        return lower_zeros(cx, node)
    if name is None and obj is len:
        return _length(cx, node)
    if name is None and obj is type:
        return _type(cx, node)
    if inspect.isfunction(obj) and obj in HELPERS:
        return call_user(cx, node, library_func(HELPERS[obj]))
    factory = factory_of(obj)
    if factory is not None:
        if makes_value(cx, node, factory):
            return lower_generic_constructor(cx, node, factory.__name__)
        return lower_factory(cx, node, factory)
    if name is None:
        return _not_callable(cx, node, obj)
    if name in QUERIES:
        return lower_query(cx, node, name)
    if name in _NAMED:
        return _NAMED[name](cx, node)
    if name in GENERIC_CONSTRUCTORS:
        return lower_generic_constructor(cx, node, name)
    if name in IDENTITIES:
        return lower_rigid_identity(cx, node, name)
    if node.keywords:
        made = _by_position(cx, node, name)
        if made is None:
            return BAD
        node = made
    if name in ATOMICS:
        return lower_atomic(cx, node, ATOMICS[name], statement)
    if name in _SPECIAL:
        return _SPECIAL[name](cx, node)
    if name in COMPOSITES:
        given = [_argument(cx, a) for a in node.args]
        views = [a for a in given if isinstance(a, (Value, View))]
        if any(isinstance(a, View) for a in views):
            if len(views) != len(given):
                return BAD
            return call_library(cx, name, views, node.args) or _no_overload(cx, node, name, views)
        args = [a for a in given if not isinstance(a, View)]
    else:
        args = [cx.scalar_value(a, "an argument") for a in node.args]
    if obj in (min, max, pow) and len(args) > 2 and obj is not pow:
        return _chain(cx, node, name, args)
    if name in COMPOSITES:
        values = [a for a in args if isinstance(a, Value)]
        if len(values) != len(args):
            return BAD
        if resolve(name, [v.type for v in values], [v.weak for v in values]) is None:
            composed = call_library(cx, name, values, node.args)
            if composed is not None:
                return composed
    return apply(cx, node, name, args)


def _by_position(cx: Context, node: ast.Call, name: str) -> ast.Call | None:
    """A call with arguments by name as one by position; an error where they have other names."""
    words = [w.arg or "**" for w in node.keywords]
    made = by_position(name, node)
    if made is None and "**" not in words:  # which is told already
        ways = "; or ".join(", ".join(names) for names in argument_names(name))
        first = node.keywords[0]
        cx.error(
            "E106",
            first.value,
            f"`{name}` takes no argument `{first.arg}` here",
            f"its arguments: {ways}" if ways else "pass the arguments by position",
        )
    return made


def _argument(cx: Context, node: ast.expr) -> Value | View | Bad:
    """A value, or an array of any form with a number of dimensions."""
    got = cx.expr(node)
    if isinstance(got, View) and got.ndim and not isinstance(got.root.element, StructType):
        return got
    return cx.one(node, got, "an argument")


def _no_overload(cx: Context, node: ast.Call, name: str, given: Sequence[Value | View]) -> Operand:
    kinds = [parts[0] for v in given if (parts := decompose(v)) is not None]
    help_text = "no overload takes an array here: index it, as in a[i]"
    return cx.error("E104", node, f"`{name}` does not take ({type_names(kinds)})", help_text)


def _chain(cx: Context, node: ast.Call, name: str, args: Sequence[Value | Bad]) -> Operand:
    """Python's `min` and `max` of many values."""
    out = args[0]
    for a in args[1:]:
        out = apply(cx, node, name, [out, a])
    return out


# ---- what cannot be called


def _unsupported(cx: Context, node: ast.Call, name: str) -> Bad:
    feature = missing_feature(name)
    assert feature is not None
    text = cx.source.text(node.func)
    return cx.error("E112", node, f"`{text}`: {plural(feature[0])} not supported", feature[1])


def _not_callable(cx: Context, node: ast.Call, obj: object) -> Bad:
    name = str(getattr(obj, "__name__", "") or type(obj).__name__)
    module = str(getattr(obj, "__module__", "") or "")
    text, ours = cx.source.text(node.func), is_of_engine(obj)
    if isinstance(obj, StandIn):
        return not_here(cx, node, obj, text)
    if ours and missing_feature(name):
        return _unsupported(cx, node, name)
    api = cx.api
    if ours and name == "array":
        return cx.error(
            "E112",
            node,
            f"`{text}`: arrays made of pointers are not supported in kernels",
            f"pass the array, or make a local one: `{api}.zeros(shape=..., dtype=...)`",
        )
    if obj is range:
        help_text = "use `range` in a `for` statement only"
    elif name in BUILTINS and not ours:
        help_text = f"write `{api}.{name}(...)`"
    elif type(obj).__name__ == "Kernel":
        help_text = f"a kernel is launched, not called: make it a `@{api}.func` to call it"
    elif ours or module.split(".")[0] in ("numpy", "builtins", "math"):
        help_text = "compute it outside the kernel and pass the result"
    else:
        help_text = f"decorate it with `@{api}.func`"
    return cx.error("E106", node, f"`{text}` cannot be called in a kernel", help_text)
