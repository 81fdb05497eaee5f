"""Types of parameters, results and annotated variables."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from typing import Any, get_args

from engine.frontend.parsing.report import Report
from engine.frontend.parsing.scope import Scope, type_of
from engine.frontend.parsing.source import Source
from engine.lang.generics import ANYTHING, NOT_OF_KERNELS, Pattern, pattern_of
from engine.lang.references import Reference
from engine.lang.stand_ins import StandIn, plural, stand_in_of
from engine.lang.structs import (
    ARRAYS,
    FieldType,
    IndexedArrayType,
    StructArrayType,
    StructType,
    UserType,
)
from engine.lang.types import ArrayType, MatrixType, ScalarType, VectorType

_KINDS = (
    ScalarType,
    VectorType,
    MatrixType,
    ArrayType,
    StructType,
    StructArrayType,
    IndexedArrayType,
)


class BadAnnotation(Exception):
    """An annotation that names no type; the text says why, and help what to do where it knows."""

    def __init__(self, text: str, code: str = "E103", help: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.help = help


def _not_here(found: StandIn) -> BadAnnotation:
    text = f"`{found.missing_name}`: {plural(found.missing_feature)} not supported"
    return BadAnnotation(text, "E112", found.missing_help)


def to_type(obj: Any) -> FieldType | None:
    """The type that an annotation object names. None for `Any` and other patterns.

    Raises BadAnnotation.
    """
    missing = stand_in_of(obj)
    if missing is not None:
        raise _not_here(missing)
    if isinstance(obj, Reference):
        return to_type(obj.dtype)
    if obj is inspect.Parameter.empty or pattern_of(obj) is not None:
        return None
    found = getattr(obj, "__ir_type__", None)
    if isinstance(found, _KINDS):
        return found
    if isinstance(obj, _KINDS):
        return obj
    scalar = type_of(obj)
    if scalar is not None:
        return scalar
    name = getattr(obj, "__name__", None) or repr(obj)
    raise BadAnnotation(f"`{name}` is not a type of kernels")


def evaluate(obj: Any, scope: Scope) -> Any:
    """The annotation itself, where it is kept as text (of text, perhaps)."""
    try:
        for _ in range(2):
            if not isinstance(obj, str):
                break
            obj = scope.evaluate(obj)
        return obj
    except Exception as error:
        raise BadAnnotation(f"the annotation `{obj}` cannot be evaluated ({error})") from None


def annotation_of_node(node: ast.expr, scope: Scope) -> FieldType | None:
    """The type of an annotated variable. Raises BadAnnotation."""
    return to_type(evaluate(ast.unparse(node), scope))


def help_text(api: str) -> str:
    """What annotations may be."""
    return (
        f"annotate with a type: `float`, `int`, `bool`, `{api}.float64`, `{api}.vec3`, "
        f"`{api}.array(dtype=float)`"
    )


def parameter_types(
    func: Callable[..., Any], source: Source, scope: Scope, report: Report, kernel: bool
) -> dict[str, UserType | None]:
    """Annotated types by parameter, None where there is none. Reports E103.

    A kernel must annotate every parameter; a function takes missing types from the call.
    Parameters of a pattern (see `patterns`) have no type either.
    """
    args = source.tree.args
    notes = getattr(inspect.unwrap(func), "__annotations__", {})
    out: dict[str, UserType | None] = {}
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        name = arg.arg
        if name not in notes:
            out[name] = None
            if kernel:
                own = name == "self" and arg is source.tree.args.args[0]
                what = (
                    "a kernel cannot be a method: move it out of the class, and pass the values "
                    "that it needs"
                )
                advice = what if own else help_text(scope.api)
                report.add("E103", arg, f"parameter `{name}` has no annotation", advice)
            continue
        try:
            value = evaluate(notes[name], scope)
            out[name] = to_type(value)
            if isinstance(value, Reference):
                _check_reference(value, out[name], kernel)
            pattern = pattern_of(value) if kernel else None
            if pattern is not None and pattern.role in NOT_OF_KERNELS:
                raise BadAnnotation(f"a kernel cannot take a {pattern.role} as an argument")
        except BadAnnotation as error:
            out[name] = None
            advice = error.help or help_text(scope.api)
            report.add(error.code, arg, f"parameter `{name}`: {error}", advice)
    return out


def _check_reference(value: Reference, t: UserType | None, kernel: bool) -> None:
    """Raises BadAnnotation for a reference that no parameter can be."""
    if kernel:
        raise BadAnnotation("a kernel cannot take a reference", help="pass an array")
    if isinstance(t, ARRAYS):
        raise BadAnnotation("an array refers to its elements: a reference to it is not supported",
                            help="pass the array itself")  # fmt: skip


def patterns(
    func: Callable[..., Any], names: Iterable[str], scope: Scope, kernel: bool = False
) -> dict[str, Pattern]:
    """What parameters take whose type the call decides; those of a bad annotation left out.

    Parameters without an annotation take anything, but none do in a kernel.
    """
    notes = getattr(inspect.unwrap(func), "__annotations__", {})
    out: dict[str, Pattern] = {}
    for name in names:
        if kernel and name not in notes:
            continue
        try:
            found = pattern_of(evaluate(notes[name], scope)) if name in notes else ANYTHING
        except BadAnnotation:
            continue
        if found is not None:
            out[name] = found
    return out


def no_result(func: Callable[..., Any], source: Source, scope: Scope, report: Report) -> None:
    """Reports E109 for a kernel that is annotated with a result."""
    notes = getattr(inspect.unwrap(func), "__annotations__", {})
    if "return" not in notes or source.tree.returns is None:
        return
    try:
        value = evaluate(notes["return"], scope)
    except BadAnnotation:
        value = notes["return"]
    if value is not None and value is not type(None):
        report.add("E109", source.tree.returns, "a kernel cannot return a value",
                   "write `-> None`, and store results into array parameters")  # fmt: skip


def result_types(
    func: Callable[..., Any], source: Source, scope: Scope, report: Report
) -> tuple[UserType, ...] | None:
    """Annotated results; None where they are to be found from the `return` statements."""
    notes = getattr(inspect.unwrap(func), "__annotations__", {})
    if "return" not in notes or source.tree.returns is None:
        return None
    try:
        value = evaluate(notes["return"], scope)
        if value is None or value is type(None):
            return ()
        parts = value if isinstance(value, tuple) else (value,)
        if getattr(value, "__origin__", None) is tuple:
            parts = get_args(value)
        found = [to_type(evaluate(p, scope)) for p in parts]
    except BadAnnotation as error:
        advice = error.help or help_text(scope.api)
        report.add(error.code, source.tree.returns, f"result: {error}", advice)
        return None
    values = [t for t in found if t is not None]
    return tuple(values) if len(values) == len(found) else None
