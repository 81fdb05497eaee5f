"""Builds IR: a list of statements under construction, and expressions with operators.

Derivative rules are written with `E`, so that a rule reads like its formula:
`lambda a, y: (y * -a[0],)`.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.diagnostics import UNKNOWN, Span
from engine.ir.nodes import Atom, Block, Const, Let, Load, Set, Stmt, Var
from engine.ir.ops import OPS
from engine.lang.types import BOOL, INT32, ScalarType, Type, ValueType, scalar_of, shape_of


class Names:
    """Hands out names that are unique in one function, the same in every run."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._next: dict[str, int] = {}
        self._taken = set(taken)

    def take(self, name: str) -> str:
        """The name itself, which `fresh` will not hand out."""
        self._taken.add(name)
        return name

    def fresh(self, base: str) -> str:
        base = base.rstrip("0123456789").rstrip("_") or "t"
        while True:
            n = self._next.get(base, 0)
            self._next[base] = n + 1
            name = base if n == 0 else f"{base}_{n}"
            if name not in self._taken:
                self._taken.add(name)
                return name


def const(value: bool | int | float, t: ValueType) -> Const:
    """A constant of a type; a number fills every component of a vector or matrix."""
    kind = scalar_of(t).kind
    number: bool | int | float = (
        float(value) if kind == "f" else bool(value) if kind == "b" else int(value)
    )
    shape = shape_of(t)
    if not shape:
        return Const(number, t)
    row: tuple[object, ...] = (number,) * shape[-1]
    return Const(row if len(shape) == 1 else (row,) * shape[0], t)


class Builder:
    """Appends statements to a block. `span` is given to every statement it makes."""

    def __init__(self, names: Names, span: Span = UNKNOWN) -> None:
        self.names = names
        self.span = span
        self.stmts: list[Stmt] = []

    def block(self) -> Block:
        return tuple(self.stmts)

    def child(self) -> Builder:
        """A builder for a nested block of the same function."""
        return Builder(self.names, self.span)

    def add(self, s: Stmt) -> None:
        self.stmts.append(s)

    def temp(self, t: Type, base: str = "t") -> Var:
        return Var(self.names.fresh(base), t)

    def variable(self, t: Type, base: str = "v") -> Var:
        return Var(self.names.fresh(base), t, mutable=True)

    def op(self, name: str, *args: Atom, result: Type | None = None, base: str = "t") -> Var:
        """`base = name(args)`. Raises TypeError where the operation does not take the types."""
        entry = OPS[name]
        t = result
        if not entry.explicit:
            t = entry.infer([a.type for a in args])
        if t is None:
            raise TypeError(f"{name} does not take ({', '.join(str(a.type) for a in args)})")
        dst = self.temp(t, base)
        self.add(Let(dst, name, tuple(args), self.span))
        return dst

    def set(self, dst: Var, value: Atom) -> None:
        self.add(Set(dst, value, self.span))

    def load(
        self, array: Var, index: Sequence[Atom], path: Sequence[Atom], t: Type, base: str = "t"
    ) -> Var:
        dst = self.temp(t, base)
        self.add(Load(dst, array, tuple(index), tuple(path), self.span))
        return dst

    def e(self, atom: Atom) -> E:
        return E(self, atom)


class E:
    """An atom with a builder: arithmetic on it appends statements."""

    __slots__ = ("atom", "b")

    def __init__(self, b: Builder, atom: Atom) -> None:
        self.b = b
        self.atom = atom

    @property
    def type(self) -> Type:
        return self.atom.type

    def lit(self, value: bool | int | float) -> E:
        """A constant of this expression's own scalar type."""
        return E(self.b, const(value, scalar_of(self.type)))

    def full(self, value: bool | int | float) -> E:
        """A constant of this expression's own type, every component the same."""
        if isinstance(self.type, (ScalarType,)) or shape_of(self.type):  # type: ignore[arg-type]
            return E(self.b, const(value, self.type))  # type: ignore[arg-type]
        raise TypeError(f"no constant of type {self.type}")

    def index(self, value: int) -> E:
        return E(self.b, Const(value, INT32))

    def true(self) -> E:
        return E(self.b, Const(True, BOOL))

    def call(self, name: str, *others: E | float | int) -> E:
        """The operation `name` applied to this expression and others (numbers are literals)."""
        atoms = [o.atom if isinstance(o, E) else self.lit(o).atom for o in others]
        return E(self.b, self.b.op(name, self.atom, *atoms))

    def make(self, name: str, result: Type, *others: E) -> E:
        """An `explicit` operation (cast, construct, ...) with its result type."""
        return E(self.b, self.b.op(name, self.atom, *(o.atom for o in others), result=result))

    def __add__(self, o: E | float) -> E:
        return self.call("add", o)

    def __sub__(self, o: E | float) -> E:
        return self.call("sub", o)

    def __mul__(self, o: E | float) -> E:
        return self.call("mul", o)

    def __truediv__(self, o: E | float) -> E:
        return self.call("div", o)

    def __radd__(self, o: float) -> E:
        return self.lit(o) + self

    def __rsub__(self, o: float) -> E:
        return self.lit(o) - self

    def __rmul__(self, o: float) -> E:
        return self.lit(o) * self

    def __rtruediv__(self, o: float) -> E:
        return self.lit(o) / self

    def __neg__(self) -> E:
        return E(self.b, self.b.op("neg", self.atom))

    def __lt__(self, o: E | float) -> E:
        return self.call("lt", o)

    def __le__(self, o: E | float) -> E:
        return self.call("le", o)

    def __gt__(self, o: E | float) -> E:
        return self.call("gt", o)

    def __ge__(self, o: E | float) -> E:
        return self.call("ge", o)

    def eq(self, o: E | float) -> E:
        return self.call("eq", o)

    def select(self, yes: E | float, no: E | float) -> E:
        """`yes` where this condition holds, else `no`; at least one of them is an E."""
        like = yes if isinstance(yes, E) else no
        assert isinstance(like, E)
        a = yes if isinstance(yes, E) else like.full(yes)
        c = no if isinstance(no, E) else like.full(no)
        return E(self.b, self.b.op("select", self.atom, a.atom, c.atom))
