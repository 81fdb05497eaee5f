"""Custom gradients and replay functions: `@func_grad(f)` and `@func_replay(f)`.

A gradient of f(inputs) -> results lowers to an ordinary function
(inputs..., cotangents of results...) -> adjoints of the differentiable inputs. Each
`adjoint[x]` is a variable that starts at zero and is returned at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.diagnostics import Diagnostic, KernelError
from engine.frontend.context import Prepared
from engine.frontend.lower import differentiable, lower_body, prepare
from engine.frontend.typenames import type_name, type_names
from engine.ir.nodes import Function
from engine.lang.types import Type


def _mismatch(code: str, made: Prepared, name: str | None, message: str, help_text: str) -> None:
    """Raises KernelError at a parameter, or at the `def` line."""
    args = made.source.tree.args
    for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        if arg.arg == name:
            raise KernelError(Diagnostic(code, message, made.source.span(arg), help_text))
    raise KernelError(Diagnostic(code, message, made.source.header(), help_text))


def _bind(
    made: Prepared, types: Sequence[Type], roles: Sequence[str], what: str, help_text: str
) -> dict[str, Type | None]:
    """Parameter types of a function whose signature is given by another. Raises KernelError."""
    names = list(made.annotated)
    if len(names) != len(types):
        _mismatch(
            "E109",
            made,
            None,
            f"{what} takes {len(types)} parameters, but `{made.source.tree.name}` has {len(names)}",
            help_text,
        )
    for name, t, role in zip(names, types, roles, strict=True):
        have = made.annotated[name]
        if have is not None and have != t:
            _mismatch(
                "E104",
                made,
                name,
                f"parameter `{name}` is {role} and must have type {type_name(t)}, but is "
                f"annotated {type_name(have)}",
                help_text,
            )
    return dict(zip(names, types, strict=True))


def lower_gradient(grad: Callable[..., Any], primal: Function, forward: Prepared) -> Function:
    """The user's adjoint of `primal`. Raises KernelError for a wrong signature."""
    made = prepare(grad, is_kernel=False)
    inputs = [p.type for p in primal.params]
    names = list(forward.annotated)
    roles = [f"the input `{n}` of `{primal.name}`" for n in names]
    roles += [f"the adjoint of result {k + 1}" for k in range(len(primal.results))]
    expected = ", ".join([*names, *(f"adj_{k}" for k in range(len(primal.results)))])
    types = _bind(
        made,
        [*inputs, *primal.results],
        roles,
        f"a gradient of `{primal.name}`",
        f"write `def {made.source.tree.name}({expected})`: the inputs, then one adjoint for "
        f"each result ({type_names(primal.results) or 'none'})",
    )
    own = dict(list(types.items())[: len(inputs)])
    return lower_body(made, made.source.tree.name, types, differentiable(own))


def lower_replay(replay: Callable[..., Any], primal: Function) -> Function:
    """The user's forward code for the backward pass. Raises KernelError for another signature."""
    made = prepare(replay, is_kernel=False)
    help_text = f"a replay function has the parameters and results of `{primal.name}`"
    types = _bind(
        made,
        [p.type for p in primal.params],
        [f"a parameter of `{primal.name}`"] * len(primal.params),
        f"a replay of `{primal.name}`",
        help_text,
    )
    fn = lower_body(made, made.source.tree.name, types)
    if fn.results != primal.results:
        _mismatch(
            "E104",
            made,
            None,
            f"`{fn.name}` returns ({type_names(fn.results)}), but `{primal.name}` returns "
            f"({type_names(primal.results)})",
            help_text,
        )
    return fn
