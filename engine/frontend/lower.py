"""The way from a Python function to IR: source, fence, desugar, plan, rounds of lowering.

A round lowers the whole function once. Types that a place needs before the statement
that fixes them (a variable carried around a loop, the result of a function with
several `return`s) are learnt in one round and used in the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engine.diagnostics import Diagnostic, KernelError

# These fill the tables of handlers.
from engine.frontend import assign, calls, exprs, flow, logic, places  # noqa: F401
from engine.frontend.annotations import parameter_types, result_types
from engine.frontend.composites import changed_arguments
from engine.frontend.context import Context, Learnt, Prepared
from engine.frontend.desugar import desugar
from engine.frontend.exprs import unassigned
from engine.frontend.fence import fence
from engine.frontend.flow import reaches_end
from engine.frontend.locals import plan_locals
from engine.frontend.operands import BAD, Value, unify
from engine.frontend.report import Report
from engine.frontend.scope import Scope
from engine.frontend.source import source_of, too_deep
from engine.frontend.typenames import type_name
from engine.ir.nodes import Function, Return, Set, Var
from engine.lang.types import ArrayType, Type, ValueType, is_float

_MAX_ROUNDS = 12


def prepare(func: Callable[..., Any], is_kernel: bool) -> Prepared:
    """Everything before types: text, fence, names. Raises KernelError E111 without a source."""
    source = source_of(func)
    scope = Scope(func)
    report = Report(source)
    try:
        rejected = fence(source.tree, report)
        desugar(source.tree, rejected)
        annotated = parameter_types(func, source, scope, report, is_kernel)
        results = None if is_kernel else result_types(func, source, scope, report)
        plan = plan_locals(source.tree, partial(changed_arguments, scope))
    except RecursionError:
        raise too_deep(source) from None
    return Prepared(source, scope, rejected, plan, report, annotated, results, is_kernel)


def lower_kernel(func: Callable[..., Any]) -> Function:
    """The IR of a kernel. Raises KernelError with everything that is wrong with it."""
    made = prepare(func, is_kernel=True)
    return lower_body(made, made.source.tree.name, made.annotated)


def lower_types(made: Prepared, name: str, types: Sequence[Type]) -> Function:
    """The IR of a function for argument types, in the order of its parameters."""
    return lower_body(made, name, dict(zip(made.annotated, types, strict=True)))


def lower_body(
    made: Prepared,
    name: str,
    types: dict[str, Type | None],
    adjoints: Sequence[str] | None = None,
) -> Function:
    """Lowers in rounds until no type is missing.

    adjoints: for a custom gradient, the parameters whose derivatives it returns.
    """
    learnt = Learnt(results=made.results)
    for _ in range(_MAX_ROUNDS):
        cx = Context(made, name, learnt)
        try:
            fn = _round(cx, types, adjoints)
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


def _round(cx: Context, types: dict[str, Type | None], adjoints: Sequence[str] | None) -> Function:
    params: list[Var] = []
    header = cx.source.header()
    for name, t in types.items():
        if t is None:
            cx.bound[name] = BAD
            continue
        var = Var(name, t)
        params.append(var)
        _enter(cx, name, var)
    if adjoints is not None:
        cx.array_params = frozenset(n for n, t in types.items() if isinstance(t, ArrayType))
        cx.adjoints = {}
        for name in adjoints:
            t = types[name]
            if t is not None:
                cx.adjoints[name] = cx.b.variable(t, f"adj_{name}")
    cx.block(cx.source.tree.body)
    results = _finish(cx)
    return Function(
        cx.name,
        tuple(params),
        results,
        cx.b.block(),
        is_kernel=cx.is_kernel,
        span=header,
    )


def _enter(cx: Context, name: str, var: Var) -> None:
    """A parameter that is changed lives on in a variable; any other is its own value."""
    changed = name not in cx.plan.plain or name in cx.plan.components
    if isinstance(var.type, ArrayType):
        changed = name not in cx.plan.plain
    if not changed or isinstance(var.type, ArrayType):
        cx.bound[name] = Value(var)
        cx.types[name] = var.type
        return
    own = cx.variable(name, var.type)
    cx.b.add(Set(own, var, cx.source.header()))


def _finish(cx: Context) -> tuple[ValueType, ...]:
    """Closes the function: result types, and the end that no `return` marks."""
    if cx.is_kernel:
        return ()
    if cx.adjoints is not None:
        values = tuple(cx.adjoints.values())
        if reaches_end(cx.b.block()):
            cx.b.add(Return(values, cx.source.header()))
        return tuple(v.type for v in values if not isinstance(v.type, ArrayType))
    results = cx.learnt.results
    if results is None:
        results = _joined(cx)
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
    return results


def _joined(cx: Context) -> tuple[ValueType, ...]:
    """Result types that all `return` statements agree on."""
    if not cx.returned:
        return ()
    first, values = cx.returned[0]
    columns: list[list[Value]] = [[v] for v in values]
    for node, others in cx.returned[1:]:
        if len(others) != len(values):
            cx.error(
                "E109",
                node,
                f"{len(others)} value{'s' if len(others) != 1 else ''} returned here, but "
                f"{len(values)} on line {cx.source.span(first).line}",
                "return the same number of values everywhere",
            )
            return ()
        for column, v in zip(columns, others, strict=True):
            trial = unify([*column, v])
            if trial is None:
                cx.error(
                    "E104",
                    node,
                    f"{type_name(v.type)} returned here, but {type_name(column[0].type)} on "
                    f"line {cx.source.span(first).line}",
                    "convert one of them, so that all results have one type",
                )
                return ()
            column.append(v)
    out: list[ValueType] = []
    for column in columns:
        same = unify(column)
        if same is not None and not isinstance(same[0].type, ArrayType):
            out.append(same[0].type)
    return tuple(out)


def _learn(cx: Context, learnt: Learnt) -> bool:
    """Takes over what the round found out; False where another round has no use."""
    found = [n for n in cx.deferred if n in cx.types and n not in learnt.locals]
    # A type is sure where the first assignment gave it, which may wait for another type.
    sure = [n for n in found if n not in cx.unsure] or found
    learnt.locals.update({n: cx.types[n] for n in sure})
    more = bool(sure)
    if learnt.results is None and cx.returned and not cx.is_kernel and cx.adjoints is None:
        joined = _joined_quietly(cx)
        given = [tuple(v.type for v in values) for _, values in cx.returned]
        if joined and any(g != joined for g in given):
            learnt.results = joined
            more = True
    return more


def _joined_quietly(cx: Context) -> tuple[ValueType, ...]:
    before = dict(cx.report.diagnostics)
    joined = _joined(cx)
    cx.report.diagnostics = before
    return joined


def differentiable(types: dict[str, Type | None]) -> list[str]:
    """Parameters that have a derivative: floats, and vectors and matrices of them."""
    return [
        n
        for n, t in types.items()
        if t is not None and not isinstance(t, ArrayType) and is_float(t)
    ]
