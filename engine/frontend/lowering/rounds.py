"""One function from syntax tree to IR, in rounds.

A round lowers the whole function once. Types that a place needs before the statement
that fixes them (a variable carried around a loop, the result of a function with
several `return`s) are inferred in one round and used in the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.diagnostics import Diagnostic, KernelError
from engine.frontend.assignment.aggregates import can_be_inferred
from engine.frontend.context.context import Context, InferredTypes
from engine.frontend.context.lowering import Lowering
from engine.frontend.expressions.names import unassigned
from engine.frontend.lowering.parameters import enter, holds_array, open_adjoints
from engine.frontend.operands.kinds import (
    Kind,
    LiteralKind,
    decompose,
    kind_of_type,
    slots,
    static_atoms,
)
from engine.frontend.operands.operand import BAD, Operand
from engine.frontend.parsing.definite_assignment import unassigned_reads
from engine.frontend.parsing.parsed_function import ParsedFunction
from engine.frontend.parsing.report import Report
from engine.frontend.parsing.source import too_deep
from engine.frontend.statements.control_flow import reaches_end
from engine.frontend.statements.returns import (
    Returned,
    check_annotation,
    joined,
    joined_quietly,
    known_results,
    lent_atoms,
    nothing,
    result_kinds,
    returned_kinds,
    value_type,
)
from engine.ir.links import Links
from engine.ir.nodes import Atom, Function, Return, Var
from engine.ir.unassigned import UnassignedRead
from engine.lang.structs import COMPOUND, Argument, UserType
from engine.lang.types import ValueType

_MAX_ROUNDS = 12


def lower_body(
    function: ParsedFunction,
    name: str,
    types: Mapping[str, Kind | UserType | None],
    lowering: Lowering,
    adjoints: Sequence[str] | None = None,
    exact: bool = False,
) -> Function:
    """The IR of a function for types of its parameters, lowered in rounds until none is missing.

    adjoints: for a custom gradient, the parameters whose derivatives it returns. exact: whether
    literals that it returns stay literals for its callers. Raises KernelError with everything
    that is wrong with the function.
    """
    kinds = {p: None if t is None else _expanded(t) for p, t in types.items()}
    inferred = InferredTypes(results=known_results(function.results))
    for _ in range(_MAX_ROUNDS):
        cx = Context(function, name, inferred, lowering)
        cx.exact_results = exact and function.results is None
        try:
            fn = _round(cx, kinds, adjoints)
        except KernelError:
            raise
        except RecursionError:
            raise too_deep(function.source) from None
        except Exception as error:
            raise KernelError(
                Diagnostic(
                    "E101",
                    f"`{name}` cannot be translated ({type(error).__name__}: {error})",
                    function.source.header(),
                    "please report this function; until then, write it with simpler statements",
                )
            ) from None
        if not _infer(cx, inferred):
            break
    else:
        for path, at in cx.choosing.items():
            cx.error("E105", at, f"`{path}` would stand for different arrays",
                     "use one name for each array, and `if` / `else` around the code that "
                     "uses them")  # fmt: skip
    for missing, node in cx.deferred.items():
        if missing not in inferred.locals and missing not in cx.poisoned:
            unassigned(cx, node, missing)
    told = function.report.diagnostics or cx.report.diagnostics
    may = () if told else _unassigned_reads(cx)
    report = Report(function.source)
    report.diagnostics.update(function.report.diagnostics)
    report.diagnostics.update(cx.report.diagnostics)
    report.check()
    return replace(fn, unassigned=may) if may else fn


def _unassigned_reads(cx: Context) -> tuple[UnassignedRead, ...]:
    """Reads of variables that may have no value yet. Reports those that certainly have none."""
    out: list[UnassignedRead] = []
    for found in unassigned_reads(cx.source.tree, cx.plan.assigned, cx.facts):
        name = found.node.id
        if found.certain:
            unassigned(cx, found.node, name)
            continue
        parts = decompose(cx.trees[name]) if name in cx.trees else None
        atoms = parts[1] if parts is not None else (cx.vars[name],) if name in cx.vars else ()
        variables = tuple(a.name for a in atoms if isinstance(a, Var) and a.mutable)
        out.append(UnassignedRead(name, variables, cx.source.span(found.node)))
    return tuple(out)


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
    tables = sorted(cx.tables.items(), key=lambda item: item[0].name)
    return Function(
        cx.name,
        (*params, *(v for _, (_, made) in tables for v in made),
         *(cx.adjoint_arrays[name] for name in gradients)),
        results,
        cx.b.block(),
        is_kernel=cx.is_kernel,
        span=cx.source.header(),
        arguments=_arguments(cx) if cx.is_kernel else (),
        returns=returns,
        rounded=cx.rounds,
        gradients=gradients,
        tables=tuple(Argument(name, t) for t, (name, _) in tables),
        apart=tuple(cx.apart),
        links=Links(tuple((a, b, at) for (a, b), at in cx.joined_pools.items()),
                    tuple(cx.named_rows)),
    )  # fmt: skip


def _arguments(cx: Context) -> tuple[Argument, ...]:
    """What launches take the kernel's arguments apart by; empty where nothing is to be done."""
    given = [Argument(name, t) for name, t in cx.function.annotated.items() if t is not None]
    given += [Argument(name, t) for t, (name, _) in sorted(
        cx.tables.items(), key=lambda item: item[0].name)]  # fmt: skip
    return tuple(given) if any(isinstance(a.type, COMPOUND) for a in given) else ()


def _finish(cx: Context) -> tuple[tuple[ValueType, ...], tuple[Returned, ...]]:
    """Closes the function: result types, and the end that no `return` marks."""
    if cx.is_kernel:
        return (), ()
    if cx.adjoints is not None:
        if reaches_end(cx.b.block()):
            cx.b.add(Return(cx.adjoint_vars, cx.source.header()))
        return tuple(value_type(v.type) for v in cx.adjoint_vars), ()
    results, arrays = cx.inferred.results, cx.inferred.arrays
    cx.ends = reaches_end(cx.b.block())
    if results is None:
        found = joined(cx)
        results, arrays = tuple(k for k, _ in found), tuple(a for _, a in found)
    if results and cx.returned:
        check_annotation(cx, results)
    if results and cx.ends and cx.returned:
        # As in Warp, a function that ends without `return` gives zeros.
        zeros = [a for k in results for a in nothing(k)]
        cx.b.add(Return((*zeros, *lent_atoms(cx)), cx.source.header()))
    elif results and not cx.returned and not cx.failed_return:
        cx.report.add(
            "E109",
            cx.source.header(),
            f"`{cx.name}` is annotated with a result but returns nothing",
            "write `return value`, or remove the annotation of the result",
        )
    if lent_atoms(cx) and reaches_end(cx.b.block()):
        cx.b.add(Return(lent_atoms(cx), cx.source.header()))
    types = [s.type for k in results for s in slots(k) if not s.static]
    types += [a.type for a in lent_atoms(cx)]
    return tuple(value_type(t) for t in types), returned_kinds(results, arrays)


def _infer(cx: Context, inferred: InferredTypes) -> bool:
    """Takes over what the round found out; False where another round has no use."""
    found = [
        n
        for n in cx.deferred
        if n in cx.types and n not in inferred.locals and can_be_inferred(cx.types[n])
    ]
    # A type is sure where the first assignment gave it, which may wait for another type.
    sure = [n for n in found if n not in cx.unsure] or found
    inferred.locals.update({n: cx.types[n] for n in sure})
    asked = {n: t for n, t in cx.asked.items() if n not in inferred.locals}
    inferred.locals.update(asked)
    more = bool(sure or asked)
    for path, options in cx.choices.items():
        if inferred.choices.get(path) != options:
            inferred.choices[path] = options
            more = True
    return _infer_results(cx, inferred) or more


def _infer_results(cx: Context, inferred: InferredTypes) -> bool:
    """The same for what a function returns, as far as its annotations leave that open."""
    before = inferred.results
    # Which literals are returned may change with the types of variables.
    again = before is not None and any(isinstance(k, LiteralKind) for k in before)
    if not (before is None or again) or not cx.returned or cx.is_kernel or cx.adjoints is not None:
        return False
    found = joined_quietly(cx)
    kinds, arrays = tuple(k for k, _ in found), tuple(a for _, a in found)
    if before is not None:
        same = kinds == before and arrays == inferred.arrays
    else:
        same = all(_by_itself(cx, values) == (kinds, arrays) for _, values in cx.returned)
    if not found or same:
        return False
    inferred.results, inferred.arrays = kinds, arrays
    return True


def _by_itself(
    cx: Context, values: Sequence[Operand]
) -> tuple[tuple[Kind, ...], tuple[tuple[Atom, ...], ...]]:
    """Kinds of the results of one `return`, and the arrays in them."""
    arrays = tuple(static_atoms(*p) for v in values if (p := decompose(v)))
    return result_kinds(cx, values), arrays
