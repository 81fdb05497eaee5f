"""From a Python function to typed IR. The rooms, from the text to the whole function:

parsing     text, fence, desugar, names and annotations: what needs no types
operands    what an expression can be while it is lowered: values, structs, views, kinds
functions   what `@func` and its kin make, as data, and which overload a call means
context     the state of lowering one function, and how the rooms reach each other
expressions, assignment, calls, statements
            what lowers each kind of node
lowering    whole functions: rounds, parameters, instances, custom gradients, native code

Other packages use the names below, and `engine.frontend.features`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.classes import complete
from engine.frontend.functions.called_functions import Bindings, bindings, defined_before
from engine.frontend.functions.gradient import Gradient, grad
from engine.frontend.functions.native_function import NativeFunc, Snippets
from engine.frontend.functions.user_function import (
    UserFunc,
    function_changes,
    on_function_change,
)
from engine.frontend.parsing.captures import Captures
from engine.frontend.parsing.signature import Signature, signature_of
from engine.frontend.parsing.static_expressions import declared_text, static
from engine.frontend.parsing.text import FunctionText, function_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.builtins.composite import Composite
    from engine.frontend.functions.meaning import Meaning
    from engine.frontend.operands.kinds import Kind
    from engine.ir.nodes import Function
    from engine.lang.structs import UserType

# `lowering` is imported late: programs that launch nothing never need it.


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
    from engine.frontend.lowering import kernels

    return kernels.lower_kernel(func, types, text, assertions=assertions, captures=captures)


def meaning_of(
    func: Callable[..., Any], text: FunctionText | None, types: Sequence[UserType] = ()
) -> Meaning | None:
    """What a kernel means now, to be compared; None where it cannot be told."""
    from engine.frontend.functions.meaning import Meaning, Unclear

    try:
        return Meaning(func, text, types)
    except Unclear:
        return None
    except Exception:  # objects of other packages may do as they like
        return None


def prepare() -> None:
    """Gets ready what tells the meaning of a kernel, for which every first launch asks."""
    import engine.frontend.functions.meaning  # noqa: F401

    complete(Signature)


def lower_function(function: UserFunc, kinds: Sequence[Kind]) -> Function:
    """The IR of a function made by `@func` for kinds of arguments. Raises KernelError."""
    from engine.frontend.lowering import kernels

    return kernels.lower_function(function, kinds)


def result_types(
    function: UserFunc, types: Sequence[UserType], captures: list[Captures] | None = None
) -> tuple[UserType, ...]:
    """What a function made by `@func` gives for arguments of these types. Raises KernelError.

    captures: gets what was read from Python.
    """
    from engine.frontend.lowering import kernels

    return kernels.result_types(function, types, captures)


def lower_composite(composite: Composite, types: Sequence[Kind]) -> Function:
    """The IR of a builtin that is written in the kernel language. Raises KernelError."""
    from engine.frontend.lowering import kernels

    return kernels.lower_composite(composite, types)


def is_stub(func: Callable[..., Any]) -> bool:
    """Whether a function has no statements. Raises KernelError E111 without a source."""
    from engine.frontend.parsing import parsed_function

    return parsed_function.is_stub(func)


__all__ = [
    "Bindings",
    "Captures",
    "FunctionText",
    "Gradient",
    "Meaning",
    "NativeFunc",
    "Signature",
    "Snippets",
    "UserFunc",
    "bindings",
    "declared_text",
    "defined_before",
    "function_changes",
    "function_text",
    "grad",
    "is_stub",
    "lower_composite",
    "lower_function",
    "lower_kernel",
    "meaning_of",
    "on_function_change",
    "prepare",
    "result_types",
    "signature_of",
    "static",
]
