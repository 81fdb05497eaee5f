"""Changes components in place: `x[i] = s` instead of a changed copy.

    t = insert(x, i, s); ...; u = insert(t, j, r); ...; x = u

becomes `t = insert(x, i, s); x = t; ...; u = insert(x, j, r); x = u`, each of which is one store.
What is extracted of a stage is extracted of x while it is that stage. Reverse mode writes the first
form, as copies are propagated; compilers keep every stage in memory, and copy all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.rewrite import map_stmt


def in_place(fn: n.Function) -> n.Function:
    """The function with such chains of inserts, within a block, rewritten."""
    if not any(isinstance(s, n.Let) and s.op == "insert" for s in n.walk(fn.body)):
        return fn
    return replace(fn, body=_block(fn.body))


def _block(block: n.Block) -> n.Block:
    nested = tuple(map_stmt(s, None, _block) if s.NESTED else s for s in block)
    return _Chains(nested).rewritten()


class _Chains:
    """The chains of one block. Places are those of its statements."""

    def __init__(self, block: n.Block) -> None:
        self.block = block
        self.made: dict[n.Var, int] = {}  # temporaries, where this block has them
        self.read: dict[n.Var, list[int]] = {}
        self.changed: dict[n.Var, list[int]] = {}
        for k, s in enumerate(block):
            for x in n.walk((s,)):
                for a in n.uses_of(x):
                    if isinstance(a, n.Var):
                        self.read.setdefault(a, []).append(k)
                for v in n.defs_of(x):
                    if v.mutable:
                        self.changed.setdefault(v, []).append(k)
                    else:
                        self.made[v] = k
        # What becomes of statements, and what goes before some.
        self.instead: dict[int, tuple[n.Stmt, ...]] = {}
        self.before: dict[int, list[n.Stmt]] = {}

    def rewritten(self) -> n.Block:
        for k, s in enumerate(self.block):
            if isinstance(s, n.Set) and isinstance(s.value, n.Var):
                self.look(k, s)
        if not self.instead:
            return self.block
        out: list[n.Stmt] = []
        for k, s in enumerate(self.block):
            out += self.before.get(k, ())
            out += self.instead.get(k, (s,))
        return tuple(out)

    def maker(self, v: n.Atom, op: str) -> n.Let | None:
        """The operation that made a value in this block, if it is that one."""
        s = self.block[self.made[v]] if isinstance(v, n.Var) and v in self.made else None
        return s if isinstance(s, n.Let) and s.op == op else None

    def look(self, end: int, last: n.Set) -> None:
        """Rewrites the chain that a variable is set to, if it is one and may be."""
        links: list[n.Let] = []
        value: n.Atom = last.value
        while (s := self.maker(value, "insert")) is not None:
            links.append(s)
            value = s.args[0]
        links.reverse()
        if not links or not self.begins(value, last.dst):
            return
        places = [self.made[s.dst] for s in links]
        if any(k in self.instead for k in (*places, end)):
            return
        if not self.is_alone(last.dst, places[0], end, value):
            return
        stages = [value, *(s.dst for s in links)]
        moved: list[tuple[int, int, n.Let]] = []  # place, the link before which it goes, what
        for k, stage in enumerate(stages):
            found = self.extracts(stage, k, links, places, end)
            if found is None:
                return
            following = places[k] if k < len(places) else len(self.block)
            moved += [(at, following, s) for at, s in found]
        if any(at in self.instead for at, _, _ in moved):
            return
        self.put(last, links, places, end, moved)

    def begins(self, value: n.Atom, x: n.Var) -> bool:
        """Whether a value is that of x where the chain begins."""
        if value == x:
            return True
        s = self.maker(value, "copy")
        return s is not None and s.args[0] == x

    def is_alone(self, x: n.Var, first: int, end: int, value: n.Atom) -> bool:
        """Whether nothing else reads or changes x from where its value was taken to the end."""
        start = first if value == x or not isinstance(value, n.Var) else self.made[value]
        if any(start <= k < end for k in self.changed.get(x, ())):
            return False
        # What is extracted of it later is looked at for itself.
        others = (k for k in self.read.get(x, ()) if first < k < end)
        return all(value == x and self.extract(k, x) is not None for k in others)

    def extract(self, at: int, of: n.Atom) -> n.Let | None:
        s = self.block[at]
        if not isinstance(s, n.Let) or s.op != "extract" or s.args[0] != of:
            return None
        return s if of not in s.args[1:] else None

    def extracts(
        self, stage: n.Atom, k: int, links: Sequence[n.Let], places: Sequence[int], end: int
    ) -> list[tuple[int, n.Let]] | None:
        """Where components of a stage are taken, after it came to be.

        None where it is used otherwise, or a component cannot be taken before the next stage.
        """
        if not isinstance(stage, n.Var):
            return []
        limit = places[k] if k < len(places) else len(self.block)
        found: list[tuple[int, n.Let]] = []
        for at in self.read.get(stage, ()):
            if (k < len(links) and at == limit) or at == end:
                continue  # the next link, or the assignment
            s = self.extract(at, stage)
            if stage.mutable:  # x itself, before it changes or after the chain
                if not places[0] < at < end:
                    continue
            elif s is None and k == 0:
                continue  # a copy stays one
            if s is None or not self.known(s, min(limit, at)):
                return None
            if k == len(links) and any(end < c <= at for c in self.changed.get(links[-1].dst, ())):
                return None
            found.append((at, s))
        return found

    def known(self, s: n.Let, place: int) -> bool:
        """Whether the indices of an access are there before a place."""
        return all(
            not isinstance(a, n.Var) or (not a.mutable and self.made.get(a, -1) < place)
            for a in s.args[1:]
        )

    def put(
        self, last: n.Set, links: Sequence[n.Let], places: Sequence[int], end: int,
        moved: Sequence[tuple[int, int, n.Let]],
    ) -> None:  # fmt: skip
        x = last.dst
        for at, following, s in moved:
            now = replace(s, args=(x, *s.args[1:]))
            if at < following:
                self.instead[at] = (now,)
            else:
                self.instead[at] = ()
                self.before.setdefault(following, []).append(now)
        for s, at in zip(links, places, strict=True):
            now = replace(s, args=(x, *s.args[1:]))
            self.instead[at] = (now, replace(last, value=s.dst))
        self.instead[end] = ()
