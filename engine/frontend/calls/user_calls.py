"""Calls of functions made by `@func`: arguments, instances, results."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import field

from engine.classes import dataclass
from engine.diagnostics import KernelError
from engine.frontend.assignment.aggregates import fresh
from engine.frontend.calls.references import (
    Place,
    may_refer,
    meeting,
    one_for_two,
    place_of,
    take_over,
    with_place,
    write_back,
)
from engine.frontend.context.context import Context
from engine.frontend.expressions.views import settled
from engine.frontend.functions.overloads import (
    Argument,
    Given,
    Overload,
    Problem,
    candidates,
    choose,
    fitted_tuple,
    misfit,
)
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.operands.folding import literal_atoms, literal_kind
from engine.frontend.operands.kinds import (
    Kind,
    ViewKind,
    accepts,
    compose,
    decompose,
    leaf_count,
    numbered,
    slots,
)
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Known,
    Operand,
    Several,
    Struct,
    Value,
    View,
    adapt,
)
from engine.frontend.parsing.builtin_arguments import changed_arguments, references_of
from engine.ir.nodes import Atom, Call, Function, Var
from engine.lang.generics import ANYTHING
from engine.lang.structs import COMPOUND, StructType, UserType
from engine.lang.types import FLOAT32, ScalarType


@dataclass
class Arguments:
    """Kinds and atoms of a call's arguments.

    lent: the local arrays among them. Functions get them by value and give them back.
    references: those that the function takes by reference: where each comes from, its kind.
    """

    kinds: list[Kind] = field(default_factory=list)
    atoms: list[Atom] = field(default_factory=list)
    lent: list[tuple[Atom, ...]] = field(default_factory=list)
    references: list[tuple[Place, Kind]] = field(default_factory=list)

    def add(self, cx: Context, got: Operand, exact: bool = False) -> None:
        """Adds an argument. exact: a literal of floats is passed as such, and not as float32."""
        if isinstance(got, Several):
            got = _settled_items(cx, got)
        if isinstance(got, View):
            got = settled(cx, got)
            if got.is_local:
                got = _in_variables(cx, got)
        literal = _as_literal(cx, got) if exact else None
        parts = decompose(got) if literal is None else literal
        assert parts is not None
        before = len(self.lent)
        kind = numbered(*parts, self.lent)
        atoms = list(parts[1])
        if isinstance(kind, ViewKind) and kind.shape and len(self.lent) == before:
            atoms = atoms[leaf_count(kind.element) :]  # an argument before this one is the same
        self.kinds.append(kind)
        self.atoms += atoms


def _as_literal(cx: Context, got: Operand) -> tuple[Kind, tuple[Atom, ...]] | None:
    """A literal of floats as its kind and atoms; None for anything else."""
    if not isinstance(got, Value) or got.type != FLOAT32:
        return None
    kind = literal_kind([got])
    atoms = None if kind is None else literal_atoms(cx.b, got, kind)
    return None if kind is None or atoms is None else (kind, atoms)


def _settled_items(cx: Context, got: Several) -> Several:
    items: list[Operand] = []
    for item in got.items:
        if isinstance(item, Several):
            item = _settled_items(cx, item)
        items.append(settled(cx, item) if isinstance(item, View) else item)
    return Several(tuple(items))


def _in_variables(cx: Context, view: View) -> View:
    """The local array in variables, which a function can change."""
    if all(isinstance(a, Var) and a.mutable for a in view.root.leaves):
        return view
    made = fresh(cx, "local", view)
    assert isinstance(made, View)
    return made


def call_user(cx: Context, node: ast.Call, target: UserFunc) -> Operand:
    """A call of a `@func`. An instance is made for the argument types."""
    return call_given(cx, node, target, _arguments(cx, node))


def call_given(cx: Context, node: ast.expr, target: UserFunc, given: Given) -> Operand:
    """The same for arguments that are lowered already."""
    found = _instance(cx, node, target, given)
    if found is None:
        return BAD
    results = _called(cx, *found)
    return results[0] if len(results) == 1 else Several(tuple(results))


def call_with(cx: Context, target: UserFunc, args: Sequence[Operand]) -> list[Operand]:
    """The results of a call with values, structs and arrays that fit. Raises KernelError."""
    given = Arguments()
    for got in args:
        given.add(cx, got)
    return _called(cx, cx.lowering.instance(target, given.kinds, cx.b.span), given)


def _called(cx: Context, fn: Function, given: Arguments) -> list[Operand]:
    dsts = tuple(cx.b.temp(t) for t in fn.results)
    given.atoms += tables_of(cx, fn)
    cx.b.add(Call(dsts, fn, tuple(given.atoms), cx.b.span))
    changed = [a for roots in given.lent for a in roots]
    by_reference = sum(len(slots(kind)) for _, kind in given.references)
    own = dsts[: len(dsts) - len(changed) - by_reference]
    back = iter(dsts[len(own) :])
    for var in changed:
        assert isinstance(var, Var)
        cx.b.set(var, next(back))
    for place, kind in given.references:
        write_back(cx, place, compose(kind, [next(back) for _ in slots(kind)]))
    if fn.rounded:
        cx.rounded.update((d, f"the result of `{fn.name}`") for d in own)
    return _results(fn, own, given.atoms)


def tables_of(cx: Context, fn: Function) -> list[Atom]:
    """The tables that a function takes beside its arguments."""
    out: list[Atom] = []
    for t in fn.tables:
        assert isinstance(t.type, StructType)
        parts = decompose(cx.table(t.type))
        assert parts is not None
        out += parts[1]
    return out


def instance_for(
    cx: Context, node: ast.Call, target: UserFunc
) -> tuple[Function, Arguments] | None:
    """The function that a call means and its arguments, all of a type: their derivatives have it.

    None where something is reported.
    """
    return _instance(cx, node, target, _arguments(cx, node), literals=False)


def _instance(
    cx: Context, node: ast.expr, target: UserFunc, arguments: Given, literals: bool = True
) -> tuple[Function, Arguments] | None:
    given = Arguments()
    bad = False
    try:
        found = candidates(target.overloads, cx.lowering.signature)
        chosen = choose(node, arguments, target.name, found)
        if isinstance(chosen, Problem):
            _refuse(cx, chosen)
            return None
        f, bound = chosen
        names = references_of(f.function.func)
        literals &= f.function.is_plain
        for name, (at, got) in bound.items():
            problem = misfit(f, name, (at, got))
            fitted: Operand = BAD
            if problem is None and isinstance(got, Several):
                fitted = fitted_tuple(cx.b, got, f.signature.patterns.get(name, ANYTHING)) or BAD
            elif problem is None:
                fitted = _fitted(cx, at, got, f.signature.types[name])
            if problem is not None:
                want = f.signature.types[name]
                if isinstance(want, ScalarType):
                    cx.ask(at, want)
                _refuse(cx, problem)
            if isinstance(fitted, Bad):
                bad = True
            else:
                exact = literals and name not in names and _is_open(f, name)
                given.add(cx, got if exact and isinstance(got, Value) else fitted, exact)
                if name in names:
                    given.references.append((place_of(cx, at), given.kinds[-1]))
        if bad:
            return None
        if given.references and not may_refer(cx, node, f.function, given.references, given.atoms):
            return None
        made = cx.lowering.instance(f.function, given.kinds, cx.b.span)
        if (one := meeting(made, given.atoms)) is not None:
            raise one_for_two(made, one, cx.source.span(node))
        take_over(cx, made, given.atoms)
        return made, given
    except KernelError as error:
        cx.report.take(error)
        return None


def _is_open(f: Overload[UserFunc], name: str) -> bool:
    """Whether a parameter asks for no type of its own: it takes any, or any type of floats."""
    pattern = f.signature.patterns.get(name, ANYTHING)
    return f.signature.types[name] is None and pattern.role == "value" and pattern.form is None


def _arguments(cx: Context, node: ast.Call) -> Given:
    """Lowers the arguments of a call."""
    referred = {id(a) for a in changed_arguments(cx.scope, node)}

    def argument(at: ast.expr) -> Argument:
        if id(at) in referred:
            at = with_place(cx, at)
        got = cx.expr(at)
        zero = got.value if isinstance(got, Known) else None
        return at, got if zero is None else zero

    named: dict[str, Argument] = {}
    positional = tuple(argument(a) for a in node.args)
    for word in node.keywords:
        if word.arg is not None:
            named[word.arg] = argument(word.value)
    return Given(positional, named)


def _refuse(cx: Context, problem: Problem) -> None:
    cx.error(problem.code, problem.where, problem.message, problem.help)


def _results(fn: Function, dsts: tuple[Var, ...], given: list[Atom]) -> list[Operand]:
    """The results of a call; arrays in them are arguments of it."""
    if not fn.returns:
        return [Value(d) for d in dsts]
    arguments: dict[Atom, Atom] = dict(zip(fn.params, given, strict=True))
    left = iter(dsts)
    out: list[Operand] = []
    for kind, arrays in fn.returns:
        known = iter(arrays)
        atoms = [arguments[next(known)] if s.static else next(left) for s in slots(kind)]
        out.append(compose(kind, atoms))
    return out


def _fitted(cx: Context, at: ast.expr, got: Operand, want: UserType | None) -> Operand | Bad:
    """The operand as an argument for a type that it fits, or an error."""
    if isinstance(got, (Struct, Absent, Choice)) or (isinstance(got, View) and got.ndim):
        return got
    if isinstance(got, Known) and want is None and callable(got.obj):
        return got
    v = cx.one(at, got)
    if isinstance(v, Bad):
        return BAD
    if want is None or accepts(want, v.type) or isinstance(want, COMPOUND):
        return Value(v.atom)
    fitted = adapt(cx.b, v, want)
    return BAD if fitted is None else Value(fitted.atom)
