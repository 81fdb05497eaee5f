"""The IR of native functions: C++ text in place of a body."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Sequence
from dataclasses import replace
from functools import partial

from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend.functions.native_function import NativeFunc
from engine.frontend.lowering.snippet_access import access
from engine.frontend.operands.kinds import (
    COMPOUND_KINDS,
    AbsentKind,
    Kind,
    StructKind,
    TupleKind,
    slots,
)
from engine.frontend.operands.operand import Known
from engine.frontend.operands.type_names import type_name
from engine.frontend.parsing.parsed_function import ParsedFunction
from engine.frontend.parsing.source import Source
from engine.frontend.statements.returns import value_type
from engine.ir.nodes import Function, Native, Var
from engine.lang.structs import COMPOUND, UserType
from engine.lang.types import (
    ArrayType,
    MatrixType,
    ScalarType,
    Type,
    ValueType,
    VectorType,
    is_float,
)

# Names that C++ keeps for itself, among those that Python allows.
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        alignas alignof auto bool case catch char concept const constexpr decltype default
        delete do double enum explicit export extern float friend goto inline int long mutable
        namespace new noexcept nullptr operator private protected public register requires short
        signed sizeof static struct switch template this throw try typedef typeid typename union
        unsigned using virtual void volatile wp eng
        """,
    )
)


def lower_native(function: NativeFunc, parsed: ParsedFunction, types: Sequence[Kind]) -> Function:
    """The IR of a native function for kinds of arguments. Raises KernelError."""
    name, snippets = function.name, function.snippets
    span = _place(parsed.source)
    _check(function, parsed, types, span)
    named = dict(zip(parsed.annotated, types, strict=True))
    params = tuple(Var(n + s.suffix, _plain(s.type)) for n, t in named.items() for s in slots(t))
    results = tuple(value_type(_plain(t)) for t in parsed.results or ())
    references = tuple(p for p in params if p.name.partition(".")[0] in parsed.references)
    grad = None
    primal = _function(name, params, results, snippets.forward, span, references)
    if snippets.adjoint is not None:
        grad = _adjoint(primal, results, snippets.adjoint)
    replay = None
    if snippets.replay is not None:
        replay = _function(f"{name}_replay", params, results, snippets.replay, span, references)
    return replace(primal, grad=grad, replay=replay)


def _function(
    name: str,
    params: tuple[Var, ...],
    results: tuple[ValueType, ...],
    text: str,
    span: Span,
    references: tuple[Var, ...],
) -> Function:
    found = access(text, [p.name for p in params if isinstance(p.type, ArrayType)])
    changed = tuple(p.name for p in references)
    native = Native(text, found.reads, found.writes, found.updates, pure=found.pure,
                    references=changed)  # fmt: skip
    every = (*results, *(value_type(p.type) for p in references))
    return Function(name, params, every, (), span=span, native=native)


def _adjoint(primal: Function, own: tuple[ValueType, ...], text: str) -> Function:
    """The adjoint from its text. own: the types of what the function returns itself."""
    name, params, native = primal.name, primal.params, primal.native
    assert native is not None
    changed = [p for p in params if p.name in native.references]
    if changed and native.writes | native.updates:
        raise _wrong(name, primal.span, "E112", "takes a reference and writes to an array, and has "
                     "an adjoint: this is not supported", "return the value instead")  # fmt: skip
    floats = [p for p in params if is_float(p.type)]
    inputs = [p for p in floats if not isinstance(p.type, ArrayType)]
    arrays = [p for p in floats if isinstance(p.type, ArrayType)]
    cotangents = [Var("adj_ret", t) for t in own]
    cotangents += [Var(f"adj_{p.name}", p.type) for p in changed]
    gradients = [Var(f"adj_{p.name}", p.type) for p in arrays]
    given = (*params, *cotangents, *gradients)
    # Only what it does to gradients counts: primal arrays are there to be read.
    touched = frozenset(g.name for g in gradients)
    return Function(
        f"adj_{name}",
        given,
        tuple(value_type(p.type) for p in inputs),
        (),
        span=primal.span,
        gradients=tuple(p.name for p in arrays),
        native=Native(
            text,
            reads=frozenset(p.name for p in given if isinstance(p.type, ArrayType)),
            writes=touched,
            inputs=tuple(p.name for p in inputs),
            pure=access(text, [p.name for p in given]).pure,
            # As in Warp, the text finds references as the function left them.
            before=native.text if changed else "",
        ),
    )


def _place(source: Source) -> Span:
    """The line of the decorator; that of the `def` where there is none."""
    for d in source.tree.decorator_list:
        name = d.func if isinstance(d, ast.Call) else d
        if getattr(name, "attr", getattr(name, "id", "")) == "func_native":
            whole, called = source.span(d), source.span(name)
            end = whole.end_col if whole.end_line == whole.line else called.end_col
            return replace(whole, end_line=whole.line, end_col=end)
    return source.header()


def _check(function: NativeFunc, parsed: ParsedFunction, types: Sequence[Kind], span: Span) -> None:
    """The stub and its signature. Raises KernelError."""
    parsed.report.check()
    source, snippets = parsed.source, function.snippets
    wrong = partial(_wrong, function.name, span)
    for s in source.tree.body:
        idle = isinstance(s, (ast.Pass, ast.Return)) and getattr(s, "value", None) is None
        if not idle and not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant)):
            raise wrong("E106", "has a body besides its snippet", "write `...` as its body")
    if "return" in function.func.__annotations__ and parsed.results is None:
        raise wrong("E103", "has a result without a single type", "annotate it with one type")
    if parsed.results and isinstance(parsed.results[0], COMPOUND):
        raise wrong(
            "E103",
            "returns a struct",
            "return a vector, or store into an array parameter",
        )
    if parsed.results and len(parsed.results) > 1:
        raise wrong(
            "E103",
            f"has {len(parsed.results)} results",
            "return one value, a vector perhaps, or store the others into an array parameter",
        )
    for name, t in zip(parsed.annotated, types, strict=True):
        if isinstance(t, Known):
            raise wrong("E104", f"cannot take a function as `{name}`", "pass a value")
        bad = _not_taken(t)
        if bad is not None:
            absent = isinstance(bad, AbsentKind)
            what = "an array that is not there" if absent else "a part of an array"
            what = "a tuple" if isinstance(bad, TupleKind) else what
            raise wrong(
                "E104",
                f"cannot take {what} ({type_name(bad)}) as `{name}`",
                {
                    "a tuple": "pass its items",
                    "an array that is not there": "pass an array",
                }.get(what, "pass the array and the indices"),
            )
        if _is_taken(name, parsed.annotated):
            raise KernelError(
                Diagnostic(
                    "E103",
                    f"parameter `{name}` of native function `{function.name}` has a name that "
                    "its C++ text cannot use",
                    source.parameter(name),
                    "choose another name: C++ keywords, `adj_...`, and `v_x` beside `x` are taken",
                )
            )
    texts = {"snippet": snippets.forward, "replay_snippet": snippets.replay}
    for what, text in texts.items():
        if parsed.results and text is not None and not re.search(r"\breturn\b", text):
            raise wrong(
                "E109",
                f"has a result, but its {what} has no `return`",
                "return the result, or remove the annotation of it",
            )


def _not_taken(t: Kind) -> Kind | None:
    """What of an argument has no form in C++; None where all has."""
    if isinstance(t, StructKind):
        return next((bad for item in t.items if (bad := _not_taken(item)) is not None), None)
    return t if isinstance(t, (*COMPOUND_KINDS, Known)) else None


def _is_taken(name: str, others: Container[str]) -> bool:
    """Whether the C++ text of a function cannot use a name of a parameter."""
    prefixed = name.startswith("v_") and name[2:] in others
    return prefixed or name in _KEYWORDS or name.startswith("adj_")


def _plain(t: Kind | UserType) -> Type:
    assert isinstance(t, (ScalarType, VectorType, MatrixType, ArrayType))
    return t


def _wrong(name: str, span: Span, code: str, message: str, help_text: str) -> KernelError:
    return KernelError(Diagnostic(code, f"native function `{name}` {message}", span, help_text))
