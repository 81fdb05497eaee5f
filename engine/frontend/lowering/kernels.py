"""Kernels, and functions for kinds of arguments, as IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.builtins.composite import Composite
from engine.frontend.functions.library_function import library_func
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.lowering.instances import Instances
from engine.frontend.lowering.rounds import lower_body
from engine.frontend.operands.kinds import Kind, kind_of_type, user_type
from engine.frontend.parsing.captures import Captures
from engine.frontend.parsing.parsed_function import parse_function
from engine.frontend.parsing.text import FunctionText
from engine.ir.nodes import Function
from engine.lang.structs import UserType


def lower_kernel(
    func: Callable[..., Any],
    types: Mapping[str, UserType] | None = None,
    text: FunctionText | None = None,
    *,
    assertions: bool = False,
    captures: list[Captures] | None = None,
) -> Function:
    """The IR of a kernel. Raises KernelError with everything that is wrong with it.

    types: of the parameters that have none of their own. text: as the decorator found it.
    assertions: whether `assert` is compiled. captures: gets what was read from Python.
    """
    parsed = parse_function(func, text, is_kernel=True)
    parsed = replace(parsed, annotated={**parsed.annotated, **(types or {})})
    for name in parsed.patterns:
        if parsed.annotated[name] is None:
            parsed.report.add(
                "E103",
                parsed.source.parameter(name),
                f"parameter `{name}` may have any type here: the arguments must decide it",
                f"launch the kernel, or use an overload: `{parsed.scope.api}.overload(...)`",
            )
    if captures is not None:
        captures.append(parsed.scope.captures)
    instances = Instances(assertions, captures)
    return lower_body(parsed, parsed.source.tree.name, parsed.annotated, instances)


def lower_function(function: UserFunc, kinds: Sequence[Kind]) -> Function:
    """The IR of a function for kinds of arguments. Raises KernelError."""
    return Instances().instance(function, kinds)


def result_types(
    function: UserFunc, types: Sequence[UserType], captures: list[Captures] | None = None
) -> tuple[UserType, ...]:
    """What a function gives for arguments of these types. Raises KernelError.

    captures: gets what was read from Python.
    """
    made = Instances(captures=captures).instance(function, [kind_of_type(t) for t in types])
    return tuple(user_type(kind) for kind, _ in made.returns) or made.results


def lower_composite(composite: Composite, types: Sequence[Kind]) -> Function:
    """The IR of a builtin that is written in the kernel language. Raises KernelError."""
    return Instances().instance(library_func(composite), types)
