"""The state of lowering one function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace

from engine.classes import dataclass
from engine.diagnostics import KernelError
from engine.diagnostics import Span as SourceSpan
from engine.frontend.context.lowering import Lowering
from engine.frontend.context.value_ranges import RangeBuilder
from engine.frontend.operands.kinds import Kind, compose, kind_of_type, slots
from engine.frontend.operands.operand import (
    BAD,
    Absent,
    Bad,
    Choice,
    Dim,
    Known,
    Operand,
    Several,
    Span,
    Struct,
    Value,
    View,
)
from engine.frontend.parsing.definite_assignment import Facts, Path
from engine.frontend.parsing.local_variables import stores
from engine.frontend.parsing.parsed_function import ParsedFunction
from engine.frontend.parsing.report import Report
from engine.ir.builder import Names
from engine.ir.nodes import Atom, Block, Break, Continue, If, Return, Var
from engine.lang.stand_ins import StandIn, plural
from engine.lang.structs import StructType
from engine.lang.types import FLOAT32, ArrayType, ScalarType, Type

# An array that a name may stand for: its kind, and the atoms that are arrays.
Option = tuple[Kind, tuple[Atom, ...]]


@dataclass(slots=True)
class InferredTypes:
    """Types that one round of lowering found and the next one needs.

    choices: the arrays among which a name or field stands for one at run time, each by its kind
    and the arrays that it is made of. arrays: those of the results, in the order of their kinds.
    """

    locals: dict[str, Kind] = field(default_factory=dict)
    results: tuple[Kind, ...] | None = None
    arrays: tuple[tuple[Atom, ...], ...] = ()
    choices: dict[str, tuple[Option, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exit:
    """How an unrolled loop is left. left: set by `break`, where `continue` leaves a loop too."""

    left: Var | None


class Context:
    """One round of lowering. Handlers append to `b` and report to `report`."""

    def __init__(
        self, function: ParsedFunction, name: str, inferred: InferredTypes, lowering: Lowering
    ) -> None:
        self.function = function
        self.name = name
        self.lowering = lowering
        self.source = function.source
        self.scope = function.scope
        self.plan = function.plan
        self.is_kernel = function.is_kernel
        self.report = Report(function.source)
        self.inferred = inferred
        self.b = RangeBuilder(Names(list(function.annotated)), function.source.header())
        # What plain names stand for now, and the variables behind the others.
        self.bound: dict[str, Operand] = {}
        self.vars: dict[str, Var] = {}
        self.types: dict[str, Kind] = dict(inferred.locals)
        # Structs, views and local arrays that names stand for, in variables of their own.
        self.trees: dict[str, Operand] = {}
        # Arrays among which names and fields stand for one, found in this round; where it was.
        self.choices: dict[str, tuple[Option, ...]] = {}
        self.choosing: dict[str, ast.AST] = {}
        # The block of the first assignment to each of them.
        self.homes: dict[str, RangeBuilder] = {}
        # Variables that parts of names can be assigned to.
        self.owned: set[Var] = set()
        # Local arrays among the parameters, which the caller gets back, by number.
        self.lent: dict[int, tuple[Var, ...]] = {}
        # Names read before the assignment that gives them a type, and names whose first
        # assignment in the text has no type yet.
        self.unsure: set[str] = set()
        self.deferred: dict[str, ast.AST] = {}
        # Names that a statement with an error assigns: nothing more is said about them.
        self.poisoned: set[str] = set()
        self.loops: list[ast.AST] = []
        # How many blocks are around the present statement; 0 where every run comes by.
        self.depth = 0
        # Variables of loops that are being unrolled, and which iterations these are in.
        self.unrolled: dict[str, int] = {}
        self.path: Path = ()
        # The loops around the present statement, innermost last; None for one of the IR.
        self.exits: tuple[Exit | None, ...] = ()
        self.facts = Facts()
        # Lines where names were given a literal, for advice on types.
        self.literals: dict[str, int] = {}
        # Names to which only literals of floats were assigned so far: those of which nothing else
        # is asked are float32. What is asked of variables among them, for the next round.
        self.open: set[str] = set()
        # Names with a value that is computed from such alone, and those that it comes from.
        self.derived: dict[str, frozenset[str]] = {}
        self.asked: dict[str, ScalarType] = {}
        # Types and weakness of what each `return` gives, with its node.
        self.returned: list[tuple[ast.Return, tuple[Operand, ...]]] = []
        # Whether literals that are returned stay literals for callers, and whether the end of
        # the function is reached without a `return`.
        self.exact_results = self.ends = False
        # Whether a `return` gives a literal that the type of the result rounds; and of values that
        # such a function or a parameter's annotation has made float32, what to annotate instead.
        self.rounds = False
        self.rounded: dict[Atom, str] = {}
        # A `return` that could not be lowered: the results are then not known.
        self.failed_return = False
        # Variables that only one place sets: reading them later is safe.
        self.settled: set[Var] = set()
        # In a custom gradient: what `adjoint[...]` is, by parameter, and all variables in it.
        self.adjoints: dict[str, Operand] | None = None
        self.adjoint_vars: tuple[Var, ...] = ()
        self.array_params: frozenset[str] = frozenset()
        # The gradient arrays that it asks for, by the parameter that they belong to.
        self.adjoint_arrays: dict[str, Var] = {}
        # Tables that queries in here look into: further parameters, by their struct.
        self.tables: dict[StructType, tuple[str, tuple[Var, ...]]] = {}
        # Pairs of array parameters that must not share memory, as references lead into both.
        self.apart: dict[tuple[str, str], None] = {}
        # Of fields that are made to hold another array: see `engine.ir.links`.
        self.joined_pools: dict[tuple[str, str], SourceSpan] = {}
        self.named_rows: dict[tuple[str, int], int] = {}  # with their numbers

    # ---- dispatch

    def expr(self, node: ast.expr) -> Operand:
        """Lowers an expression; its statements carry the place of the expression."""
        if id(node) in self.function.rejected:
            return BAD
        handler = self.lowering.expressions.get(type(node))
        if handler is None:
            return self.error("E101", node, f"`{type(node).__name__}` is not supported here")
        with self.at(node):
            return handler(self, node)

    def stmt(self, node: ast.stmt) -> None:
        """Lowers a statement. A fault of this package is reported at the statement."""
        handler = self.lowering.statements.get(type(node))
        if id(node) in self.function.rejected or handler is None:
            self.spoil(node)
            return
        told = len(self.report.diagnostics)
        if isinstance(node, ast.While):
            self.forget_counts(node)  # what an iteration changes, the next one sees
        with self.at(node):
            try:
                handler(self, node)
            except (KernelError, RecursionError):
                raise
            except Exception as error:
                if len(self.report.diagnostics) > told:
                    return  # what is wrong with the statement is told already
                self.error(
                    "E101",
                    node,
                    f"this statement cannot be translated ({type(error).__name__}: {error})",
                    "please report this kernel; until then, write it with simpler statements",
                )
        if len(self.report.diagnostics) > told and not isinstance(node, (ast.If, ast.While)):
            self.poisoned |= stores(node)
        if not isinstance(node, ast.For):  # which knows more
            self.forget_counts(node)

    def forget_counts(self, node: ast.AST) -> None:
        """Variables of unrolled loops that a statement changes are not what the loop says."""
        if self.unrolled:
            changed = stores(node)
            self.unrolled = {n: k for n, k in self.unrolled.items() if n not in changed}

    def ask(self, node: ast.AST, t: Type) -> None:
        """Wants variables that literals have started, and that are read in a node, in a type."""
        if isinstance(t, ScalarType) and t.kind == "f" and t != FLOAT32:
            for n in ast.walk(node):
                if isinstance(n, ast.Name):
                    for name in self.derived.get(n.id, (n.id,)):
                        if name in self.open and name in self.vars:
                            self.asked.setdefault(name, t)

    def spoil(self, node: ast.AST) -> None:
        """Gives names assigned by a statement that was not lowered a value without type."""
        self.poisoned |= stores(node)
        for name in stores(node):
            if name not in self.types:
                self.bound[name] = BAD

    def block(self, body: Sequence[ast.stmt]) -> None:
        """Lowers statements up to the first that always leaves."""
        for s in body:
            self.stmt(s)
            if self.b.stmts and isinstance(self.b.stmts[-1], (Return, Break, Continue)):
                break

    @contextmanager
    def at(self, node: ast.AST) -> Iterator[None]:
        before = self.b.span
        if hasattr(node, "lineno"):
            self.b.span = self.source.span(node)
        try:
            yield
        finally:
            self.b.span = before

    @contextmanager
    def nested(self) -> Iterator[RangeBuilder]:
        """Statements go to a block of their own while this is active."""
        outer = self.b
        self.b = outer.child()
        self.depth += 1
        try:
            yield self.b
        finally:
            self.b = outer
            self.depth -= 1

    @contextmanager
    def looping(self, node: ast.AST) -> Iterator[None]:
        """What is lowered while this is active is in a loop of the IR."""
        self.loops.append(node)
        self.exits = (*self.exits, None)
        try:
            yield
        finally:
            self.loops.pop()
            self.exits = self.exits[:-1]

    def settles(self, name: str) -> bool:
        """Whether all that comes after sees what is assigned here: no other block is between."""
        return self.depth == 0 or self.homes.get(name) is self.b

    def branch(self, cond: Atom, then: Block, orelse: Block = ()) -> None:
        self.b.add(If(cond, then, orelse, self.b.span))

    # ---- errors

    def error(
        self,
        code: str,
        node: ast.AST,
        message: str,
        help_text: str = "",
        notes: Sequence[str] = (),
    ) -> Bad:
        self.report.add(code, node, message, help_text, notes)
        return BAD

    @property
    def api(self) -> str:
        return self.scope.api

    def close_to(self, name: str, others: Sequence[str], prefix: str = "") -> str:
        """A help line that names what the user may have meant."""
        import difflib  # late: for messages alone

        found = difflib.get_close_matches(name, list(others), 1, 0.75)
        return f"did you mean `{prefix}{found[0]}`?" if found else ""

    # ---- values

    def table(self, t: StructType) -> Operand:
        """A table of `engine.builtins.queries`, which is a further parameter of the function."""
        kind = kind_of_type(t)
        if t not in self.tables:
            name = t.name.rpartition(".")[2]
            while name in self.plan.assigned:
                name += "_"
            parts = slots(kind)
            made = tuple(Var(self.b.names.take(name + s.suffix), s.type) for s in parts)
            self.tables[t] = name, made
        return compose(kind, self.tables[t][1])

    def value(self, node: ast.expr, what: str = "a value") -> Value | Bad:
        """Lowers an expression that must be one value (an array counts)."""
        return self.one(node, self.expr(node), what)

    def one(self, node: ast.expr, got: Operand, what: str = "a value") -> Value | Bad:
        """The operand as one value, or an error at the node."""
        if isinstance(got, (Value, Bad)):
            return got
        if isinstance(got, Known) and got.value is not None:
            return got.value
        if isinstance(got, Several):
            if not got.items:
                return self.error(
                    "E109",
                    node,
                    "this call gives no value",
                    "end the function with `return value`, or call it as a statement",
                )
            return self.error(
                "E109",
                node,
                f"{what} is needed here, but this is {_counted(len(got.items))}",
                "give each a name first: `a, b = ...`, or take one: `t[0]`",
            )
        if not isinstance(got, Known):
            return self.describe(node, got)
        return self._not_a_value(node, got)

    def describe(self, node: ast.expr, got: View | Struct | Absent | Choice) -> Bad:
        """Says what an operand is that stands where a value is needed."""
        text = self.source.text(node)
        if isinstance(got, Struct):
            fields = ", ".join(f"`{f}`" for f in got.type.fields)
            return self.error(
                "E104",
                node,
                f"a value is needed here, but `{text}` is a struct of type {got.type}",
                f"use one of its fields: {fields}",
            )
        if isinstance(got, Absent):
            return self.error(
                "E102",
                node,
                f"`{text}` holds no array here",
                "assign an array to the field before it is used, or pass the struct to the kernel",
            )
        dims = got.dims if isinstance(got, View) else ()
        need, have = len(dims), len(dims) - (got.ndim if isinstance(got, View) else 0)
        if have and not any(isinstance(d, Span) for d in dims):
            return self.error(
                "E109",
                node,
                f"the array has {need} dimensions, but {have} "
                f"{'index is' if have == 1 else 'indices are'} given",
                f"write all indices: `{text}[...]`",
            )
        return self.error(
            "E104", node, f"a value is needed here, but `{text}` is an array", "index it: `a[i]`"
        )

    def _not_a_value(self, node: ast.expr, got: Known) -> Bad:
        text = self.source.text(node)
        if isinstance(got.obj, StandIn):
            what = f"`{text}`: {plural(got.obj.missing_feature)} not supported"
            return self.error("E112", node, what, got.obj.missing_help)
        if callable(got.obj):
            return self.error(
                "E106",
                node,
                f"`{text}` is a function or type, not a value",
                f"call it: `{text}(...)`",
            )
        return self.error("E107", node, f"`{text}` is not a value that kernels can use")

    def scalar_value(self, node: ast.expr, what: str = "a value") -> Value | Bad:
        """Like `value`, but arrays are refused."""
        return self.scalar_one(node, self.expr(node), what)

    def scalar_one(self, node: ast.expr, found: Operand, what: str = "a value") -> Value | Bad:
        """Like `one`, but arrays are refused."""
        got = self.one(node, found, what)
        if isinstance(got, Value) and isinstance(got.type, ArrayType):
            return self.error(
                "E104", node, f"{what} is needed here, but this is an array", "index it: `a[i]`"
            )
        return got

    def keep(self, got: Operand) -> Operand:
        """The operand, safe from later changes of the variables that it reads."""
        if isinstance(got, Value):
            return replace(got, atom=self.frozen(got.atom))
        if isinstance(got, Several):
            return Several(tuple(self.keep(x) for x in got.items))
        if isinstance(got, Struct):
            return Struct(got.type, tuple(self.keep(x) for x in got.items))
        if isinstance(got, Choice):
            options = tuple(self.keep(x) for x in got.options)
            return Choice(self.frozen(got.selector), options)
        if isinstance(got, View):
            dims: list[Dim] = []
            for d in got.dims:
                if isinstance(d, Span):
                    d = Span(*(self.frozen(a) for a in (d.start, d.step, d.count)))
                elif d is not None:
                    d = self.frozen(d)
                dims.append(d)
            root = got.root
            if got.is_local and got.is_whole:  # a local array is a value, like a vector
                root = replace(root, leaves=tuple(self.frozen(a) for a in root.leaves))
            if root.place:
                root = replace(root, place=tuple(self.frozen(a) for a in root.place))
            return View(root, tuple(dims))
        return got

    def frozen(self, atom: Atom) -> Atom:
        if isinstance(atom, Var) and atom.mutable and atom not in self.settled:
            return self.b.op("copy", atom)
        return atom

    def variable(self, name: str, t: Type) -> Var:
        """The mutable variable of a Python name, made when first asked for."""
        if name not in self.vars:
            self.vars[name] = self.b.variable(t, _plain_name(name))
            self.types[name] = t
            self.owned.add(self.vars[name])
        return self.vars[name]

    def owned_variable(self, name: str, t: Type) -> Var:
        """A variable for a part of what a name stands for."""
        var = self.b.variable(t, name.replace("$", "cmp"))
        self.owned.add(var)
        return var

    def result_variable(self, t: Type) -> Var:
        """A variable that the two arms of one `If` set."""
        var = self.b.variable(t, "r")
        self.settled.add(var)
        return var


def _counted(n: int) -> str:
    return f"{n} values" if n != 1 else "a tuple of one value"


def _plain_name(name: str) -> str:
    return name.replace("$", "cmp") or "v"
