"""Writes kernels as data: their IR, with all functions that they call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from engine.archive.data import (
    AtomData,
    FunctionData,
    KernelData,
    NativeData,
    StatementData,
    UnassignedData,
)
from engine.archive.numbers import texts
from engine.archive.places import FileTable
from engine.archive.types import TypeWriter, plain
from engine.ir import nodes as n
from engine.runtime.plan import Plan

# What kernels consist of as they are lowered: adjoint code has more.
STATEMENTS: dict[str, type[n.Stmt]] = {
    kind.__name__: kind
    for kind in (
        n.Let, n.Set, n.Load, n.Store, n.Atomic, n.Message, n.Call, n.If, n.For, n.While,
        n.Break, n.Continue, n.Return,
    )
}  # fmt: skip


class _Unknown(Exception):
    """Why a kernel cannot be written."""


class CodeWriter:
    """Writes kernels and functions, each once."""

    def __init__(self, files: FileTable, types: TypeWriter) -> None:
        self._files, self._types = files, types
        self.functions: list[FunctionData] = []
        self.kernels: list[KernelData] = []
        self._done: dict[int, int] = {}
        self._plans: dict[int, int] = {}
        self._alive: list[object] = []

    def kernel(self, plan: Plan) -> int:
        """The number of a kernel."""
        found = self._plans.get(id(plan.variants))
        if found is not None:
            return found
        kept = len(self.functions), len(self._alive)
        name, backward = plain(plan.kernel.key), plan.kernel.enable_backward
        try:
            data = KernelData(name, self._function(plan.variants.ir), backward, plan.variants.debug)
        except _Unknown as why:
            del self.functions[kept[0] :]
            self._done = {k: v for k, v in self._done.items() if v < kept[0]}
            data = KernelData(name, -1, backward, why=str(why))
        self._plans[id(plan.variants)] = len(self.kernels)
        self._alive.append(plan.variants)
        self.kernels.append(data)
        return len(self.kernels) - 1

    def _function(self, fn: n.Function | None) -> int:
        if fn is None:
            return -1
        found = self._done.get(id(fn))
        if found is None:
            data = self._written(fn)
            found = self._done[id(fn)] = len(self.functions)
            self.functions.append(data)
            self._alive.append(fn)
        return found

    def _written(self, fn: n.Function) -> FunctionData:
        if fn.derivative_of is not None or fn.adjoints or fn.watch:
            raise _Unknown("it has a form that an archive cannot hold")
        grad, replay = self._function(fn.grad), self._function(fn.replay)
        table = _Atoms(self._types)
        body = self._block(fn.body, table)
        params = tuple(table.of(p) for p in fn.params)
        return FunctionData(
            fn.name, params, tuple(map(self._types.text, fn.results)), tuple(table.data), body,
            self._files.place(fn.span), fn.is_kernel, grad, replay, fn.gradients,
            _native(fn.native), fn.mirrored, self._types.named(fn.arguments),
            tuple(UnassignedData(u.name, u.variables, self._files.place(u.span))
                  for u in fn.unassigned),
        )  # fmt: skip

    def _block(self, block: n.Block, table: _Atoms) -> tuple[StatementData, ...]:
        return tuple(self._statement(s, table) for s in block)

    def _statement(self, s: n.Stmt, table: _Atoms) -> StatementData:
        kind = type(s).__name__
        if kind not in STATEMENTS:
            raise _Unknown(f"it has a statement that an archive cannot hold: {kind}")
        atoms: list[tuple[int, ...]] = []
        absent: list[int] = []
        for k, name in enumerate((*s.DEFINES, *s.READS)):
            value = getattr(s, name)
            if value is None:
                absent.append(k)
                atoms.append(())
            else:
                many = value if isinstance(value, tuple) else (value,)
                atoms.append(tuple(table.of(a) for a in many))
        texts_of = (s.pieces, s.formats) if isinstance(s, n.Message) else ((), ())
        return StatementData(
            kind, self._files.place(s.span), tuple(atoms), tuple(absent),
            tuple(self._block(b, table) for b in n.blocks_of(s)),
            s.op if isinstance(s, n.Let) else getattr(s, "kind", ""),
            *texts_of,
            self._function(s.func) if isinstance(s, n.Call) else -1,
        )  # fmt: skip


class _Atoms:
    """The variables and constants of a function."""

    def __init__(self, types: TypeWriter) -> None:
        self.data: list[AtomData] = []
        self._known: dict[n.Atom, int] = {}
        self._types = types

    def of(self, a: n.Atom) -> int:
        found = self._known.get(a)
        if found is None:
            t = self._types.text(a.type)
            if isinstance(a, n.Var):
                data = AtomData(a.name, t, a.mutable)
            else:
                data = AtomData("", t, numbers=texts(a.value, a.type))
            found = self._known[a] = len(self.data)
            self.data.append(data)
        return found


def _native(x: n.Native | None) -> NativeData | None:
    if x is None:
        return None
    return NativeData(
        x.text, tuple(sorted(x.reads)), tuple(sorted(x.writes)), tuple(sorted(x.updates)),
        x.inputs, tuple(sorted(x.absent)), x.pure,
    )  # fmt: skip


def is_tuple(kind: type[n.Stmt], name: str) -> bool:
    """Whether a field of a statement's class holds a tuple of atoms."""
    return any(f.name == name and "tuple" in str(f.type) for f in fields(kind))  # type: ignore[arg-type]


def fields_of(kind: type[n.Stmt]) -> Sequence[str]:
    """The fields of a statement's class that hold atoms, in order."""
    return (*kind.DEFINES, *kind.READS)
