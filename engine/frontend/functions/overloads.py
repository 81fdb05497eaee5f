"""Resolves a call of a `@func` to an overload, and explains calls without one."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, KernelError, LaunchError
from engine.diagnostics.site import call_span
from engine.frontend.operands.captured import describe, operand_of
from engine.frontend.operands.kinds import accepts, decompose, user_type
from engine.frontend.operands.operand import (
    BAD,
    QUOTIENT_HELP,
    Bad,
    Known,
    Operand,
    Several,
    Value,
    View,
    adapt,
    adapts,
)
from engine.frontend.operands.type_names import pattern_name, type_name
from engine.frontend.parsing.signature import Signature
from engine.frontend.parsing.source import source_of
from engine.frontend.parsing.text import FunctionText
from engine.ir.builder import Builder
from engine.lang.generics import ANYTHING, Pattern
from engine.lang.structs import ARRAYS, COMPOUND, UserType
from engine.lang.types import MatrixType, ScalarType, VectorType

Argument = tuple[ast.expr, Operand]


class Definition(Protocol):
    """One of the functions of a name: a Python function, its name in messages, and its text."""

    func: Callable[..., Any]
    name: str
    text: FunctionText | None

    @property
    def signature(self) -> Signature:
        """Its parameters."""


F = TypeVar("F", bound=Definition)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call, lowered once, with their places."""

    positional: tuple[Argument, ...]
    named: Mapping[str, Argument]

    @property
    def count(self) -> int:
        return len(self.positional) + len(self.named)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a call does not fit a function: a diagnostic in the making."""

    code: str
    where: ast.AST
    message: str
    help: str


@dataclass(frozen=True, slots=True)
class Overload(Generic[F]):
    """A definition with its signature."""

    function: F
    signature: Signature

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for functions that take each other's place."""
        open_ = self.signature.patterns
        return tuple(t or open_.get(n) for n, t in self.signature.types.items())

    def replaces(self, earlier: Overload[F]) -> bool:
        """Whether nothing means an earlier definition any more.

        Definitions of one text are overloads, of which the one that fits best is meant. One
        that comes from another text, such as a cell of a notebook, is a new version of those
        whose calls it takes all.
        """
        if self.key == earlier.key:
            return True
        new, old = self.function.text, earlier.function.text
        if new is None or old is None or (new.file == old.file and new.newest is old.newest):
            return False
        if len(self.key) != len(earlier.key):
            return False
        return all(_covers(a, b) for a, b in zip(self.key, earlier.key, strict=True))

    def defaults(self) -> dict[str, Operand]:
        """Default values that kernels can use, by parameter. Raises KernelError E107."""
        out: dict[str, Operand] = {}
        for p in inspect.signature(self.function.func).parameters.values():
            if p.default is inspect.Parameter.empty:
                continue
            got = operand_of(p.default)
            if got is None:
                what, help_text = describe(p.default)
                message = f"the default of parameter `{p.name}` of `{self.name}` is {what}"
                place = source_of(self.function.func, self.function.text).header()
                raise KernelError(Diagnostic("E107", message, place, help_text))
            out[p.name] = got
        return out

    def __str__(self) -> str:
        """The definition with its place, for messages."""
        open_ = self.signature.patterns
        parameters = ", ".join(
            f"{n}: {type_name(t) if t is not None else open_.get(n, 'Any')}"
            for n, t in self.signature.types.items()
        )
        span = source_of(self.function.func, self.function.text).header()
        return f"`{self.name}({parameters})` at {span.file}:{span.line}"


def candidates(definitions: Sequence[F], signature: Callable[[F], Signature]) -> list[Overload[F]]:
    """The overloads that a call may mean: those that no later one replaces."""
    out: list[Overload[F]] = []
    for f in definitions:
        found = Overload(f, signature(f))
        out = [*(earlier for earlier in out if not found.replaces(earlier)), found]
    return out


def _covers(new: object, old: object) -> bool:
    """Whether a parameter takes everything that another one takes."""
    if new == old or not isinstance(new, Pattern):
        return new == old
    if not isinstance(old, Pattern):
        return old is not None and new.accepts(old)  # type: ignore[arg-type]
    same = new.role == old.role and new.ndim == old.ndim
    kinds = not new.kinds or (old.kinds != "" and set(old.kinds) <= set(new.kinds))
    return new == ANYTHING or (same and kinds and new.form in (None, old.form))


def bind(node: ast.expr, given: Given, target: Overload[F]) -> dict[str, Argument] | Problem:
    """Arguments by parameter, in their order. Raises KernelError E107."""
    params, defaults = list(target.signature.types), target.defaults()
    listed = f"its parameters are: {', '.join(params) or 'none'}"
    out = dict(zip(params, given.positional, strict=False))
    for name, argument in given.named.items():
        if name not in params or name in out:
            message = f"`{target.name}` takes no other argument `{name}`"
            return Problem("E109", argument[0], message, listed)
        out[name] = argument
    for name in params:
        if name not in out and name in defaults:
            out[name] = (node, defaults[name])
    if len(given.positional) > len(params) or len(out) != len(params):
        return Problem(
            "E109",
            node,
            f"`{target.name}` takes {len(params)} argument{'s' if len(params) != 1 else ''}, "
            f"got {given.count}",
            listed,
        )
    return {name: out[name] for name in params}


def misfit(target: Overload[F], name: str, argument: Argument) -> Problem | None:
    """What is wrong with one argument; None also for what is no argument at all."""
    at, got = argument
    want, pattern = target.signature.types[name], target.signature.patterns.get(name)
    have: UserType | None = None
    if isinstance(got, Known):
        # Where one type is wanted, the object is refused as what it is.
        if want is None or not callable(got.obj):
            return None
        shown = "a function or type"
    elif isinstance(got, Several) and pattern is not None and fitted_tuple(None, got, pattern):
        return None
    else:
        parts = decompose(got)
        if parts is None or (isinstance(got, View) and not got.ndim):
            return None
        kind = parts[0]
        have = user_type(kind)
        shown = type_name(kind)
        if want is None:
            if isinstance(got, Several) and pattern is not None and pattern.accepts(have):
                return Problem(
                    "E104",
                    at,
                    "a tuple that is passed to a function cannot hold a local array",
                    "pass the array beside the tuple",
                )
            if pattern is None or pattern.accepts(have):
                return None
        elif accepts(want, kind) or (
            isinstance(got, Value) and not isinstance(want, COMPOUND) and adapts(got, want)
        ):
            return None
    takes = f"has type {type_name(want)}" if want is not None else f"takes {pattern_name(pattern)}"
    return Problem(
        "E104",
        at,
        f"parameter `{name}` of `{target.name}` {takes}, but this is {shown}",
        QUOTIENT_HELP
        if isinstance(got, Value) and got.truncated
        else _advice(want, pattern is not None and pattern.role == "array", have),
    )


def fitted_tuple(b: Builder | None, got: Several, pattern: Pattern) -> Several | None:
    """A tuple with its literals in the types that a parameter asks for; None where it has others.

    b: where literals that are chosen at run time are made; None where it is only asked.
    Local arrays have no place in it: functions get them by value and give them back.
    """
    wants: tuple[Any, ...] | None = (ANYTHING,) * len(got.items)
    if pattern != ANYTHING:
        wants = pattern.wanted(len(got.items)) if pattern.role == "tuple" else None
    if wants is None:
        return None
    items = tuple(_fitted_item(b, i, w) for i, w in zip(got.items, wants, strict=True))
    found = tuple(i for i in items if i is not None)
    return Several(found) if len(found) == len(items) else None


def _fitted_item(b: Builder | None, item: Operand, want: Any) -> Operand | None:
    if isinstance(item, Several):
        return fitted_tuple(b, item, want) if isinstance(want, Pattern) else None
    parts = decompose(item)
    if parts is None or (isinstance(item, View) and (item.is_local or not item.ndim)):
        return None
    if isinstance(want, Pattern):
        if isinstance(item, Known):
            return item if want == ANYTHING or want.role == "function" else None
        fits = want.accepts(user_type(parts[0]))
        return (Value(item.atom) if isinstance(item, Value) else item) if fits else None
    if isinstance(item, Value) and not isinstance(want, COMPOUND):
        if b is None:
            return item if adapts(item, want) else None
        return adapt(b, item, want)
    return item if accepts(want, parts[0]) else None


def _advice(want: UserType | None, array: bool, have: UserType | None) -> str:
    wants_array = array or isinstance(want, ARRAYS)
    if wants_array and not isinstance(have, ARRAYS):
        return "pass the array itself, not an element of it"
    if isinstance(have, ARRAYS) and not wants_array:
        return "pass an element: `a[i]`"
    if want is None:
        return "pass the name of a function, or convert the argument"
    return "convert the argument, or change the annotation of the parameter"


def choose(
    node: ast.expr, given: Given, name: str, found: Sequence[Overload[F]]
) -> tuple[Overload[F], dict[str, Argument]] | Problem:
    """The overload that fits best: no conversion of literals, then what leaves least open.

    Raises KernelError E107.
    """
    if len(found) == 1:
        bound = bind(node, given, found[0])
        return bound if isinstance(bound, Problem) else (found[0], bound)
    return best(node, given, found) or _none(node, given, name, found)


def best(
    node: ast.expr, given: Given, found: Sequence[Overload[F]]
) -> tuple[Overload[F], dict[str, Argument]] | None:
    """The overload that fits best; None where none does. Raises KernelError E107."""
    chosen: tuple[tuple[int, int], Overload[F], dict[str, Argument]] | None = None
    for f in found:
        bound = bind(node, given, f)
        if isinstance(bound, Problem) or any(misfit(f, n, a) for n, a in bound.items()):
            continue
        rank = _rank(f, bound)
        if chosen is None or rank <= chosen[0]:  # of equals, the one defined last
            chosen = (rank, f, bound)
    return None if chosen is None else (chosen[1], chosen[2])


def for_host(definitions: Sequence[F], args: Sequence[Any], named: Mapping[str, Any]) -> F:
    """The overload that a call in Python means: by types as in kernels, else the last one.

    Raises LaunchError E104 for a number in place of a vector, and other values of a wrong form.
    Numbers may have any width: Python has one.
    """
    chosen = definitions[-1]
    if len(definitions) > 1:
        node = ast.Call(ast.Name("f", ast.Load()), [], [])

        def argument(value: Any) -> Argument:
            return node, operand_of(value) or BAD

        given = Given(tuple(argument(a) for a in args), {k: argument(v) for k, v in named.items()})
        found = best(node, given, candidates(definitions, lambda f: f.signature))
        chosen = chosen if found is None else found[0].function
    types = chosen.signature.types
    for name, value in (*zip(types, args, strict=False), *named.items()):
        want = types.get(name)
        if isinstance(want, (ScalarType, VectorType, MatrixType)) and not _has_form(value, want):
            have = getattr(value, "__ir_type__", None)
            shown = type_name(have) if have is not None else f"a {type(value).__name__}"
            message = (
                f"parameter `{name}` of `{chosen.name}` has type {type_name(want)}, got {shown}"
            )
            raise LaunchError(Diagnostic("E104", message, call_span(), "convert the argument"))
    return chosen


def _has_form(value: object, want: ScalarType | VectorType | MatrixType) -> bool:
    """Whether a value can be one of a type, as far as its class tells."""
    have = getattr(type(value), "__ir_type__", None)
    composite = isinstance(have, (VectorType, MatrixType))
    if isinstance(want, ScalarType):
        return not composite and (hasattr(value, "__float__") or hasattr(value, "__index__"))
    return have == want if composite else hasattr(value, "__len__") and not isinstance(value, str)


def _rank(f: Overload[F], bound: Mapping[str, Argument]) -> tuple[int, int]:
    adapted = open_ = 0
    for name, (_, got) in bound.items():
        want = f.signature.types[name]
        pattern = f.signature.patterns.get(name)
        narrow = pattern is not None and pattern.form is not None
        open_ += 0 if want is not None else 2 - narrow
        adapted += want is not None and isinstance(got, Value) and got.type != want
    return adapted, open_


def _none(node: ast.expr, given: Given, name: str, found: Sequence[Overload[F]]) -> Problem:
    shown = ", ".join(_shown(got) for _, got in (*given.positional, *given.named.values()))
    listed = "; ".join(str(f) for f in found)
    return Problem(
        "E104",
        node,
        f"no overload of `{name}` takes ({shown})",
        f"its overloads are: {listed}",
    )


def _shown(got: Operand) -> str:
    if isinstance(got, Known):
        return str(getattr(got.obj, "__name__", got.obj))
    parts = decompose(got)
    if parts is not None:
        return type_name(parts[0])
    return "?" if isinstance(got, Bad) else "several values"
