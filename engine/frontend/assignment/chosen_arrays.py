"""Names and fields that stand for different arrays after a branch or loop.

The arrays among which one stands for one are found in rounds (`InferredTypes.choices`): an
assignment that does not fit notes them, and in the next round the name has a variable that
says which, and variables for the indices of each.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context.context import Context, Option
from engine.frontend.expressions.choices import alike, branches, is_array
from engine.frontend.expressions.views import settled
from engine.frontend.operands.kinds import (
    ViewKind,
    as_view,
    compose,
    decompose,
    slots,
    static_atoms,
)
from engine.frontend.operands.operand import Choice, Operand, Several, Span, Struct, View
from engine.ir.nodes import Atom, Const, Var
from engine.lang.types import INT32


def options_of(got: Operand) -> tuple[Option, ...]:
    """The arrays that an operand may be."""
    if isinstance(got, Choice):
        return tuple(dict.fromkeys(o for item in got.options for o in options_of(item)))
    parts = decompose(as_view(got) or got)
    assert parts is not None
    return ((parts[0], static_atoms(*parts)),)


def is_option(cx: Context, option: Option) -> bool:
    """Whether a name can stand for the array at run time: of local ones, the callers' can."""
    kind, arrays = option
    if not isinstance(kind, ViewKind) or not kind.shape:
        return True
    return not kind.by_value and set(arrays) <= _lent(cx)


def _lent(cx: Context) -> set[Atom]:
    return {a for leaves in cx.lent.values() for a in leaves}


def shared(cx: Context, got: Operand) -> Operand:
    """A local array of the caller as what another name for it means: the same memory."""
    if not isinstance(got, View) or not (got.is_local and got.is_whole):
        return got
    if not set(got.root.leaves) <= _lent(cx):
        return got
    first = Span(Const(0, INT32), Const(1, INT32), Const(got.root.shape[0], INT32))
    return View(got.root, (first, *got.dims[1:]))


def note_choices(cx: Context, node: ast.AST, path: str, tree: Operand, got: Operand) -> bool:
    """Notes the arrays among which a name or its fields stand for one from the next round on.

    False where these cannot be chosen.
    """
    if isinstance(tree, Struct) and isinstance(got, Struct) and tree.type is got.type:
        parts = zip(tree.type.fields, tree.items, got.items, strict=True)
        every = [note_choices(cx, node, f"{path}.{f}", a, b) for f, a, b in parts]
        return all(every)
    if isinstance(tree, Several) and isinstance(got, Several):
        if len(tree.items) != len(got.items):
            return False
        items = enumerate(zip(tree.items, got.items, strict=True))
        every = [note_choices(cx, node, f"{path}_{k}", a, b) for k, (a, b) in items]
        return all(every)
    if not is_array(tree) or not is_array(got):
        return not is_array(tree) and not is_array(got)
    found = tuple(dict.fromkeys((*options_of(tree), *options_of(got))))
    if not all(is_option(cx, o) and alike(o[0], found[0][0]) for o in found):
        return len(found) == 1
    if len(found) > 1:
        known = (*cx.inferred.choices.get(path, ()), *cx.choices.get(path, ()))
        cx.choices[path] = tuple(dict.fromkeys((*known, *found)))
        cx.choosing.setdefault(path, node)
    return True


def choice_tree(cx: Context, path: str, got: Operand) -> Choice | None:
    """Variables for a name that stands for one of several arrays; None where it does not."""
    if not is_array(got):
        return None
    own = options_of(got)
    known = cx.inferred.choices.get(path, ())
    if not all(is_option(cx, o) for o in own):
        return None
    if not set(own) <= set(known):
        if not isinstance(got, Choice):
            return None
        known = own
    tree = choice_variable(cx, path, known)
    assign_choice(cx, tree, got)
    return tree


def choice_variable(cx: Context, path: str, options: Sequence[Option]) -> Choice:
    """A variable that says which of the arrays is meant, with variables for their indices."""
    which = cx.owned_variable(f"{path}_which", INT32)
    made: list[Operand] = []
    for kind, arrays in options:
        left = iter(arrays)
        made.append(compose(kind, [
            next(left) if s.static else cx.owned_variable(f"{path}{s.suffix}", s.type)
            for s in slots(kind)
        ]))  # fmt: skip
    return Choice(which, tuple(made))


def assign_choice(cx: Context, tree: Choice, got: Operand) -> bool:
    """Makes the variables mean an array. False where it is none of theirs."""
    options = options_of(tree)
    if not set(options_of(got)) <= set(options):
        return False
    if isinstance(got, Choice):
        blocks = []
        for item in got.options:
            with cx.nested() as b:
                assign_choice(cx, tree, item)
            blocks.append(b.block())
        branches(cx, got.selector, blocks)
        return True
    got = as_view(got) or got
    parts = decompose(settled(cx, got) if isinstance(got, View) else got)
    assert parts is not None
    k = options.index((parts[0], static_atoms(*parts)))
    own = decompose(tree.options[k])
    assert own is not None and isinstance(tree.selector, Var)
    cx.b.set(tree.selector, Const(k, INT32))
    for s, var, atom in zip(slots(own[0]), own[1], parts[1], strict=True):
        if not s.static:
            assert isinstance(var, Var)
            cx.b.set(var, atom)
    return True


def value_atoms(cx: Context, got: Operand, options: Sequence[Option]) -> list[Atom]:
    """The array as one of several: which it is, and all that is no array of what these are."""
    tree = choice_variable(cx, "result", options)
    assigned = assign_choice(cx, tree, got)
    assert assigned
    parts = decompose(tree)
    assert parts is not None
    return [a for s, a in zip(slots(parts[0]), parts[1], strict=True) if not s.static]
