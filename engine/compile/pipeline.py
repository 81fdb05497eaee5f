"""The recipe: which passes turn a kernel's IR into each thing that can be launched.

forward   the kernel as written
recorded  prepare -> record          (a launch on a tape whose adjoint needs a journal)
adjoint   prepare -> reverse
          again with checkpoints     (the same in less memory, where a loop saves too much)
tangent   tangent                    (forward mode)
accesses  prepare -> accesses        (the kernel as written, which says what it touches)
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from engine import ad
from engine.ad.cleanup import float_params
from engine.compile.backend import Backend, Entry
from engine.compile.threads import Threads
from engine.diagnostics import CompilerError, Diagnostic, EngineError
from engine.ir.messages import messages_of
from engine.ir.nodes import Function, Store
from engine.ir.verify import checked
from engine.lang.types import ArrayType
from engine.locks import Lock
from engine.logger import log_warning

Form = Literal["forward", "recorded", "adjoint", "checkpointed", "tangent", "accesses"]
Names = frozenset[str]
Key = tuple[Names, Names]
NONE: Names = frozenset()
# Operations of a kernel with its calls expanded: from here its derivative takes minutes; the most.
LONG, MOST = 30_000, 200_000

# One lock for all compilation: passes are pure, so this only keeps work from being done twice.
_lock = Lock()


class Variants:
    """Everything that can be compiled from one kernel, each made when first needed.

    wrt: names of array parameters that have a gradient. journaled: names of array
    parameters whose reads the backward pass cannot repeat (see `journaled`).
    """

    def __init__(self, ir: Function) -> None:
        ir = checked(ad.derivatives(checked(ir)))
        self.ir = ir
        self.read = ad.read_params(ir)
        self.written = ad.written_params(ir)
        self._read_again = self.read | ad.replay_read_params(ir)
        # What native replays write in the backward pass; of that, what it reads again.
        self.rewritten = ad.replay_written_params(ir)
        self._replayed = ad.replayed_params(ir)
        self.differentiable = frozenset(p.name for p in float_params(ir))
        self._arrays = frozenset(p.name for p in ir.params if isinstance(p.type, ArrayType))
        self._prepared: Function | None = None
        self._reversible: Function | None = None
        self._adjoints: dict[Key, ad.Adjoint] = {}
        self._tangents: dict[frozenset[str], Function] = {}
        self._accesses: ad.Accesses | Literal[False] | None = False
        self._clashes: dict[tuple[tuple[int, ...], frozenset[str]], list[Store]] = {}
        self._stops: dict[frozenset[str], tuple[Function, ...]] = {}
        self._late: dict[Key, tuple[ad.Late, ...]] = {}
        self._entries: dict[tuple[Backend, Form, Key], Entry] = {}
        self._threads: dict[tuple[Form, Names, Names], Threads] = {}
        # What a user calls it; whether all launches are watched for accesses outside of arrays.
        self.name = ir.name
        self.debug = False
        # Kernels that others make of this one, by keys of theirs: they live as long as it does.
        self.derived: dict[Hashable, Variants | None] = {}

    @functools.cached_property
    def can_lift(self) -> bool:
        """Whether the kernel has a float64 form."""
        return ad.can_lift(self.ir)

    @functools.cached_property
    def threads(self) -> Threads:
        """What the threads of its launches do to each other."""
        return Threads(self.ir)

    @property
    def prepared(self) -> Function:
        """The kernel without calls and jumps, from which AD starts."""
        with _lock:
            if self._prepared is None:
                _check_size(self.ir)
                self._prepared = checked(ad.prepare(self.ir))
            return self._prepared

    @property
    def reversible(self) -> Function:
        """The same where functions that a large kernel calls often stay calls: see `ad.kept`."""
        with _lock:
            if self._reversible is None:
                _check_size(self.ir)
                marked = ad.keep(self.ir)
                same = marked is self.ir
                self._reversible = self.prepared if same else checked(ad.prepare(marked))
            return self._reversible

    def stops(self, wrt: frozenset[str]) -> tuple[Function, ...]:
        """Native functions at which gradients of `wrt` end, for want of an adjoint."""
        found = self._stops.get(wrt)
        if found is None:
            with _lock:
                found = self._stops[wrt] = ad.stops(self.reversible, wrt)
        return found

    def late(self, wrt: frozenset[str], shared: frozenset[str]) -> tuple[ad.Late, ...]:
        """Gradients of the user's own that read what the kernel has overwritten by then."""
        found = self._late.get((wrt, shared))
        if found is None:
            with _lock:
                found = self._late[wrt, shared] = ad.late(self.reversible, wrt, shared)
        return found

    @functools.cached_property
    def flows(self) -> Mapping[tuple[str, str], ad.Flow] | None:
        """Which arrays depend on which (see `ad.cuts`); None for a kernel that is too large."""
        try:
            return ad.flows(self.prepared)
        except EngineError:
            return None

    @functools.cached_property
    def reuse(self) -> ad.Reuse:
        """Which arrays a thread reads and stores to, and in which order."""
        return ad.reuse(self.prepared)

    def journaled(self, aliased: frozenset[str] = frozenset()) -> frozenset[str]:
        """Array parameters whose reads must be journaled when recording.

        `aliased`: parameters that are read and share memory with a written one.
        """
        read = self._read_again
        return (read & self.written - self._replayed) | (aliased & read)

    def clashes(self, dim: tuple[int, ...], arrays: frozenset[str]) -> list[Store]:
        """Stores by which threads certainly overwrite each other; see `ad.threads.certain`."""
        key = (tuple(min(n, 2) for n in dim), arrays)
        if key not in self._clashes:
            self._clashes[key] = ad.clashes(self.ir, dim, arrays)
        return self._clashes[key]

    def adjoint_ir(self, wrt: frozenset[str], journaled: frozenset[str]) -> ad.Adjoint:
        with _lock:
            key = (wrt, journaled)
            if key not in self._adjoints:
                out = ad.reverse(self.reversible, wrt, journaled)
                checked(out.fn)
                self._adjoints[key] = out
            return self._adjoints[key]

    def expanded_adjoint(self, wrt: frozenset[str], journaled: frozenset[str]) -> ad.Adjoint:
        """The adjoint with all calls expanded, to be looked at or differentiated."""
        if self.reversible is self.prepared:
            return self.adjoint_ir(wrt, journaled)
        return ad.reverse(self.prepared, wrt, journaled)

    def checkpointed_ir(self, wrt: frozenset[str], journaled: frozenset[str]) -> Function:
        """The adjoint that saves segments of loops. It reads the same journal."""
        out = ad.reverse(self.reversible, wrt, journaled, checkpoint=True)
        assert out.sites == self.adjoint_ir(wrt, journaled).sites
        return checked(out.fn)

    def recorded_ir(self, wrt: frozenset[str], journaled: frozenset[str]) -> Function | None:
        """The forward kernel that writes the journal; None where the adjoint needs none."""
        sites = self.adjoint_ir(wrt, journaled).sites
        return checked(ad.record(self.reversible, sites)) if sites else None

    def needs_journal(self, wrt: frozenset[str], journaled: frozenset[str]) -> bool:
        """Whether the adjoint reads what a recorded run of the kernel has to save."""
        return bool(self.adjoint_ir(wrt, journaled).sites)

    def adjoint_reads(self, wrt: frozenset[str], journaled: frozenset[str]) -> frozenset[str]:
        """Array parameters whose contents the adjoint reads; what it is linear in it does not."""
        return ad.read_params(self.adjoint_ir(wrt, journaled).fn) & self._arrays

    def read_again(self, journaled: frozenset[str]) -> frozenset[str]:
        """Array parameters whose contents some adjoint may read."""
        return self._read_again - journaled

    def tangent_ir(self, wrt: frozenset[str]) -> Function:
        """The kernel with tangents of the arrays `wrt`; see `engine.ad.tangent`."""
        with _lock:
            if wrt not in self._tangents:
                self._tangents[wrt] = checked(ad.tangent(self.ir, wrt))
            return self._tangents[wrt]

    def accesses_ir(self) -> ad.Accesses | None:
        """The kernel that records its accesses, if that can be; see `engine.ad.accesses`."""
        with _lock:
            if self._accesses is False:
                found = ad.accesses(self.prepared)
                if found is not None:
                    checked(found.fn)
                self._accesses = found
            return self._accesses

    def function(self, form: Form, wrt: frozenset[str], journaled: frozenset[str]) -> Function:
        """The IR that is compiled for a form."""
        if form == "adjoint":
            return self.adjoint_ir(wrt, journaled).fn
        if form == "checkpointed":
            return self.checkpointed_ir(wrt, journaled)
        if form == "tangent":
            return self.tangent_ir(wrt)
        if form == "accesses":
            found = self.accesses_ir()
            assert found is not None
            return found.fn
        if form == "recorded":
            return self.recorded_ir(wrt, journaled) or self.ir
        return self.ir

    def threads_of(self, form: Form, wrt: Names, journaled: Names) -> Threads:
        """What the threads of a form do to each other."""
        if form == "forward":
            return self.threads
        key = (form, wrt, journaled)
        with _lock:
            if key not in self._threads:
                fn = self.function(form, wrt, journaled)
                if fn is self.ir:
                    self._threads[key] = self.threads
                    return self.threads
                adjoint = functools.partial(self.threads_of, "adjoint", wrt, journaled)
                self._threads[key] = Threads(fn, adjoint if form == "recorded" else None)
            return self._threads[key]

    def bound(self, form: Form) -> bytes:
        """Arguments of a form that its callers do not know of, and that follow theirs."""
        del form
        return b""

    def entry(
        self, backend: Backend, form: Form, wrt: Names = NONE, journaled: Names = NONE
    ) -> Entry:
        """A form compiled for a kind of device.

        `tangent` takes the kernel's arguments, then the tangents of `wrt` in parameter order;
        `adjoint` and `checkpointed` the gradients of `wrt`.
        """
        key = _key(form, wrt, journaled)
        found = self._entries.get((backend, form, key))
        if found is None:
            prefetch([(backend, self, form, wrt, journaled)])
            found = self._entries[backend, form, key]
        return found


# Something to be compiled: for which devices, the kernel, and what of it.
Request = tuple[Backend, Variants, Form, Names, Names]


def prefetch(requests: Sequence[Request]) -> None:
    """Compiles everything that is asked for and not there yet, together for each backend."""
    with _lock:
        todo: dict[Backend, dict[tuple[int, Form, Key], tuple[Variants, Function]]] = {}
        for backend, v, form, wrt, journaled in requests:
            key = _key(form, wrt, journaled)
            if (backend, form, key) not in v._entries:
                made = (v, v.function(form, wrt, journaled))
                todo.setdefault(backend, {})[id(v), form, key] = made
        for backend, group in todo.items():
            entries = backend.compile([f for _, f in group.values()])
            for (_, form, key), (v, f), e in zip(group, group.values(), entries, strict=True):
                # Kernels of the same text share an entry; where they stand differs.
                threads = v.threads_of(form, *key)
                found = replace(e, messages=messages_of(f), bound=v.bound(form), threads=threads)
                v._entries[backend, form, key] = found


def _check_size(ir: Function) -> None:
    """Calls double with each level of functions that call two: tells of what takes minutes.

    Raises CompilerError (E305) where it would take hours.
    """
    size = ad.inlined_size(ir)
    if size < LONG:
        return
    problem = f"the derivative of kernel {ir.name!r} is {'too ' * (size > MOST)}large"
    note = f"it has {size:,} operations where its calls are expanded"
    help = "give a function that it calls a gradient of its own (`func_grad`), or call it in a loop"
    if size > MOST:
        limit = f"{note}; {MOST:,} is the most"
        raise CompilerError(Diagnostic("E305", problem, ir.span, help, (limit,)))
    log_warning(f"{problem}: {note}, and takes minutes to compile; {help}")


def _key(form: Form, wrt: Names, journaled: Names) -> Key:
    return (NONE, NONE) if form == "forward" else (wrt, journaled)
