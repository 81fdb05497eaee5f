"""A Python function after the stages without types: text, fence, names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from engine.classes import dataclass
from engine.frontend.parsing.annotations import no_result, parameter_types, patterns, result_types
from engine.frontend.parsing.builtin_arguments import changed_arguments, references_of
from engine.frontend.parsing.desugar import desugar, is_idle
from engine.frontend.parsing.fence import Rejected, fence
from engine.frontend.parsing.local_variables import LocalPlan, plan_locals
from engine.frontend.parsing.loop_names import separate_loops
from engine.frontend.parsing.report import Report
from engine.frontend.parsing.scope import MISSING, Scope
from engine.frontend.parsing.source import Source, source_of, too_deep
from engine.frontend.parsing.static_expressions import StaticExpressions, take_expressions
from engine.frontend.parsing.text import FunctionText
from engine.lang.generics import Pattern
from engine.lang.structs import UserType


@dataclass(frozen=True, slots=True)
class ParsedFunction:
    """What lowering starts from. The tree of `source` is desugared.

    rejected: ids of nodes that the fence refused, which `report` tells. annotated: the type
    of each parameter, None where there is none. patterns: what those take. results: the
    annotated ones, None where the `return` statements tell. references: parameters whose changes
    the caller sees, in order.
    """

    source: Source
    scope: Scope
    rejected: Rejected
    plan: LocalPlan
    report: Report
    annotated: dict[str, UserType | None]
    results: tuple[UserType, ...] | None
    is_kernel: bool
    patterns: dict[str, Pattern]
    statics: StaticExpressions
    references: tuple[str, ...] = ()


def is_stub(func: Callable[..., Any]) -> bool:
    """Whether a function has no statements. Raises KernelError E111 without a source."""
    return all(is_idle(s) for s in source_of(func).tree.body)


def parse_function(
    func: Callable[..., Any], text: FunctionText | None, is_kernel: bool
) -> ParsedFunction:
    """Everything before types. Raises KernelError E111 without a source.

    text: as the decorator found it; None for a function that has none.
    """
    source = source_of(func, text)
    scope = Scope(func)
    report = Report(source)
    try:
        statics = take_expressions(source.tree, scope, text.statics if text else {})
        scope.captures.text = "\n".join(source.lines)
        scope.captures.closed = all(s.declared is not MISSING for s in statics.values())
        rejected = fence(source.tree, report)
        desugar(source.tree, rejected)
        if not statics:  # which name what loops count
            separate_loops(source.tree)
        annotated = parameter_types(func, source, scope, report, is_kernel)
        untyped = [name for name, t in annotated.items() if t is None]
        open_ = patterns(func, untyped, scope, is_kernel)
        results = None
        if is_kernel:
            no_result(func, source, scope, report)
        else:
            results = result_types(func, source, scope, report)
        static = {at: found.names for at, found in statics.items()}
        plan = plan_locals(source.tree, partial(changed_arguments, scope), static)
        refs = () if is_kernel else references_of(func)
        plan = replace(plan, plain=plan.plain - set(refs))
    except RecursionError:
        raise too_deep(source) from None
    return ParsedFunction(
        source, scope, rejected, plan, report, annotated, results, is_kernel, open_, statics, refs
    )
