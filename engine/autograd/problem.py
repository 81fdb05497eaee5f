"""One recorded launch as a function to be evaluated and differentiated, on copies.

Nothing here touches a user's array: a Problem owns its memory. It runs in two
precisions, the launch's own and lifted to float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine import ad
from engine.compile.backend import Journal
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.ir.nodes import Block, Call, Function, Stmt, walk
from engine.ir.rewrite import map_stmt
from engine.lang.types import (
    ArrayType,
    ScalarType,
    is_float,
    scalar_of,
)
from engine.runtime.errors import KernelStopped
from engine.runtime.execute import Form, Threads, run
from engine.runtime.pack import pack_arguments

Array = NDArray[Any]
Name = str


class LaunchFailed(Exception):
    """A kernel reported an error (out of memory, mostly), which ends its check."""


@dataclass(frozen=True)
class Argument:
    """One kernel argument at record time.

    value: for arrays the contents (shape + component shape), else a scalar or a
    component array. requires_grad: the array takes part in differentiation.
    alias: the name of an earlier argument that is the same memory, or empty.
    """

    name: str
    value: Any
    requires_grad: bool = False
    alias: str = ""


class Precision:
    """The launch in one precision: memory, forward evaluation, adjoint products."""

    def __init__(self, variants: Variants, args: Sequence[Argument], dim: Sequence[int]) -> None:
        self.variants = variants
        self.params = variants.ir.params
        self.dim = tuple(dim)
        self.threads = int(np.prod(self.dim)) if self.dim else 1
        self.initial: dict[Name, Array] = {}
        self.memory: dict[Name, Array] = {}
        self.owner: dict[Name, Name] = {}  # parameter -> the parameter that owns its memory
        self.values: list[Any] = []  # scalars, vectors and matrices as given, None for arrays
        wrt = set()
        for p, a in zip(self.params, args, strict=True):
            self.values.append(None if isinstance(p.type, ArrayType) else a.value)
            if isinstance(p.type, ArrayType):
                self.owner[p.name] = a.alias or p.name
                if not a.alias:
                    data = np.ascontiguousarray(a.value, dtype=scalar_of(p.type).numpy)
                    shape = data.shape if data.ndim else (0,) * p.type.ndim
                    self.initial[p.name] = data.reshape(shape)
                    self.memory[p.name] = self.initial[p.name].copy()
                if a.requires_grad and is_float(p.type):
                    wrt.add(p.name)
        self.wrt = frozenset(wrt)
        aliased = {a.alias for a in args if a.alias} | {a.name for a in args if a.alias}
        self.journaled = variants.journaled(frozenset(aliased))
        self.grads = {
            name: np.zeros_like(self.memory[name])
            for name in self.memory
            if any(self.owner[w] == name for w in self.wrt)
        }
        self.changed = sorted({self.owner[w] for w in variants.written})
        self.forward_args = pack_arguments(
            [p.type for p in self.params],
            [self.memory[self.owner[p.name]] if p.name in self.owner else v
             for p, v in zip(self.params, self.values, strict=True)],
        )  # fmt: skip
        self.adjoint_args: bytes | None = None
        self.tangent_args: bytes | None = None
        # What the last recorded run of all threads left; False where memory has changed since.
        self._recorded: Journal | Literal[False] | None = False

    def close(self) -> None:
        """Gives the journal's memory back."""
        self._recorded = False

    def run(
        self, form: Form, args: bytes, wrt: frozenset[Name] = frozenset(),
        threads: Threads | None = None, journal: Journal | None = None,
        variants: Variants | None = None,
    ) -> Journal | None:  # fmt: skip
        """Runs a form of the launch, or of other `variants` of its kernel. Gives its journal."""
        # Messages are dropped: the launch itself has printed them.
        try:
            return run(
                variants or self.variants, form, self.dim, args, wrt=wrt, journaled=self.journaled,
                journal=journal, journal_limit=0, threads=threads, quiet=True,
            ).journal  # fmt: skip
        except KernelStopped as stopped:
            raise LaunchFailed(stopped.reason) from None

    def restore(self) -> None:
        """Puts the contents at record time back into what the launch changes."""
        for name in self.changed:
            np.copyto(self.memory[name], self.initial[name])

    def refresh(self) -> None:
        """Takes over what was changed in `initial`."""
        for name, x in self.initial.items():
            np.copyto(self.memory[name], x)
        self._recorded = False

    def forward(self) -> dict[Name, Array]:
        """Runs the launch. Returns its live memory: copy what must last."""
        self.restore()
        self.forward_again()
        return self.memory

    def forward_again(self) -> None:
        """Runs the launch on the memory as it is."""
        self._recorded = False
        self.run("forward", self.forward_args)

    def vjp(self, seeds: Mapping[Name, Array], threads: Threads | None = None) -> dict[Name, Array]:
        """J' w for cotangents by output name. Returns live gradient arrays by owner name.

        threads: those that run, begin and end of their linear indices; all for None.
        """
        journal = self._recorded
        if journal is False or threads is not None:
            self.restore()
            journal = self.run("recorded", self.forward_args, self.wrt, threads)
            self._recorded = journal if threads is None else False
        if self.adjoint_args is None:
            moving = [p for p in self.params if p.name in self.wrt]
            self.adjoint_args = self.forward_args + pack_arguments(
                [p.type for p in moving], [self.grads[self.owner[p.name]] for p in moving]
            )
        for g in self.grads.values():
            g.fill(0)
        for name, w in seeds.items():
            self.grads[name][...] = w
        # What native replays write is put back, as after a backward pass.
        kept = {self.owner[p]: self.memory[self.owner[p]].copy() for p in self.variants.rewritten}
        self.run("adjoint", self.adjoint_args, self.wrt, threads, journal)
        for name, before in kept.items():
            np.copyto(self.memory[name], before)
        return self.grads

    @property
    def unwritten(self) -> bool:
        """Whether no derivative that the kernel uses is written by hand."""
        native = any(f.native is not None for f in called(self.variants.ir))
        return not native and plain(self.variants) is self.variants

    def jvp(self, seeds: Mapping[Name, Array]) -> dict[Name, Array]:
        """J v for directions by input name, in live arrays by owner name.

        The kernel's code itself is differentiated, not what its user says of it. Raises
        LaunchFailed where it has no forward mode.
        """
        if any(f.native is not None for f in called(self.variants.ir)):
            raise LaunchFailed("it has native functions")
        if self.tangent_args is None:
            arrays = [p for p in self.params if isinstance(p.type, ArrayType) and is_float(p.type)]
            self.moving = frozenset(p.name for p in arrays)
            self.tangents = {
                name: np.zeros_like(self.memory[name])
                for name in self.memory
                if any(self.owner[p.name] == name for p in arrays)
            }
            self.tangent_args = self.forward_args + pack_arguments(
                [p.type for p in arrays], [self.tangents[self.owner[p.name]] for p in arrays]
            )
        variants = plain(self.variants)
        try:
            variants.tangent_ir(self.moving)
        except (TypeError, EngineError) as why:
            raise LaunchFailed(f"it has no forward mode: {why}") from None
        self.restore()
        self._recorded = False
        for t in self.tangents.values():
            t.fill(0)
        for name, v in seeds.items():
            self.tangents[name][...] = v
        self.run("tangent", self.tangent_args, self.moving, variants=variants)
        return self.tangents


class Problem:
    """A launch in its own precision (`own`) and in float64 (`exact`), and its variables.

    Native functions of narrower floats have no float64 form: `exact` is as `own` then, and
    `epsilon` is the relative rounding of its values (0 for float64, which needs no mention).
    inputs: owners of float arrays that the launch reads and that require a gradient.
    outputs: owners of those that it writes.
    """

    def __init__(
        self, variants: Variants, lifted: Variants, args: Sequence[Argument], dim: Sequence[int]
    ) -> None:
        self.own = Precision(variants, args, dim)
        self.exact = Precision(lifted, args, dim)
        self.epsilon = 0.0 if variants.can_lift else _coarsest(variants)
        owner, wrt = self.own.owner, self.own.wrt
        self.inputs = _unique(owner[p.name] for p in self.own.params if p.name in wrt
                              and p.name in variants.read)  # fmt: skip
        self.outputs = _unique(owner[p.name] for p in self.own.params if p.name in wrt
                               and p.name in variants.written)  # fmt: skip

        # Owners of all float arrays that the launch reads, with a gradient or not.
        self.readable = _unique(owner[p.name] for p in self.own.params if p.name in variants.read
                                and isinstance(p.type, ArrayType) and is_float(p.type))  # fmt: skip

    def close(self) -> None:
        self.own.close()
        self.exact.close()

    def size(self, name: Name) -> int:
        """Scalars in an array variable."""
        return int(self.exact.initial[name].size)


def _unique(names: Any) -> list[Name]:
    return list(dict.fromkeys(names))


def _coarsest(variants: Variants) -> float:
    """The relative rounding of the narrowest floats among a kernel's parameters."""
    floats = [scalar_of(p.type).numpy for p in variants.ir.params if is_float(p.type)]
    return max((float(np.finfo(t).eps) for t in floats), default=0.0)


_lifted: dict[int, tuple[Variants, Variants]] = {}


def lifted(variants: Variants) -> Variants:
    """The float64 form of a kernel's variants, with guarded accesses; made once.

    A kernel that has none (see `ad.can_lift`) is guarded only.
    """
    found = _lifted.get(id(variants))
    if found is None or found[0] is not variants:
        ir = ad.lift(variants.ir) if variants.can_lift else variants.ir
        found = (variants, Variants(ad.guard(ir)))
        _lifted[id(variants)] = found
    return found[1]


_plain: dict[int, tuple[Variants, Variants]] = {}


def plain(variants: Variants) -> Variants:
    """The kernel without derivatives written by hand; itself where it has none. Made once."""
    found = _plain.get(id(variants))
    if found is None or found[0] is not variants:
        without = without_custom(variants.ir, lambda f: True)
        found = (variants, variants if without is variants.ir else Variants(without))
        _plain[id(variants)] = found
    return found[1]


def called(fn: Function) -> list[Function]:
    """All functions that a kernel calls, and those that these do."""
    found: dict[int, Function] = {}
    todo = [fn]
    while todo:
        for s in walk(todo.pop().body):
            if isinstance(s, Call) and id(s.func) not in found:
                found[id(s.func)] = s.func
                todo.append(s.func)
    return list(found.values())


def without_custom(fn: Function, which: Callable[[Function], bool]) -> Function:
    """The function, and those that it calls, without the derivatives that some were given."""

    def strip(f: Function) -> Function:
        given = f.grad is not None or f.replay is not None
        return replace(f, grad=None, replay=None) if given and which(f) else f

    return with_functions(fn, strip)


def with_functions(
    fn: Function, change: Callable[[Function], Function], done: dict[int, Function] | None = None
) -> Function:
    """The function with `change` applied to it and to all functions that it calls."""
    done = {} if done is None else done
    if id(fn) not in done:
        calls = {id(s.func): s.func for s in walk(fn.body) if isinstance(s, Call)}
        inner = {k: with_functions(f, change, done) for k, f in calls.items()}
        out = change(fn)
        if any(inner[k] is not f for k, f in calls.items()):
            out = replace(out, body=_recalled(fn.body, inner))
        done[id(fn)] = out
    return done[id(fn)]


def _recalled(block: Block, inner: Mapping[int, Function]) -> Block:
    def one(s: Stmt) -> Stmt:
        s = map_stmt(s, lambda a: a, lambda b: _recalled(b, inner))
        return replace(s, func=inner[id(s.func)]) if isinstance(s, Call) else s

    return tuple(one(s) for s in block)


def scalar_type(t: ArrayType) -> ScalarType:
    return scalar_of(t)
