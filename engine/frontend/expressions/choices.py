"""Arrays that are chosen at run time: each use becomes a branch for each array.

The IR knows no array that is not known while compiling. So `a if c else b` is a `Choice` of
operands, and each access of it an `If` with an access of one array in each block: all that
comes after (adjoints, threads, checks of bounds) deals with arrays as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.frontend.context.context import Context
from engine.frontend.context.value_ranges import RangeBuilder
from engine.frontend.expressions.views import settled
from engine.frontend.operands.kinds import (
    AbsentKind,
    ChoiceKind,
    Kind,
    ViewKind,
    as_view,
    compose,
    decompose,
    plain,
    slots,
    user_type,
)
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Operand,
    Several,
    Struct,
    Value,
    View,
    unify,
    zero,
)
from engine.ir.nodes import Atom, Block, Const, If, Let, Stmt
from engine.lang.structs import ARRAYS
from engine.lang.types import BOOL, INT32, ArrayType, is_float

# Operations that may run although their result is not wanted: cheap, total, and with
# derivatives that are finite everywhere (0 * inf would spoil an adjoint).
FREE = frozenset(
    {"add", "sub", "neg", "copy", "eq", "ne", "lt", "le", "gt", "ge", "land", "lor", "lnot"}
    | {"bitand", "bitor", "bitxor", "select"}
)
FREE_OF_DERIVATIVE = FREE | {"mul", "shape", "tid", "cast", "scale"}

Arm = tuple[RangeBuilder, Operand]


def is_free(stmts: Sequence[Stmt], names: frozenset[str]) -> bool:
    """Whether statements may run although what they compute is not wanted."""
    return all(
        isinstance(s, Let)
        and (s.op in names or (s.op == "extract" and all(isinstance(a, Const) for a in s.args[1:])))
        for s in stmts
    )


def is_array(got: Operand) -> bool:
    """Whether an operand is an array of any form, or stands for one."""
    if isinstance(got, View):
        return got.ndim > 0
    return isinstance(got, (Absent, Choice)) or (
        isinstance(got, Value) and isinstance(got.type, ArrayType)
    )


def choices_in(got: Operand) -> list[Choice]:
    """The choices that an operand is made of, outermost first; not those among their options."""
    if isinstance(got, Choice):
        return [got]
    items = got.items if isinstance(got, (Struct, Several)) else ()
    return [c for item in items for c in choices_in(item)]


def holds_local(got: Operand) -> bool:
    """Whether an option is an array that lives in variables."""
    if isinstance(got, Choice):
        return any(holds_local(o) for o in got.options)
    return isinstance(got, View) and got.is_local


def with_option(got: Operand, selector: Atom, k: int) -> Operand:
    """The operand where a selector names the k-th option."""
    if isinstance(got, Choice):
        if got.selector == selector:
            option = got.options[k]
            return plain(option) if isinstance(option, View) else with_option(option, selector, k)
        return Choice(got.selector, tuple(with_option(o, selector, k) for o in got.options))
    if isinstance(got, Struct):
        return Struct(got.type, tuple(with_option(i, selector, k) for i in got.items))
    if isinstance(got, Several):
        return Several(tuple(with_option(i, selector, k) for i in got.items))
    return got


# ---- branches


def per_option(cx: Context, choice: Choice, use: Callable[[Operand], Operand]) -> Operand | None:
    """What `use` gives for the array that is chosen; None where results have no common type."""
    arms: list[Arm] = []
    for option in choice.options:
        with cx.nested() as b:
            arms.append((b, use(option)))
    return merged(cx, choice.selector, arms)


def branches(cx: Context, selector: Atom, blocks: Sequence[Block]) -> None:
    """Runs the block that the selector names."""
    if not any(blocks):
        return
    if selector.type == BOOL:
        cx.branch(selector, blocks[0], blocks[1])
        return
    tests = [cx.b.op("eq", selector, Const(k, INT32)) for k in range(len(blocks) - 1)]
    rest = blocks[-1]
    for test, block in zip(reversed(tests), reversed(blocks[:-1]), strict=True):
        rest = (If(test, block, rest, cx.b.span),)
    cx.b.stmts += rest


def merged(cx: Context, selector: Atom, arms: Sequence[Arm]) -> Operand | None:
    """One operand for those of several blocks; None where they have no common type."""
    found = [got for _, got in arms]
    if any(isinstance(got, Bad) for got in found):
        return BAD
    builders = [b for b, _ in arms]
    if selector.type == BOOL and _selects(builders, found):
        values = unify([v for v in found if isinstance(v, Value)], *builders)
        if values is None:
            return None
        cx.b.stmts += [s for b in builders for s in b.stmts]
        return Value(cx.b.op("select", selector, *(v.atom for v in values)))
    out = _merge(cx, selector, builders, found)
    if out is not None:
        branches(cx, selector, [b.block() for b in builders])
    return out


def _selects(builders: Sequence[RangeBuilder], found: Sequence[Operand]) -> bool:
    """Whether one of two numbers can be taken without a branch."""
    if not all(isinstance(v, Value) and not isinstance(v.type, ArrayType) for v in found):
        return False
    floats = any(isinstance(v, Value) and is_float(v.type) for v in found)
    return all(is_free(b.stmts, FREE if floats else FREE_OF_DERIVATIVE) for b in builders)


def _merge(
    cx: Context, selector: Atom, builders: Sequence[RangeBuilder], found: Sequence[Operand]
) -> Operand | None:
    first = found[0]
    if all(got == first for got in found[1:]):
        return first
    if isinstance(first, (Struct, Several)):
        rows: list[Sequence[Operand]] = []
        for got in found:
            if type(got) is not type(first) or not isinstance(got, (Struct, Several)):
                return None
            if isinstance(got, Struct) and isinstance(first, Struct) and got.type is not first.type:
                return None
            rows.append(got.items)
        if len({len(row) for row in rows}) != 1:
            return None
        columns = [_merge(cx, selector, builders, c) for c in zip(*rows, strict=True)]
        items = tuple(c for c in columns if c is not None)
        if len(items) != len(columns):
            return None
        return Struct(first.type, items) if isinstance(first, Struct) else Several(items)
    if is_array(first):
        return _arrays(cx, selector, builders, found)
    values = [v for v in found if isinstance(v, Value)]
    same = unify(values, *builders) if len(values) == len(found) else None
    if same is None or isinstance(same[0].type, ArrayType):
        return None
    return Value(_joined(cx, builders, [v.atom for v in same]))


def _joined(cx: Context, builders: Sequence[RangeBuilder], atoms: Sequence[Atom]) -> Atom:
    """A variable with the atom of whichever block runs."""
    if all(a == atoms[0] for a in atoms):
        return atoms[0]
    var = cx.result_variable(atoms[0].type)
    for b, atom in zip(builders, atoms, strict=True):
        b.set(var, atom)
    return var


def _arrays(
    cx: Context, selector: Atom, builders: Sequence[RangeBuilder], found: Sequence[Operand]
) -> Operand | None:
    parts: list[tuple[Kind, tuple[Atom, ...]]] = []
    for b, got in zip(builders, found, strict=True):
        if not is_array(got):
            return None
        got = as_view(got) or got
        outer, cx.b = cx.b, b
        one = decompose(settled(cx, got) if isinstance(got, View) else got)
        cx.b = outer
        assert one is not None
        parts.append(one)
    kinds = [kind for kind, _ in parts]
    if not all(alike(kinds[0], kind) for kind in kinds):
        return None
    every = slots(kinds[0])
    columns = list(zip(every, *(atoms for _, atoms in parts), strict=True)) if all(
        kind == kinds[0] for kind in kinds) else []  # fmt: skip
    if columns and all(len(set(atoms)) == 1 for s, *atoms in columns if s.static):
        return compose(kinds[0], [_joined(cx, builders, atoms) for _, *atoms in columns])
    if any(isinstance(kind, ViewKind) and kind.by_value for kind in kinds):
        return None  # whole local arrays are values
    options: list[Operand] = []
    for k, (kind, atoms) in enumerate(parts):
        own = list(atoms)
        if any(b.stmts for b in builders):
            for j, (s, atom) in enumerate(zip(slots(kind), atoms, strict=True)):
                if not s.static and not isinstance(atom, Const):
                    nothing = [zero(atom.type)] * len(parts)  # type: ignore[arg-type]
                    own[j] = _joined(cx, builders, [*nothing[:k], atom, *nothing[k + 1 :]])
        options.append(compose(kind, own))
    return Choice(cx.frozen(selector), tuple(options))


def alike(a: Kind, b: Kind) -> bool:
    """Whether a name may stand for an array of one kind or of the other."""
    first, second = (t if isinstance(t, (ChoiceKind, ViewKind, AbsentKind, ArrayType)) else None
                     for t in (a, b))  # fmt: skip
    if first is None or second is None:
        return False
    one, other = user_type(first), user_type(second)
    assert isinstance(one, ARRAYS) and isinstance(other, ARRAYS)
    return one.element == other.element and one.ndim == other.ndim
