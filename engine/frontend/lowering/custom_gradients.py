"""Custom gradients and replay functions: `@func_grad(f)` and `@func_replay(f)`.

A gradient of f(inputs) -> results lowers to an ordinary function
(inputs..., cotangents of results...) -> adjoints of the differentiable inputs. Each
`adjoint[x]` is a variable that starts at zero and is returned at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.diagnostics import Diagnostic, KernelError
from engine.frontend.context.lowering import Lowering
from engine.frontend.lowering.parameters import differentiable
from engine.frontend.lowering.rounds import lower_body
from engine.frontend.operands.kinds import Kind, ViewKind, accepts
from engine.frontend.operands.operand import Known
from engine.frontend.operands.type_names import type_name, type_names
from engine.frontend.parsing.parsed_function import ParsedFunction
from engine.ir.nodes import Function, writes_memory


def _mismatch(
    code: str, parsed: ParsedFunction, name: str | None, message: str, help_text: str
) -> None:
    """Raises KernelError at a parameter, or at the `def` line."""
    raise KernelError(Diagnostic(code, message, parsed.source.parameter(name or ""), help_text))


def _bind(
    parsed: ParsedFunction, types: Sequence[Kind], roles: Sequence[str], what: str, help_text: str
) -> dict[str, Kind | None]:
    """Parameter types of a function whose signature is given by another. Raises KernelError."""
    names = list(parsed.annotated)
    if len(names) != len(types):
        _mismatch(
            "E109",
            parsed,
            None,
            f"{what} takes {len(types)} parameters, but `{parsed.source.tree.name}` has "
            f"{len(names)}",
            help_text,
        )
    for name, t, role in zip(names, types, roles, strict=True):
        have = parsed.annotated[name]
        if have is not None and not accepts(have, t):
            shown = type_name(t) if not isinstance(t, Known) else "a function"
            _mismatch(
                "E104",
                parsed,
                name,
                f"parameter `{name}` is {role} and must have type {shown}, but is "
                f"annotated {type_name(have)}",
                help_text,
            )
    return dict(zip(names, types, strict=True))


def _no_local_arrays(parsed: ParsedFunction, primal: Function, kinds: Sequence[Kind]) -> None:
    if any(isinstance(k, ViewKind) and k.shape for k in kinds):
        _mismatch(
            "E110",
            parsed,
            None,
            f"`{primal.name}` is called with a local array, which a custom derivative cannot have",
            "pass the numbers as a vector, or an array parameter of the kernel",
        )


def _results(primal: Function) -> list[Kind]:
    return [kind for kind, _ in primal.returns] if primal.returns else list(primal.results)


def lower_gradient(
    parsed: ParsedFunction,
    primal: Function,
    forward: ParsedFunction,
    inputs: Sequence[Kind],
    lowering: Lowering,
) -> Function:
    """The user's adjoint of `primal`. Raises KernelError for a wrong signature.

    parsed: the adjoint's text. forward: that of the function itself.
    """
    _no_local_arrays(parsed, primal, inputs)
    results = _results(primal)
    names = list(forward.annotated)
    roles = [f"the input `{n}` of `{primal.name}`" for n in names]
    roles += [f"the adjoint of result {k + 1}" for k in range(len(results))]
    expected = ", ".join([*names, *(f"adj_{k}" for k in range(len(results)))])
    types = _bind(
        parsed,
        [*inputs, *results],
        roles,
        f"a gradient of `{primal.name}`",
        f"write `def {parsed.source.tree.name}({expected})`: the inputs, then one adjoint for "
        f"each result ({type_names(results) or 'none'})",
    )
    own = dict(list(types.items())[: len(inputs)])
    return lower_body(parsed, parsed.source.tree.name, types, lowering, differentiable(own))


def lower_replay(
    parsed: ParsedFunction, primal: Function, inputs: Sequence[Kind], lowering: Lowering
) -> Function:
    """The user's forward code for the backward pass. Raises KernelError for another signature."""
    _no_local_arrays(parsed, primal, inputs)
    help_text = f"a replay function has the parameters and results of `{primal.name}`"
    types = _bind(
        parsed,
        inputs,
        [f"a parameter of `{primal.name}`"] * len(inputs),
        f"a replay of `{primal.name}`",
        help_text,
    )
    fn = lower_body(parsed, parsed.source.tree.name, types, lowering)
    if writes_memory(fn):
        _mismatch(
            "E110",
            parsed,
            None,
            f"the replay `{fn.name}` writes memory, but the backward pass changes gradients only",
            f"read the result of `{primal.name}` from memory, and return it",
        )
    if _results(fn) != _results(primal):
        _mismatch(
            "E104",
            parsed,
            None,
            f"`{fn.name}` returns ({type_names(_results(fn))}), but `{primal.name}` returns "
            f"({type_names(_results(primal))})",
            help_text,
        )
    return fn
