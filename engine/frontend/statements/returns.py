"""The results of a function: values, structs of values, and arrays of the caller."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from engine.frontend.assignment.chosen_arrays import options_of, value_atoms
from engine.frontend.context.context import Context, Option
from engine.frontend.expressions.choices import alike, holds_local, is_array
from engine.frontend.expressions.conversions import coerce
from engine.frontend.operands.kinds import (
    ChoiceKind,
    Kind,
    LiteralKind,
    StructKind,
    TupleKind,
    ViewKind,
    accepts,
    decompose,
    kind_of_type,
    slots,
    static_atoms,
    user_type,
)
from engine.frontend.operands.operand import (
    Absent,
    Bad,
    Choice,
    Operand,
    Several,
    Span,
    Struct,
    Value,
    View,
    common_type,
    literal,
    zero,
)
from engine.frontend.operands.type_names import type_name
from engine.frontend.statements.returned_literals import (
    is_rounded,
    returned_atoms,
    returned_literal,
)
from engine.ir.nodes import Atom, Const, Return, Var
from engine.lang.structs import ARRAYS, StructType, TupleType, UserType, leaves
from engine.lang.types import FLOAT32, INT32, ArrayType, Type, ValueType

# A result: its kind, and the parameters that the arrays in it are.
Returned = tuple[Kind, tuple[Atom, ...]]


def value_type(t: Type) -> ValueType:
    assert not isinstance(t, ArrayType)
    return t


def known_results(annotated: Sequence[UserType] | None) -> tuple[Kind, ...] | None:
    """Kinds of the annotated results; None where they must be found, as those of arrays."""
    if annotated is None or any(
        isinstance(x.type, ArrayType) for t in annotated for x in leaves(t)
    ):
        return None
    return tuple(kind_of_type(t) for t in annotated)


def lent_atoms(cx: Context) -> tuple[Atom, ...]:
    """What the caller gets back: local arrays in the order of the call, then references."""
    local = tuple(a for k in sorted(cx.lent) for a in cx.lent[k])
    return (*local, *(a for name in cx.function.references for a in _reference_atoms(cx, name)))


def _reference_atoms(cx: Context, name: str) -> tuple[Atom, ...]:
    """The present value of a parameter that is a reference."""
    if name in cx.vars:
        return (cx.vars[name],)
    parts = decompose(cx.trees[name]) if name in cx.trees else None
    return () if parts is None else parts[1]


def result_kinds(cx: Context, values: Sequence[Operand]) -> tuple[Kind, ...]:
    """What results are by themselves: as one `return` alone would have them."""
    return tuple(
        returned_literal(cx, [v]) or kind for v, kind in zip(values, kinds_of(values), strict=True)
    )


def nothing(kind: Kind) -> list[Atom]:
    """The atoms of a result of zeros."""
    if isinstance(kind, LiteralKind) and len(kind.items) > 1:
        number = Const(0.0, FLOAT32)
        return [number, Const(kind.items.index(number), INT32)]
    return [zero(value_type(s.type)) for s in slots(kind) if not s.static]


def kinds_of(values: Sequence[Operand]) -> tuple[Kind, ...]:
    out = []
    for v in values:
        parts = decompose(v)
        assert parts is not None
        out.append(parts[0])
    return tuple(out)


def lower_return(cx: Context, node: ast.stmt) -> None:
    assert isinstance(node, ast.Return)
    if cx.is_kernel or cx.adjoints is not None:
        if node.value is not None:
            what = "a kernel" if cx.is_kernel else "a custom gradient"
            where = (
                "store the value into an array parameter"
                if cx.is_kernel
                else f"add the value to `{cx.api}.adjoint[...]`"
            )
            cx.error("E109", node, f"{what} cannot return a value", where)
        cx.b.add(Return(cx.adjoint_vars, cx.b.span))
        return
    values = _values(cx, node)
    if values is None:
        cx.failed_return = True
        return
    cx.returned.append((node, tuple(values)))
    cx.rounds |= any(is_rounded(cx, node, v) for v in values)
    want = cx.inferred.results
    if want is None:
        atoms = [
            a
            for v, kind in zip(values, result_kinds(cx, values), strict=True)
            for a in returned_atoms(cx, v, kind) or _atoms(v)
        ]
        cx.b.add(Return((*atoms, *lent_atoms(cx)), cx.b.span))
        return
    if len(want) != len(values):
        cx.failed_return = True
        cx.error(
            "E109",
            node,
            f"{len(values)} value{'s' if len(values) != 1 else ''} returned, expected {len(want)}",
            "return the same number of values everywhere, as the annotation says if there is one",
        )
        return
    at = node.value or node
    arrays = cx.inferred.arrays or ((),) * len(want)
    found = [
        _as_result(cx, at, v, t, iter(a)) for v, t, a in zip(values, want, arrays, strict=True)
    ]
    done = [f for f in found if f is not None]
    cx.failed_return |= len(done) != len(want)
    if len(done) == len(want):
        cx.b.add(Return((*(a for f in done for a in f), *lent_atoms(cx)), cx.b.span))


def _values(cx: Context, node: ast.Return) -> list[Operand] | None:
    got = cx.expr(node.value) if node.value is not None else Several(())
    values: list[Operand] = []
    for k, item in enumerate(got.items if isinstance(got, Several) else (got,)):
        parts = node.value.elts if isinstance(node.value, ast.Tuple) else []
        at = parts[k] if k < len(parts) else (node.value or node)
        if isinstance(item, Bad) or not isinstance(at, ast.expr):
            return None
        item = _whole(item)
        if isinstance(item, Struct):
            values.append(item)
            continue
        if isinstance(item, Several) and decompose(item) is not None:
            values.append(item)
            continue
        if _is_array(item) or (isinstance(item, View) and (item.is_whole or not item.is_local)):
            values.append(item)
            continue
        if isinstance(item, Choice) and not holds_local(item):
            values.append(item)
            continue
        if isinstance(item, (View, Absent, Choice)):
            part = not isinstance(item, Absent)
            cx.error(
                "E104",
                at,
                f"a function cannot return {'a part of a local' if part else 'no'} array",
                "return the whole local array" if part else "return an array that exists",
            )
            return None
        one = cx.one(at, item)
        if isinstance(one, Bad):
            return None
        values.append(one)
    return values


def _whole(item: Operand) -> Operand:
    """A local array, of which a view shows everything, as a whole."""
    if not isinstance(item, View) or not item.is_local:
        return item
    first, *rest = item.dims
    every = Span(Const(0, INT32), Const(1, INT32), Const(item.root.shape[0], INT32))
    return View(item.root, (None, *rest)) if first == every else item


def _is_array(v: Operand) -> bool:
    """Whether this is an array that is a parameter, and no view of it."""
    return isinstance(v, Value) and isinstance(v.type, ArrayType)


def _atoms(v: Operand) -> list[Atom]:
    """The atoms of a result that are values."""
    parts = decompose(v)
    assert parts is not None
    return [a for s, a in zip(slots(parts[0]), parts[1], strict=True) if not s.static]


def _as_result(
    cx: Context, at: ast.AST, v: Operand, want: Kind, arrays: Iterator[Atom]
) -> list[Atom] | None:
    """The atoms of a result that are values. arrays: those that results of the kind hold."""
    literals = returned_atoms(cx, v, want)
    if literals is not None:
        return list(literals)
    if isinstance(v, Value) and not _is_array(v):
        atom = coerce(cx, at, v, want, "the result")
        return None if atom is None else [atom]
    if isinstance(v, (Struct, Several)) and isinstance(want, (StructKind, TupleKind)):
        if len(v.items) == len(want.items):
            parts = [_as_result(cx, at, i, k, arrays) for i, k in
                     zip(v.items, want.items, strict=True)]  # fmt: skip
            known = [p for p in parts if p is not None]
            return [a for p in known for a in p] if len(known) == len(parts) else None
    static = tuple(next(arrays, None) for s in slots(want) if s.static)
    (have,) = kinds_of([v])
    if have == want and (None in static or static == static_atoms(*_parts(v))):
        return _atoms(v)
    if isinstance(want, ChoiceKind):
        left = iter(a for a in static if a is not None)
        options = [(k, tuple(next(left) for s in slots(k) if s.static)) for k in want.items]
        if set(options_of(v)) <= set(options):
            return value_atoms(cx, v, options)
    cx.error(
        "E104",
        at,
        f"the result has type {type_name(want)}, but this is {type_name(have)}",
        "return values of one type everywhere",
    )
    return None


def _parts(v: Operand) -> tuple[Kind, tuple[Atom, ...]]:
    found = decompose(v)
    assert found is not None
    return found


def joined(cx: Context) -> tuple[Option, ...]:
    """Result types that all `return` statements agree on, with the arrays in them."""
    if not cx.returned:
        return ()
    first, values = cx.returned[0]
    line = cx.source.span(first).line
    columns: list[list[Operand]] = [[v] for v in values]
    for node, others in cx.returned[1:]:
        if len(others) != len(values):
            cx.error(
                "E109",
                node,
                f"{len(others)} value{'s' if len(others) != 1 else ''} returned here, but "
                f"{len(values)} on line {line}",
                "return the same number of values everywhere",
            )
            return ()
        for column, v in zip(columns, others, strict=True):
            if common([*column, v]) is None:
                have, before = kinds_of([v, column[0]])
                cx.error(
                    "E104",
                    node,
                    *_disagreement(have, before, line),
                )
                return ()
            column.append(v)
    if cx.ends:
        columns = [
            [*c, literal(0.0)] if returned_literal(cx, c) is not None else c for c in columns
        ]
    found = [
        ((k, ()) if (k := returned_literal(cx, c)) is not None else common(c)) for c in columns
    ]
    return tuple(option for option in found if option is not None)


def _disagreement(have: Kind, before: Kind, line: int) -> tuple[str, str]:
    """What is wrong between two results, and what to do."""
    if user_type(have) != user_type(before):
        return (
            f"{type_name(have)} returned here, but {type_name(before)} on line {line}",
            "convert one of them, so that all results have one type",
        )
    choose_later = "return an integer that selects the array, and select it in the caller"
    if isinstance(have, StructKind):
        what = f"this {have.type} refers to other arrays than the one returned on line {line}"
    else:
        what = f"this is another array than the one returned on line {line}, or another view of it"
    return what, choose_later


def common(column: Sequence[Operand]) -> Option | None:
    """The kind that results share, and its arrays; of different ones, a choice."""
    values = [v for v in column if isinstance(v, Value) and not _is_array(v)]
    if len(values) == len(column):
        same = common_type(values)
        return None if same is None else (same, ())
    found = {(parts[0], static_atoms(*parts)) for v in column if (parts := decompose(v))}
    if len(found) == 1:
        return next(iter(found))
    first = column[0]
    if isinstance(first, (Struct, Several)):
        rows = [v.items for v in column if isinstance(v, (Struct, Several))]
        alikes = all(type(v) is type(first) for v in column)
        if isinstance(first, Struct):
            alikes &= all(isinstance(v, Struct) and v.type is first.type for v in column)
        if not alikes or len({len(row) for row in rows}) != 1:
            return None
        every = [common(c) for c in zip(*rows, strict=True)]
        known = [p for p in every if p is not None]
        if len(known) != len(every):
            return None
        kinds, arrays = tuple(k for k, _ in known), tuple(a for _, found in known for a in found)
        return (StructKind(first.type, kinds) if isinstance(first, Struct) else TupleKind(kinds)), (
            arrays
        )
    if not all(is_array(v) for v in column):
        return None
    options = tuple(dict.fromkeys(o for v in column for o in options_of(v)))
    local = any(isinstance(k, ViewKind) and k.shape for k, _ in options)
    if local or not all(alike(k, options[0][0]) for k, _ in options):
        return None
    return ChoiceKind(INT32, tuple(k for k, _ in options)), tuple(
        a for _, arrays in options for a in arrays
    )


def joined_quietly(cx: Context) -> tuple[Option, ...]:
    """`joined` without saying what is wrong."""
    before = dict(cx.report.diagnostics)
    found = joined(cx)
    cx.report.diagnostics = before
    return found


def check_annotation(cx: Context, results: Sequence[Kind]) -> None:
    """Reports results with arrays that are not what the annotation says."""
    want = cx.function.results
    if want is None:
        return
    node = cx.returned[0][0]
    if len(results) != len(want):
        cx.error(
            "E109",
            node,
            f"{len(results)} value{'s' if len(results) != 1 else ''} returned, the annotation "
            f"says {len(want)}",
            "return the type of the annotation, or remove the annotation",
        )
        return
    for kind, t in zip(results, want, strict=True):
        if not accepts(t, kind):
            cx.error(
                "E104",
                node,
                f"the annotation of the result says {type_name(t)}, but this is {type_name(kind)}",
                "return the type of the annotation, or remove the annotation",
            )


def returned_kinds(
    results: Sequence[Kind], arrays: Sequence[tuple[Atom, ...]]
) -> tuple[Returned, ...]:
    """The results for callers to put together; empty where all are plain values."""
    compound = (StructType, TupleType, *ARRAYS)
    if not any(isinstance(k, LiteralKind) or isinstance(user_type(k), compound) for k in results):
        return ()
    return tuple(
        (kind, tuple(a for a in own if isinstance(a, Var)))
        for kind, own in zip(results, arrays or ((),) * len(results), strict=True)
    )
