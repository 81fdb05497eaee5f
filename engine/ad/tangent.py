"""The tangent pass: from a kernel to one that computes its directional derivative (IR to IR).

It works on IR as lowered: control flow, jumps and calls stay as they are. After
each statement stands the statement for the tangents of what it defines; a called
function becomes one with tangents as further parameters and results. Elements of
an array `x` have their tangents in an array `tan_x`; whatever reads, writes or
updates the one does the same to the other, in the same order, so that effects
between threads are differentiated as they happen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.ad import tangent_rules as rules
from engine.ad.silence import silent
from engine.ad.tangent_rules import Maybe
from engine.ad.transpose import transpose
from engine.ad.varied import Activity, by_values, moving_params
from engine.diagnostics import Diagnostic, KernelError
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names
from engine.ir.rewrite import map_stmt, names_in
from engine.lang.types import ArrayType, is_float


def tangent(fn: n.Function, wrt: frozenset[str]) -> n.Function:
    """The Jacobian-vector product of a kernel, computed beside the kernel itself.

    wrt: names of array parameters with float elements whose elements have tangents,
    inputs and outputs alike. The parameters are those of `fn`, then `tan_<name>` for
    each array of `wrt` in parameter order. A store to an array outside of `wrt` loses
    the tangent of what it stores, and reads from it have none. It gives no messages.
    """
    return _Program().function(silent(fn), wrt)


class _Program:
    """The tangent functions made so far: one for each set of parameters that move."""

    def __init__(self) -> None:
        self.activity = Activity()
        self.made: dict[tuple[int, frozenset[str]], n.Function] = {}
        self.transposes: dict[tuple[int, tuple[bool, ...], frozenset[str]], n.Function] = {}

    def transposed(
        self, fn: n.Function, moving: tuple[bool, ...], there: frozenset[str]
    ) -> n.Function:
        key = (id(fn), moving, there)
        if key not in self.transposes:
            self.transposes[key] = transpose(fn, moving, there)
        return self.transposes[key]

    def function(self, fn: n.Function, moving: frozenset[str]) -> n.Function:
        key = (id(fn), moving)
        if key not in self.made:
            self.made[key] = _Tangent(self, fn, moving).function()
        return self.made[key]


class _Tangent:
    """Writes the tangent of one function."""

    def __init__(self, program: _Program, fn: n.Function, moving: frozenset[str]) -> None:
        self.program = program
        self.fn = fn
        self.moving = moving
        self.varied = program.activity.of(fn, moving)
        self.names = Names(names_in(fn))
        # The tangent of each varied variable; of temporaries, None where it is zero after all.
        self.tangents: dict[n.Var, Maybe] = {}
        self.arrays: dict[str, n.Var] = {}
        self.params: list[n.Var] = []
        for p in fn.params:
            if p.name in moving and is_float(p.type):
                tan = n.Var(self.names.fresh(f"tan_{p.name}"), p.type)
                self.params.append(tan)
                if isinstance(p.type, ArrayType):
                    self.arrays[p.name] = tan
                else:
                    self.tangents[p] = tan

    def function(self) -> n.Function:
        moved = (t for t, m in zip(self.fn.results, self.varied.results, strict=True) if m)
        return replace(
            self.fn,
            name=f"{self.fn.name}_tangent",
            params=(*self.fn.params, *self.params),
            results=(*self.fn.results, *moved),
            body=_without_unused(self.block(self.fn.body)),
            grad=None,
            replay=None,
        )

    # ---- tangents of atoms

    def of(self, a: n.Atom) -> Maybe:
        """The tangent of an atom; None is zero."""
        if not isinstance(a, n.Var) or a not in self.varied.vars:
            return None
        if a.mutable and a not in self.tangents:
            self.tangents[a] = n.Var(self.names.fresh(f"tan_{a.name}"), a.type, mutable=True)
        return self.tangents.get(a)

    def or_zero(self, a: n.Atom) -> n.Atom:
        t = self.of(a)
        return rules.zero(a.type) if t is None else t

    def fresh(self, v: n.Var) -> n.Var:
        """A temporary for the tangent of `v`."""
        tan = n.Var(self.names.fresh(f"tan_{v.name}"), v.type)
        self.tangents[v] = tan
        return tan

    # ---- statements

    def block(self, block: n.Block) -> n.Block:
        out: list[n.Stmt] = []
        for s in block:
            b = Builder(self.names, s.span)
            self.stmt(b, s)
            out += b.stmts
        return tuple(out)

    def stmt(self, b: Builder, s: n.Stmt) -> None:
        if isinstance(s, n.Atomic):
            self.atomic(b, s)
        elif isinstance(s, n.Call):
            self.call(b, s)
        elif isinstance(s, (n.Push, n.Pop, n.Reserve, n.JournalWrite, n.JournalRead)):
            raise TypeError(f"{self.fn.name} saves values: only code as lowered has a tangent")
        elif isinstance(s, n.Message):
            pass  # the launch has said it, or will
        elif isinstance(s, n.Return):
            moved = zip(s.values, self.varied.results, strict=False)
            b.add(replace(s, values=(*s.values, *(self.or_zero(a) for a, m in moved if m))))
        else:
            # Nested blocks become their tangents; all else stays as it is.
            b.add(map_stmt(s, lambda a: a, self.block))
            self.after(b, s)

    def after(self, b: Builder, s: n.Stmt) -> None:
        """What follows a statement that stays as it is."""
        if isinstance(s, n.Let) and s.dst in self.varied.vars:
            self.tangents[s.dst] = rules.operation(b, s, [self.of(a) for a in s.args])
        elif isinstance(s, n.Set) and s.dst in self.varied.vars:
            tan = self.of(s.dst)
            assert isinstance(tan, n.Var)
            b.set(tan, self.or_zero(s.value))
        elif isinstance(s, n.Load) and s.dst in self.varied.vars:
            b.add(n.Load(self.fresh(s.dst), self.arrays[s.array.name], s.index, s.path, s.span))
        elif isinstance(s, n.Store) and s.array.name in self.arrays:
            tan = self.arrays[s.array.name]
            b.add(n.Store(tan, s.index, self.or_zero(s.value), s.path, s.span))

    def atomic(self, b: Builder, s: n.Atomic) -> None:
        tan = self.arrays.get(s.array.name)
        if tan is None:
            b.add(s)
            return
        moved = self.of(s.value)
        if s.kind in ("add", "sub"):
            b.add(s)
            before = self.fresh(s.dst) if s.dst is not None else None
            if moved is not None:
                b.add(n.Atomic(before, s.kind, tan, s.index, moved, s.path, s.span))
            elif before is not None:
                b.add(n.Load(before, tan, s.index, s.path, s.span))
            return
        if s.dst is not None:
            b.add(n.Load(self.fresh(s.dst), tan, s.index, s.path, s.span))
        else:
            s = replace(s, dst=b.temp(s.value.type, "before"))
        b.add(s)
        if s.kind in ("exch", "cas"):
            rules.exchange(b, s, tan, moved)
        else:
            rules.extremum(b, s, tan, moved)

    def call(self, b: Builder, s: n.Call) -> None:
        tangents = [self.of(a) for a in s.args]
        if by_values(s, self.moving):
            b.add(s)
            for d, t in zip(s.dsts, rules.custom(b, s, tangents), strict=True):
                self.tangents[d] = t
            return
        if s.func.grad is not None:
            self.by_transpose(b, s, tangents)
            return
        moving = moving_params(s, self.varied.vars, self.moving)
        # What may move by the variables' types, but not here, moves by zero.
        if not moving:
            b.add(s)
            return
        if s.func.native is not None:
            raise _no_tangent(s)
        func = self.program.function(s.func, moving)
        extra = [
            self.arrays[a.name] if isinstance(a.type, ArrayType) else self.or_zero(a)
            for p, a in zip(s.func.params, s.args, strict=True)
            if p.name in moving and isinstance(a, n.Var)
        ]
        moves = self.program.activity.of(s.func, moving).results
        moved = [self.fresh(d) for d, m in zip(s.dsts, moves, strict=False) if m]
        b.add(replace(s, dsts=(*s.dsts, *moved), func=func, args=(*s.args, *extra)))

    def by_transpose(self, b: Builder, s: n.Call, tangents: Sequence[Maybe]) -> None:
        """A function whose gradient, of arrays that move, is the user's own."""
        grad = s.func.grad
        assert grad is not None
        if grad.native is not None:
            raise _no_tangent(s)
        given = dict(zip((p.name for p in s.func.params), s.args, strict=True))
        there = {
            k: self.arrays[a.name]
            for k in grad.gradients if isinstance(a := given[k], n.Var) and a.name in self.arrays
        }  # fmt: skip
        floats = [t for p, t in zip(s.func.params, tangents, strict=True) if rules.is_value(p)]
        func = self.program.transposed(
            s.func, tuple(t is not None for t in floats), frozenset(there)
        )
        moved = tuple(self.fresh(d) for d in s.dsts if is_float(d.type))
        if len(s.dsts) < len(s.func.results):  # a call whose results nothing uses
            moved = tuple(b.temp(t, "moved") for t in func.results)
        b.add(s)
        args = (*s.args, *(t for t in floats if t is not None), *there.values())
        b.add(n.Call(moved, func, args, b.span))


def _no_tangent(s: n.Call) -> KernelError:
    adjoint = "its `adj_snippet` is of arrays" if s.func.grad else "it has no `adj_snippet`"
    return KernelError(
        Diagnostic(
            "E110",
            f"native function `{s.func.name}` has no derivative in forward mode: {adjoint}",
            s.span,
            "write the function in the kernel language, or use reverse mode",
        )
    )


def _without_unused(block: n.Block) -> n.Block:
    """The block without variables that nothing reads. Rules emit more than is needed."""
    used: set[n.Var] = set()
    sources: dict[n.Var, list[Sequence[n.Atom]]] = {}
    for s in n.walk(block):
        reads = n.uses_of(s)
        if isinstance(s, (n.Let, n.Set, n.Load)):
            sources.setdefault(s.dst, []).append(reads)
        else:
            used.update(a for a in reads if isinstance(a, n.Var))
    todo = list(used)
    while todo:
        for atoms in sources.get(todo.pop(), ()):
            for a in atoms:
                if isinstance(a, n.Var) and a not in used:
                    used.add(a)
                    todo.append(a)

    def keep(block: n.Block) -> n.Block:
        return tuple(
            map_stmt(s, lambda a: a, keep)
            for s in block
            if not isinstance(s, (n.Let, n.Set, n.Load)) or s.dst in used
        )

    return keep(block)
