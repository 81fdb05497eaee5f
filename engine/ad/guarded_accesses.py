"""The guard pass: checks accesses that a displaced float could move out of bounds.

A difference moves inputs a little, and an index computed from them may then leave its
array, though it is inside at the values of the launch. In the guarded function such a
read gives NaN, and such a write leaves NaN in the first element instead, so that the
difference is seen to have no value there. So it is with components of vectors and matrices, all of
which are NaN after such a write. Accesses that no float decides stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.rewrite import Rewriter, names_in, rewrite
from engine.ir.sites import computed, indices, lengths
from engine.ir.touched import written_params
from engine.lang.types import INT32, INT64, ArrayType, is_float

Access = n.Load | n.Store | n.Atomic


class _Loose:
    """Which variables depend on a float that may be displaced."""

    def __init__(self, fn: n.Function) -> None:
        self.written = written_params(fn)
        # What a function is called with is not known here.
        self.vars: set[n.Var] = set() if fn.is_kernel else set(fn.params)
        while True:
            before = len(self.vars)
            self.guarded: set[int] = set()
            # Nor is where: perhaps where a float decided that.
            self.block(fn.body, not fn.is_kernel)
            if len(self.vars) == before:
                return

    def any(self, atoms: Iterable[n.Atom]) -> bool:
        return any(a in self.vars for a in atoms)

    def mark(self, dst: n.Var, loose: bool) -> None:
        if loose:
            self.vars.add(dst)

    def block(self, block: n.Block, loose: bool) -> bool:
        """Visits statements; loose: whether they run is decided by a float. Gives whether
        what follows the block is.
        """
        for s in block:
            loose = self.stmt(s, loose) or loose
        return loose

    def stmt(self, s: n.Stmt, loose: bool) -> bool:
        if s.LEAVES:
            return loose
        if isinstance(s, n.If):
            inside = loose or self.any((s.cond,))
            after = [self.block(b, inside) and _leaves(b) for b in (s.then, s.orelse)]
            return any(after)
        if isinstance(s, (n.For, n.While)):
            return self.loop(s, loose)
        if isinstance(s, (n.Load, n.Store, n.Atomic)):
            index = self.any((*s.index, *s.path))
            if index or loose:
                self.guarded.add(id(s))
            dst = s.dst if not isinstance(s, n.Store) else None
            if dst is not None:
                changing = isinstance(s, n.Load) and s.array.name in self.written
                self.mark(dst, is_float(s.array.type) or changing or index or loose)
            return False
        if isinstance(s, n.Let) and computed(index_of := indices(s)):
            if loose or self.any(index_of):
                self.guarded.add(id(s))
        for dst in n.defs_of(s):
            self.mark(dst, isinstance(s, n.Call) or loose or self.any(n.uses_of(s)))
        return False

    def loop(self, s: n.For | n.While, loose: bool) -> bool:
        if isinstance(s, n.For):
            inside = loose or self.any((s.start, s.stop, s.step))
            self.mark(s.var, inside)
        else:
            inside = loose or self.any((s.cond,))
            self.block(s.test, inside)
            inside = inside or self.any((s.cond,))
        left = self.block(s.body, inside) and _leaves(s.body)
        if left and not inside:  # where a float ends it, it decides whether there is a next turn
            if isinstance(s, n.While):
                self.block(s.test, True)
            self.block(s.body, True)
        return left


def _leaves(block: n.Block) -> bool:
    return any(s.LEAVES for s in n.walk(block))


class _Guard(Rewriter):
    def change(self, fn: n.Function) -> n.Function:
        names, marks = Names(names_in(fn)), _Loose(fn).guarded

        def step(s: n.Stmt) -> n.Stmt | Iterable[n.Stmt]:
            if isinstance(s, n.Call):
                return self.call(s)
            if isinstance(s, (n.Load, n.Store, n.Atomic)) and id(s) in marks:
                return _guarded(s, names)
            if isinstance(s, n.Let) and id(s) in marks:
                return _guarded_component(s, names)
            return s

        return replace(
            fn,
            body=rewrite(fn.body, step),
            grad=None if fn.grad is None else self.function(fn.grad),
            replay=None if fn.replay is None else self.function(fn.replay),
            native=fn.native and replace(fn.native, guarded=True),
        )


def _guarded(s: Access, names: Names) -> list[n.Stmt]:
    b = Builder(names, s.span)
    inside = _inside(b, s.array, s.index)
    if s.path:
        t = s.array.type
        assert isinstance(t, ArrayType)
        within = _below(b, s.path, lengths(t.element, s.path))
        inside = inside if within is None else b.op("land", inside, within)
    then, orelse = b.child(), b.child()
    dst = None if isinstance(s, n.Store) else s.dst
    held = None
    if dst is not None:
        held = b.variable(dst.type, dst.name)
        got = n.Var(names.fresh(dst.name), dst.type)
        assert not isinstance(s, n.Store)
        then.add(replace(s, dst=got))
        then.set(held, got)
        orelse.set(held, _poison(dst.type))
    else:
        then.add(s)
    if not isinstance(s, n.Load) and is_float(s.array.type):
        _spoil(orelse, s.array)
    b.add(n.If(inside, then.block(), orelse.block(), s.span))
    if dst is not None and held is not None:
        b.add(n.Let(dst, "copy", (held,), s.span))
    return b.stmts


def _guarded_component(s: n.Let, names: Names) -> list[n.Stmt]:
    b = Builder(names, s.span)
    index, whole = indices(s), s.args[0]
    inside = _below(b, index, lengths(whole.type, index))
    assert inside is not None  # some of it is computed
    then, orelse = b.child(), b.child()
    held = b.variable(s.dst.type, s.dst.name)
    got = n.Var(names.fresh(s.dst.name), s.dst.type)
    then.add(replace(s, dst=got))
    then.set(held, got)
    reads = s.op in ("extract", "extract_row")
    orelse.set(held, _poison(s.dst.type) if reads or is_float(s.dst.type) else whole)
    b.add(n.If(inside, then.block(), orelse.block(), s.span))
    b.add(n.Let(s.dst, "copy", (held,), s.span))
    return b.stmts


def _below(b: Builder, index: tuple[n.Atom, ...], sizes: tuple[int, ...]) -> n.Var | None:
    """Whether computed indices are at least zero and below some sizes; None without any."""
    out: n.Var | None = None
    for k, size in zip(index, sizes, strict=True):
        if isinstance(k, n.Var):
            fits = _fits(b, k, const(size, INT32))
            out = fits if out is None else b.op("land", out, fits)
    return out


def _fits(b: Builder, k: n.Atom, size: n.Atom) -> n.Var:
    """Whether an index is at least zero and below a size, of 32 bits, whatever its own type is."""
    zero: n.Atom = const(0, INT32)
    if k.type != INT32:
        k, size, zero = (b.op("cast", x, result=INT64) for x in (k, size, zero))
    return b.op("land", b.op("ge", k, zero), b.op("lt", k, size))


def _inside(b: Builder, array: n.Var, index: tuple[n.Atom, ...]) -> n.Var:
    out: n.Var | None = None
    for d, k in enumerate(index):
        fits = _fits(b, k, b.op("shape", array, n.Const(d, INT32)))
        out = fits if out is None else b.op("land", out, fits)
    assert out is not None
    return out


def _poison(t: object) -> n.Const:
    assert not isinstance(t, ArrayType)
    return const(float("nan") if is_float(t) else 0, t)  # type: ignore[arg-type]


def _spoil(b: Builder, array: n.Var) -> None:
    t = array.type
    assert isinstance(t, ArrayType)
    first = tuple(n.Const(0, INT32) for _ in range(t.ndim))
    there = _inside(b, array, first)
    inner = b.child()
    inner.add(n.Store(array, first, _poison(t.element), (), b.span))
    b.add(n.If(there, inner.block(), (), b.span))


def guard_accesses(fn: n.Function) -> n.Function:
    """The function with checked accesses, and the functions that it calls."""
    return _Guard().function(fn)
