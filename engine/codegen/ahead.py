"""Finds elements that threads of a scatter can prefetch.

Threads that add to elements at indices from an array wait for memory most of their time, and
compilers make no vector code of them. Of threads to come, what these indices are computed from is
known: they are computed some threads before they are needed, and what stands there is asked for.

What a thread may not touch at all costs as much to ask for as what it does. So a thread asks in
the branches that it takes itself, as threads near it are likely to, and for what it has read on
the way to a branch only where it adds to something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.classes import dataclass
from engine.codegen.facts import facts_of, tid_part
from engine.codegen.rows import operations
from engine.ir import nodes as n
from engine.ir.rewrite import map_stmt

AHEAD = 32  # threads
# Elements of a kernel's threads that are asked for, and operations that compute one of them.
MOST, LIGHT = 12, 16
_SAME = ("copy", "wrap_index", "within")  # operations that leave an index what it is, mostly

Atoms = tuple[n.Atom, ...]
Stmts = tuple[n.Stmt, ...]


@dataclass(frozen=True, eq=False)
class Ahead:
    """An index, and the arrays of which a thread touches the element there.

    needed: what computes it, by variables of their own. turns: variables of loops in it. axis: of
    the grid, along which threads follow each other.
    """

    index: Atoms
    arrays: tuple[n.Var, ...]
    needed: Stmts
    turns: frozenset[n.Var]
    axis: int


def ahead(fn: n.Function) -> Mapping[int, list[Ahead]]:
    """What a kernel's threads may ask for before statements (by identity)."""
    if not any(isinstance(s, n.Atomic) for f in (fn, *n.callees(fn)) for s in n.walk(f.body)):
        return {}
    found = _Found(fn)
    found.block(fn.body, found.place((), frozenset()))
    return found.all()


class _Place:
    """What threads touch that take the same branches.

    path: these. turns: variables of loops around it, or whatever stands for a loop. touched: at
    indices, arrays, and the statement that is the first to do so. scatters: whether they add there.
    """

    def __init__(self, path: tuple[object, ...], turns: frozenset[object]) -> None:
        self.path, self.turns = path, turns
        self.touched: dict[Atoms, tuple[n.Stmt, dict[n.Var, None]]] = {}
        self.scatters = False


class _Found:
    """What is known of a kernel after some of its statements.

    Values have names that are unique in all of it, as functions are looked at where they are
    called.
    """

    def __init__(self, fn: n.Function) -> None:
        self.axis = 0
        self.places: dict[tuple[object, ...], _Place] = {}
        self.written = facts_of(fn)[id(fn)].written
        # What computes values, and those that depend on what was loaded and on turns of loops.
        self.needed: dict[n.Atom, Stmts] = dict.fromkeys(fn.params, ())
        self.loaded: set[n.Atom] = set()
        self.turns: dict[n.Atom, frozenset[n.Var]] = {}
        self.values: dict[object, n.Var] = {}
        # The values of variables of the function that is looked at.
        self.names: dict[n.Var, n.Atom] = {p: p for p in fn.params}
        self.caller: n.Call | None = None

    def place(self, path: tuple[object, ...], turns: frozenset[object]) -> _Place:
        return self.places.setdefault(path, _Place(path, turns))

    def block(self, block: n.Block, at: _Place) -> None:
        for s in block:
            if isinstance(s, n.If):
                test = id(s) if isinstance(s.cond, n.Var) and s.cond.mutable else s.cond
                for value, b in enumerate((s.orelse, s.then)):
                    if self.caller is None:
                        self.block(b, self.place((*at.path, (test, value)), at.turns))
            elif isinstance(s, (n.For, n.While)):
                if self.caller is None:
                    self.loop(s, at)
            elif isinstance(s, n.Call):
                self.call(s, at)
            else:
                if isinstance(s, (n.Load, n.Store, n.Atomic)):
                    self.touch(s, at)
                if isinstance(s, (n.Let, n.Load)) and not s.dst.mutable:
                    self.names.pop(s.dst, None)
                    self.define(s)

    def loop(self, s: n.For | n.While, at: _Place) -> None:
        turn: object = id(s)
        if isinstance(s, n.For):
            turn = self.names[s.var] = s.var
            self.needed[s.var], self.turns[s.var] = (), frozenset([s.var])
        for b in n.blocks_of(s):
            self.block(b, self.place((*at.path, id(s)), at.turns | {turn}))

    def call(self, s: n.Call, at: _Place) -> None:
        """Looks at a function with what it gets here, but for branches and loops in it."""
        outer = self.names, self.caller
        given = {p: self.now(a) for p, a in zip(s.func.params, s.args, strict=True)}
        self.names = {p: a for p, a in given.items() if a is not None and not p.mutable}
        self.caller = self.caller or s
        self.block(s.func.body, at)
        last = s.func.body[-1] if s.func.body else None
        values = map(self.now, last.values) if isinstance(last, n.Return) else ()
        came = dict(zip(s.dsts, values, strict=False))
        self.names, self.caller = outer
        for v in s.dsts:
            self.names.pop(v, None)
            if (a := came.get(v)) is not None and not v.mutable:
                self.names[v] = a

    def touch(self, s: n.Load | n.Store | n.Atomic, at: _Place) -> None:
        index, array = self.all_now(s.index), self.now(s.array)
        if index is None or not self.loaded.intersection(index) or not isinstance(array, n.Var):
            return
        at.touched.setdefault(index, (self.caller or s, {}))[1][array] = None
        at.scatters |= isinstance(s, n.Atomic)

    def define(self, s: n.Let | n.Load) -> None:
        same = isinstance(s, n.Let) and s.op in _SAME
        atoms = s.args if isinstance(s, n.Let) else (s.array, *s.index, *s.path)
        args = self.all_now(atoms[:1] if same else atoms)
        if args is None:
            return
        if same:
            self.names[s.dst] = args[0]
            return
        needed, far = self.computed(args), bool(self.loaded.intersection(args))
        # What is not near itself would be waited for, and what is written may change.
        if isinstance(s, n.Load) and (far or args[0].name in self.written):  # type: ignore[union-attr]
            return
        if operations(needed) > LIGHT:
            return
        made = n.Var(f"{len(self.values)}_{s.dst.name}", s.dst.type)
        what = s.op if isinstance(s, n.Let) else "load"
        self.names[s.dst] = value = self.values.setdefault((what, args, s.dst.type), made)
        if value is not made:
            return
        if isinstance(s, n.Let) and s.op == "tid":
            self.axis = s.args[1].value - 1  # type: ignore[union-attr, operator, assignment]
        self.needed[made] = (*needed, map_stmt(s, lambda a: self.now(a) or a, lambda b: b))
        self.turns[made] = self.turns_of(args)
        if far or isinstance(s, n.Load):
            self.loaded.add(made)

    def now(self, a: n.Atom) -> n.Atom | None:
        """The value of a variable here, or another number that will do."""
        return a if isinstance(a, n.Const) else self.names.get(a)

    def all_now(self, atoms: Atoms) -> Atoms | None:
        """The same of several; None where one is not known."""
        out = tuple(a for a in map(self.now, atoms) if a is not None)
        return out if len(out) == len(atoms) else None

    def computed(self, values: Atoms) -> Stmts:
        """What computes some values."""
        every = (s for a in values if isinstance(a, n.Var) for s in self.needed[a])
        return tuple({id(s): s for s in every}.values())

    def turns_of(self, values: Iterable[n.Atom]) -> frozenset[n.Var]:
        return frozenset(v for a in values for v in self.turns.get(a, ()))

    def goes_on(self, s: n.Stmt) -> bool:
        """Whether a statement gives the coordinate along which threads follow each other."""
        return isinstance(s, n.Let) and s.op == "tid" and tid_part(s) == self.axis

    def all(self) -> dict[int, list[Ahead]]:
        out: dict[int, list[Ahead]] = {}
        for place in self.places.values():
            around = [self.places[place.path[:k]] for k in range(len(place.path))]
            asked = any(p.scatters for p in around)  # for all that is touched there
            if not place.touched or not (asked or place.scatters):
                continue
            first, _ = next(iter(place.touched.values()))
            entries = {index: (s, dict(arrays)) for index, (s, arrays) in place.touched.items()}
            for index, arrays in ((i, a) for p in around for i, (_, a) in p.touched.items()):
                if asked:
                    for v in arrays if index in entries else ():
                        entries[index][1].pop(v, None)
                else:
                    entries.setdefault(index, (first, {}))[1].update(arrays)
            for index, (s, arrays) in entries.items():
                needed, turns = self.computed(index), self.turns_of(index)
                # Others would be the same in all turns of a loop, or for all threads of a row.
                if arrays and place.turns == turns and any(map(self.goes_on, needed)):
                    made = Ahead(index, tuple(arrays), needed, turns, self.axis)
                    out.setdefault(id(s), []).append(made)
        return dict(list(out.items())[:MOST])
