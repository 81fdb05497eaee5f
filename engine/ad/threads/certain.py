"""Finds stores by which the threads of a launch certainly overwrite each other's value.

Which value stays depends on the order of the threads, which no derivative can know.
Only what is certain counts: a store that every thread runs, to an element that is the
same for all of them, of a value that each takes from an element of its own.

Where threads run one after the other, a value that is made of what was there before
(`y[0] *= x[i]`) overwrites nobody's: each thread goes on from the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.ad.structure import by_every_thread
from engine.ir import nodes as n
from engine.ir.ops import OPS, NoDerivative
from engine.ir.touched import written_params
from engine.lang.types import ArrayType, is_float

# Operations whose value may be that of one argument alone, whatever the other is.
_CHOOSING = ("select", "where", "min", "max", "clamp")


def clashes(
    fn: n.Function, dim: Sequence[int], arrays: frozenset[str], in_order: bool = False
) -> list[n.Store]:
    """Such stores of a kernel launched over `dim`, to the array parameters `arrays`.

    in_order: threads run one after the other.
    """
    body = list(by_every_thread(fn))
    seen = _Threads(fn, dim)
    out = []
    for s in body:
        seen.statement(s)
        if (
            isinstance(s, n.Store)
            and s.array.name in arrays
            and all(a in seen.uniform or isinstance(a, n.Const) for a in (*s.index, *s.path))
            and s.value in seen.own
            and not (in_order and seen.goes_on(s))
        ):
            out.append(s)
    return [s for s in out if not _written_later(fn.body, s)]


def _written_later(body: n.Block, store: n.Store) -> bool:
    """Whether a statement after a store may write the same array."""
    at = next(k for k, s in enumerate(body) if s is store)
    for s in n.walk(body[at + 1 :]):
        if isinstance(s, (n.Store, n.Atomic)) and s.array == store.array:
            return True
        if isinstance(s, n.Call):
            written = written_params(s.func)
            for p, a in zip(s.func.params, s.args, strict=True):
                if a == store.array and p.name in written:
                    return True
    return False


# An array's name, its index and the path to a component.
_Element = tuple[str, tuple[object, ...], tuple[object, ...]]


class _Threads:
    """What is known of temporaries: the same for all threads, or another for each.

    uniform: the same. apart: integers that are different wherever two threads differ in
    some axis. own: values taken from another element by threads that differ in it. known: how
    uniform temporaries were made, equal for those that are equal. made_of: by values, the elements
    that are the same for all threads and that a thread read for it.
    """

    def __init__(self, fn: n.Function, dim: Sequence[int]) -> None:
        self.dim = tuple(dim)
        self.uniform: set[n.Atom] = set(fn.params)
        self.apart: set[n.Atom] = set()
        self.own: set[n.Atom] = set()
        self.written = written_params(fn)
        self.known: dict[n.Atom, object] = {}
        self.made_of: dict[n.Atom, frozenset[_Element]] = {}

    def key(self, a: n.Atom) -> object:
        return a if isinstance(a, n.Const) else self.known.get(a, a)

    def element(self, s: n.Load | n.Store) -> _Element:
        return s.array.name, tuple(map(self.key, s.index)), tuple(map(self.key, s.path))

    def goes_on(self, s: n.Store) -> bool:
        """Whether what a thread stores is made of what it read there."""
        name, index, path = self.element(s)
        return any(
            array == name and at == index and path[: len(part)] == part
            for array, at, part in self.made_of.get(s.value, ())
        )

    def statement(self, s: n.Stmt) -> None:
        if isinstance(s, n.Load):
            if self.same(s.index) and self.same(s.path):
                self.made_of[s.dst] = frozenset({self.element(s)})
                if s.array.name not in self.written:
                    self.uniform.add(s.dst)
                    self.known[s.dst] = self.element(s)
            if any(a in self.apart for a in s.index):
                self.own.add(s.dst)
        elif isinstance(s, n.Let):
            self.operation(s)
            self.made_of[s.dst] = frozenset().union(*(self.made_of.get(a, ()) for a in s.args))

    def same(self, atoms: Sequence[n.Atom]) -> bool:
        return all(isinstance(a, n.Const) or a in self.uniform for a in atoms)

    def operation(self, s: n.Let) -> None:
        if s.op == "tid":
            if self.extent(s) > 1:
                self.apart.add(s.dst)
            return
        if self.same(s.args):
            self.uniform.add(s.dst)
            self.known[s.dst] = (s.op, *map(self.key, s.args))
            return
        if s.op in ("add", "sub", "copy", "within"):
            moving = [a for a in s.args if a in self.apart]
            if len(moving) == 1 and self.same([a for a in s.args if a is not moving[0]]):
                self.apart.add(s.dst)
        smooth = not isinstance(OPS[s.op].derivative, NoDerivative)
        taken = [a for a in s.args if a in self.own]
        cancels = len(taken) > 1 and s.op in ("sub", "div")
        if smooth and taken and _float(s.dst) and not s.op.startswith(_CHOOSING) and not cancels:
            self.own.add(s.dst)

    def extent(self, s: n.Let) -> int:
        """How many values a `tid` has in the launch."""
        axis, arity = (int(a.value) for a in s.args if isinstance(a, n.Const))  # type: ignore[arg-type]
        if arity == 1:
            total = 1
            for size in self.dim:
                total *= size
            return total
        return self.dim[axis] if axis < len(self.dim) else 1


def _float(v: n.Var) -> bool:
    return not isinstance(v.type, ArrayType) and is_float(v.type)
