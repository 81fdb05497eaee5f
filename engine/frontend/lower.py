"""The way from a Python function to IR: source, fence, desugar, plan, rounds of lowering.

A round lowers the whole function once. Types that a place needs before the statement
that fixes them (a variable carried around a loop, the result of a function with
several `return`s) are learnt in one round and used in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from engine.diagnostics import Diagnostic, KernelError

# These fill the tables of handlers.
from engine.frontend import assign, calls, exprs, flow, logic, places  # noqa: F401
from engine.frontend.aggregates import can_be_learnt
from engine.frontend.annotations import parameter_types, patterns, result_types
from engine.frontend.composites import changed_arguments
from engine.frontend.context import Context, Learnt, Prepared
from engine.frontend.desugar import desugar
from engine.frontend.exprs import unassigned
from engine.frontend.fence import fence
from engine.frontend.flow import reaches_end
from engine.frontend.kinds import Kind, kind_of_type, slots
from engine.frontend.locals import plan_locals
from engine.frontend.operands import BAD
from engine.frontend.parameters import enter, holds_array, open_adjoints
from engine.frontend.report import Report
from engine.frontend.results import (
    Returned,
    check_annotation,
    joined,
    joined_quietly,
    kinds_of,
    known_results,
    lent_atoms,
    returned_kinds,
    value_type,
)
from engine.frontend.scope import Scope
from engine.frontend.source import source_of, too_deep
from engine.frontend.static import take_expressions
from engine.ir.nodes import Function, Return, Var
from engine.lang.structs import COMPOUND, Argument, UserType
from engine.lang.types import ValueType

_MAX_ROUNDS = 12


def prepare(func: Callable[..., Any], is_kernel: bool) -> Prepared:
    """Everything before types: text, fence, names. Raises KernelError E111 without a source."""
    source = source_of(func)
    scope = Scope(func)
    report = Report(source)
    try:
        statics = take_expressions(source.tree, scope)
        rejected = fence(source.tree, report)
        desugar(source.tree, rejected)
        annotated = parameter_types(func, source, scope, report, is_kernel)
        untyped = [name for name, t in annotated.items() if t is None]
        open_ = patterns(func, untyped, scope, is_kernel)
        results = None if is_kernel else result_types(func, source, scope, report)
        plan = plan_locals(source.tree, partial(changed_arguments, scope))
    except RecursionError:
        raise too_deep(source) from None
    return Prepared(
        source, scope, rejected, plan, report, annotated, results, is_kernel, open_, statics
    )


def lower_kernel(func: Callable[..., Any], types: Mapping[str, UserType] | None = None) -> Function:
    """The IR of a kernel. Raises KernelError with everything that is wrong with it.

    types: of the parameters that have none of their own.
    """
    made = prepare(func, is_kernel=True)
    made = replace(made, annotated={**made.annotated, **(types or {})})
    for name in made.patterns:
        if made.annotated[name] is None:
            made.report.add(
                "E103",
                made.source.parameter(name),
                f"parameter `{name}` may have any type here: arguments have to decide",
                f"launch the kernel, or take an overload: `{made.scope.api}.overload(...)`",
            )
    return lower_body(made, made.source.tree.name, made.annotated)


def lower_types(made: Prepared, name: str, kinds: Sequence[Kind]) -> Function:
    """The IR of a function for kinds of arguments, in the order of its parameters."""
    return lower_body(made, name, dict(zip(made.annotated, kinds, strict=True)))


def lower_body(
    made: Prepared,
    name: str,
    types: Mapping[str, Kind | UserType | None],
    adjoints: Sequence[str] | None = None,
) -> Function:
    """Lowers in rounds until no type is missing.

    adjoints: for a custom gradient, the parameters whose derivatives it returns.
    """
    kinds = {p: None if t is None else _expanded(t) for p, t in types.items()}
    learnt = Learnt(results=known_results(made.results))
    for _ in range(_MAX_ROUNDS):
        cx = Context(made, name, learnt)
        try:
            fn = _round(cx, kinds, adjoints)
        except KernelError:
            raise
        except RecursionError:
            raise too_deep(made.source) from None
        except Exception as error:
            raise KernelError(
                Diagnostic(
                    "E101",
                    f"`{name}` cannot be translated ({type(error).__name__}: {error})",
                    made.source.header(),
                    "please report this function; until then, write it with simpler statements",
                )
            ) from None
        if not _learn(cx, learnt):
            break
    for missing, node in cx.deferred.items():
        if missing not in learnt.locals and missing not in cx.poisoned:
            unassigned(cx, node, missing)
    made_report = Report(made.source)
    made_report.diagnostics.update(made.report.diagnostics)
    made_report.diagnostics.update(cx.report.diagnostics)
    made_report.check()
    return fn


def _expanded(t: Kind | UserType) -> Kind:
    return kind_of_type(t) if isinstance(t, COMPOUND) else t


def _round(cx: Context, types: dict[str, Kind | None], adjoints: Sequence[str] | None) -> Function:
    params: list[Var] = []
    for name, t in types.items():
        if t is None:
            cx.bound[name] = BAD
        else:
            params += enter(cx, name, t)
    if adjoints is not None:
        cx.array_params = frozenset(n for n, t in types.items() if holds_array(t))
        open_adjoints(cx, [(name, types[name]) for name in adjoints])
    cx.block(cx.source.tree.body)
    results, returns = _finish(cx)
    gradients = tuple(p.name for p in params if p.name in cx.adjoint_arrays)
    return Function(
        cx.name,
        (*params, *(cx.adjoint_arrays[name] for name in gradients)),
        results,
        cx.b.block(),
        is_kernel=cx.is_kernel,
        span=cx.source.header(),
        arguments=_arguments(cx) if cx.is_kernel else (),
        returns=returns,
        gradients=gradients,
    )


def _arguments(cx: Context) -> tuple[Argument, ...]:
    """What launches take the kernel's arguments apart by; empty where nothing is to be done."""
    given = [Argument(name, t) for name, t in cx.made.annotated.items() if t is not None]
    return tuple(given) if any(isinstance(a.type, COMPOUND) for a in given) else ()


def _finish(cx: Context) -> tuple[tuple[ValueType, ...], tuple[Returned, ...]]:
    """Closes the function: result types, and the end that no `return` marks."""
    if cx.is_kernel:
        return (), ()
    if cx.adjoints is not None:
        if reaches_end(cx.b.block()):
            cx.b.add(Return(cx.adjoint_vars, cx.source.header()))
        return tuple(value_type(v.type) for v in cx.adjoint_vars), ()
    results = cx.learnt.results
    if results is None:
        results = joined(cx)
        if results:
            check_annotation(cx, results)
    if results and reaches_end(cx.b.block()) and not cx.failed_return and cx.returned:
        cx.report.add(
            "E109",
            cx.source.header(),
            f"`{cx.name}` can reach its end without returning a value",
            "end it with a `return` statement that every path reaches",
        )
    elif results and not cx.returned and not cx.failed_return:
        cx.report.add(
            "E109",
            cx.source.header(),
            f"`{cx.name}` is annotated with a result but returns nothing",
            "write `return value`, or remove the annotation of the result",
        )
    if cx.lent and reaches_end(cx.b.block()):
        cx.b.add(Return(lent_atoms(cx), cx.source.header()))
    types = [s.type for k in results for s in slots(k) if not s.static]
    types += [a.type for a in lent_atoms(cx)]
    return tuple(value_type(t) for t in types), returned_kinds(cx, results)


def _learn(cx: Context, learnt: Learnt) -> bool:
    """Takes over what the round found out; False where another round has no use."""
    found = [
        n
        for n in cx.deferred
        if n in cx.types and n not in learnt.locals and can_be_learnt(cx.types[n])
    ]
    # A type is sure where the first assignment gave it, which may wait for another type.
    sure = [n for n in found if n not in cx.unsure] or found
    learnt.locals.update({n: cx.types[n] for n in sure})
    more = bool(sure)
    if learnt.results is None and cx.returned and not cx.is_kernel and cx.adjoints is None:
        found_results = joined_quietly(cx)
        given = [kinds_of(values) for _, values in cx.returned]
        if found_results and any(g != found_results for g in given):
            learnt.results = found_results
            more = True
    return more
