"""Writes the statements of a watched kernel: see `engine.ir.sites`.

An access outside of something is noted; a load gives zero then, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from engine.codegen.statements import Body
from engine.ir import nodes as n
from engine.ir.sites import computed, indices, lengths
from engine.lang.types import ArrayType


class WatchedBody(Body):
    """As `Body`, with every access watched whose place has a number."""

    def statement(self, s: n.Stmt) -> None:
        watched = _WATCHED.get(type(s)) if id(s) in self.e.places else None
        if watched is None:
            super().statement(s)
        else:
            watched(self, s)

    @property
    def races(self) -> bool:
        return self.e.fn.watch == "races"

    def inside(self, s: n.Load | n.Store | n.Atomic) -> str:
        """The test whether what a statement accesses is there."""
        # Who looks for races is told of nothing else.
        place = -1 if self.races else self.e.places[id(s)]
        index = ", ".join(self.index(a) for a in s.index)
        test = f"eng::inside(ctx, {place}, {self.name(s.array)}, {index})"
        if computed(s.path):
            assert isinstance(s.array.type, ArrayType)
            further = place if place < 0 else place + 1
            test += f" && {self.among(further, s.array.type.element, s.path)}"
        return test

    def among(self, place: int, t: Any, index: tuple[n.Atom, ...]) -> str:
        words = [*map(str, lengths(t, index)), *(self.atom(a) for a in index)]
        return f"eng::among(ctx, {place}, {', '.join(words)})"

    def watched_load(self, s: n.Load) -> None:
        found = self.element(s)
        if self.races:
            found = f"eng::read(ctx, {self.e.places[id(s)]}, {found})"
        self.assign(s.dst, f"{self.inside(s)} ? {found} : {self.e.type(s.dst.type)}{{}}")

    def watched_store(self, s: n.Store) -> None:
        value = self.atom(s.value)
        if self.races:
            t = self.e.type(s.value.type)
            text = f"eng::write<{t}>(ctx, {self.e.places[id(s)]}, {self.element(s)}, {value})"
        else:
            text = f"{self.element(s)} = {value}"
        self.line(f"if ({self.inside(s)}) {text};")

    def watched_atomic(self, s: n.Atomic) -> None:
        won = self.fights.place(s)
        if won is not None:
            args = f"ctx, {won}, {self.element(s)}, {self.atom(s.value)}"
            outside = f"eng::journal_write(ctx, {self.e.type(s.value.type)}{{}})"
            done = f"{self.inside(s)} ? eng::{s.kind}_won({args}) : {outside}"
            self.line(f"if (!({done})) {self.leave()}")
            return
        compare = "" if s.compare is None else f", {self.atom(s.compare)}"
        place = self.element(s)
        if self.races:
            place = f"eng::update(ctx, {self.e.places[id(s)]}, {place})"
        text = f"{self.update(s)}({place}, {self.atom(s.value)}{compare})"
        if s.dst is None:
            self.line(f"if ({self.inside(s)}) {text};")
        else:
            self.assign(s.dst, f"{self.inside(s)} ? {text} : {self.e.type(s.dst.type)}{{}}")

    def watched_let(self, s: n.Let) -> None:
        place = -1 if self.races else self.e.places[id(s)]
        if s.op == "within":
            i, size = (self.atom(a) for a in s.args)
            self.assign(s.dst, f"eng::within(ctx, {place}, {i}, {size})")
            return
        self.assign(s.dst, f"{self.component(s)} ? {self.operation(s)} : {self.otherwise(s)}")

    def component(self, s: n.Let) -> str:
        """The test whether the component is there."""
        place = -1 if self.races else self.e.places[id(s)]
        return self.among(place, s.args[0].type, indices(s))

    def otherwise(self, s: n.Let) -> str:
        """What an operation gives where it is not."""
        if s.op.startswith("insert"):
            return self.atom(s.args[0])
        return f"{self.e.type(s.dst.type)}{{}}"

    def components(self, inserts: Sequence[n.Let]) -> None:
        whole = inserts[0].args[0]
        for s in inserts:
            index = ", ".join(self.atom(a) for a in s.args[1:-1])
            text = f"eng::item({self.atom(whole)}, {index}) = {self.atom(s.args[-1])};"
            self.line(f"if ({self.component(s)}) {text}" if id(s) in self.e.places else text)


_WATCHED: dict[type, Callable[[WatchedBody, Any], None]] = {
    n.Load: WatchedBody.watched_load,
    n.Store: WatchedBody.watched_store,
    n.Atomic: WatchedBody.watched_atomic,
    n.Let: WatchedBody.watched_let,
}
