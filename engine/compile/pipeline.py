"""The pipeline: the passes that turn a kernel's IR into each launchable form (`FORMS`).

recorded  prepare -> record
adjoint   prepare -> reverse, and again with checkpoints
tangent   tangent
accesses  prepare -> accesses
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar

import engine.ad as ad  # not `from engine`, which would ask the engine for all its names
from engine.cached import cached_property
from engine.compile.backend import Backend, Entry, configured
from engine.compile.facts import facts_of
from engine.compile.forms import FORMS, Form, Names
from engine.compile.remembered import Answers, Damaged, Remembered, form_of
from engine.compile.remembered import Form as Kept
from engine.compile.threads import Threads
from engine.diagnostics import CompilerError, Diagnostic, EngineError
from engine.lang.types import ArrayType
from engine.locks import Lock
from engine.logger import log_warning

if TYPE_CHECKING:
    from engine.ir.nodes import Function, Store

Key = tuple[Names, Names]
NONE: Names = frozenset()
Asked = TypeVar("Asked", bound=Hashable)
Found = TypeVar("Found")
# Operations of a kernel with its calls expanded: from here its derivative takes minutes; the most.
LONG, MOST = 30_000, 200_000

# One lock for all compilation: passes are pure, so this only keeps work from being done twice.
_lock = Lock()


class Variants:
    """Everything that can be compiled from one kernel, each made when first needed.

    wrt: names of array parameters that have a gradient. journaled: names of array
    parameters whose reads the backward pass cannot repeat (see `journaled`).

    ir: as lowered, or what an earlier process left of it.
    """

    def __init__(self, ir: Function | Remembered) -> None:
        self._remembered: Remembered | None = None
        self._ir: Function | None = None
        # What derivatives in the kernel itself may not be right for.
        self.nonlinear_derivatives: tuple[ad.NonlinearGradient, ...] = ()
        if isinstance(ir, Remembered):
            self._remembered = ir
            self.facts, self.answers = ir.facts, ir.answers
        else:
            self.nonlinear_derivatives = ad.nonlinear_derivatives(_checked(ir))
            self._ir = _checked(ad.derivatives(ir))
            self.facts, self.answers = facts_of(self._ir), Answers()
        self.read = self.facts.read
        self.written = self.facts.written
        # What native replays write in the backward pass.
        self.rewritten = self.facts.rewritten
        self.differentiable = self.facts.differentiable
        self._arrays = frozenset(p for p, t in self.facts.params if isinstance(t, ArrayType))
        self._prepared: Function | None = None
        self._reversible: Function | None = None
        self._adjoints: dict[Key, ad.Adjoint] = {}
        self._tangents: dict[frozenset[str], Function] = {}
        self._accesses: ad.Accesses | Literal[False] | None = False
        self._clashes: dict[tuple[tuple[int, ...], frozenset[str], bool], list[Store]] = {}
        self._stops: dict[frozenset[str], tuple[Function, ...]] = {}
        self._late: dict[Key, tuple[ad.Late, ...]] = {}
        self._nonlinear: dict[frozenset[str], tuple[ad.NonlinearGradient, ...]] = {}
        self._entries: dict[tuple[Backend, Form, Key], Entry] = {}
        self._forms: dict[tuple[Form, Key], Kept] = {}  # that an earlier process left
        self._threads: dict[tuple[Form, Names, Names], Threads] = {}
        # What a user calls it; whether all launches are watched for accesses outside of arrays.
        self.name = self.facts.name
        self.debug = False
        # Whether GPUs run threads one after the other where their order matters.
        self.in_order = configured
        # Kernels that others make of this one, by keys of theirs: they live as long as it does.
        self.derived: dict[Hashable, Variants | None] = {}

    @property
    def ir(self) -> Function:
        """The kernel as lowered."""
        if self._ir is None:
            assert self._remembered is not None
            with _lock:
                self._ir = self._ir or self._read(self._remembered)
        return self._ir

    def _read(self, kept: Remembered) -> Function:
        try:
            return kept.ir()
        except Damaged:
            problem = f"the entry of kernel {self.name!r} in the kernel cache is damaged"
            help = "clear the cache: engine.clear_kernel_cache()"
            raise CompilerError(Diagnostic("E303", problem, self.facts.span, help)) from None

    @property
    def warns(self) -> bool:
        """Whether its author is warned of something in it."""
        from engine.ir.nodes import callees

        unassigned = any(f.unassigned for f in (self.ir, *callees(self.ir)))
        return unassigned or bool(self.nonlinear_derivatives)

    def is_there(self, backend: Backend, form: Form = "forward", key: Key = (NONE, NONE)) -> bool:
        """Whether a form can be had that this process has, or that an earlier one left."""
        if (backend, form, key) not in self._entries:
            kept = self._kept(form, key) if backend.kind == "cpu" else None
            if kept is None:
                return False
            its = functools.partial(self.function, form, *key)
            found = kept.entry(backend, self.threads_of(form, *key), its, self.bound(form))
            if found is None:
                return False
            self._entries[backend, form, key] = found
        return True

    def _kept(self, form: Form, key: Key) -> Kept | None:
        """What an earlier process left of a form."""
        if self._remembered is None:
            return None
        if form == "forward":
            return self._remembered.form
        if not self.answers.holds():
            return None
        found = self._forms.get((form, key))
        if found is None:
            said = self.answers.get(["form", form, *key], dict)
            try:
                found = None if said is None else Kept(said)
            except (Damaged, LookupError, TypeError, ValueError):
                return None
            if found is not None:
                self._forms[form, key] = found
        return found

    def keep_forms(self) -> None:
        """Leaves all that was compiled before it was known where."""
        for (backend, form, key), entry in list(self._entries.items()):
            if backend.kind == "cpu":
                self._keep(form, key, self.function(form, *key), entry)

    def _keep(self, form: Form, key: Key, fn: Function, entry: Entry) -> None:
        """Leaves a form that was compiled to later processes."""
        if self.answers.save is None or not FORMS[form].kept or fn is self.ir:
            return
        if not self.answers.holds():
            return
        said = None if ad.inlined_size(self.ir) >= LONG else form_of(fn, entry)
        if said is not None:
            self.answers.put(["form", form, *key], said)

    def _few(
        self, known: dict[Asked, Found], at: Asked, question: Sequence[object],
        look: Callable[[], Found], none: Found,
    ) -> Found:  # fmt: skip
        """What there is nothing of in most kernels: whether that is so, is kept."""
        found = known.get(at)
        if found is None:
            if self.answers.get(question, bool) is False:
                found = known[at] = none
            else:
                with _lock:
                    found = known[at] = look()
                self.answers.put(question, bool(found))
        return found

    @cached_property
    def can_lift(self) -> bool:
        """Whether the kernel has a float64 form."""
        return ad.can_lift(self.ir)

    @cached_property
    def threads(self) -> Threads:
        """What the threads of its launches do to each other."""
        kept = self._remembered
        if kept is None:
            return Threads(self.ir)
        return Threads.of_kept(lambda: self.ir, kept.form)

    @property
    def prepared(self) -> Function:
        """The kernel without calls and jumps, from which AD starts."""
        with _lock:
            if self._prepared is None:
                _check_size(self.ir)
                self._prepared = _checked(ad.prepare(self.ir))
            return self._prepared

    @property
    def reversible(self) -> Function:
        """The same where functions that a large kernel calls often stay calls: see `ad.kept`."""
        with _lock:
            if self._reversible is None:
                _check_size(self.ir)
                marked = ad.keep(self.ir)
                same = marked is self.ir
                prepared = self.prepared if same else _checked(ad.prepare(marked))
                out = ad.unroll(prepared)
                if out is not prepared:
                    from engine.compile.rolled import better_rolled

                    if better_rolled(prepared, out, self.differentiable, self.journaled()):
                        out = prepared
                self._reversible = out if out is prepared else _checked(out)
            return self._reversible

    def stops(self, wrt: frozenset[str]) -> tuple[Function, ...]:
        """Native functions at which gradients of `wrt` end, for want of an adjoint."""
        return self._few(
            self._stops, wrt, ["stops", wrt], lambda: ad.stops(self.reversible, wrt), ()
        )

    def late(self, wrt: frozenset[str], shared: frozenset[str]) -> tuple[ad.Late, ...]:
        """Gradients of the user's own that read what the kernel has overwritten by then."""
        return self._few(
            self._late, (wrt, shared), ["late", wrt, shared],
            lambda: ad.late(self.reversible, wrt, shared), (),
        )  # fmt: skip

    def nonlinear_gradients(self, wrt: frozenset[str]) -> tuple[ad.NonlinearGradient, ...]:
        """Gradients of the user's own for which the tangents of `wrt` may not be the transpose."""
        return self._few(
            self._nonlinear, wrt, ["nonlinear", wrt],
            lambda: ad.nonlinear_gradients(self.ir, wrt), (),
        )  # fmt: skip

    @cached_property
    def flows(self) -> Mapping[tuple[str, str], ad.Flow] | None:
        """Which arrays depend on which (see `ad.cuts`); None for a kernel that is too large."""
        try:
            return ad.flows(self.prepared)
        except EngineError:
            return None

    @cached_property
    def reuse(self) -> ad.Reuse:
        """Which arrays a thread reads and stores to, and in which order."""
        return ad.reuse(self.prepared)

    def journaled(self, aliased: frozenset[str] = frozenset()) -> frozenset[str]:
        """Array parameters whose reads must be journaled when recording.

        `aliased`: parameters that are read and share memory with a written one.
        """
        read = self.facts.read_again
        return (read & self.written - self.facts.replayed) | (aliased & read)

    def clashes(
        self, backend: Backend, dim: tuple[int, ...], arrays: frozenset[str]
    ) -> list[Store]:
        """Stores by which threads certainly overwrite each other; see `ad.threads.certain`.

        On the host threads of such launches run one after the other.
        """
        key = (tuple(min(n, 2) for n in dim), arrays, backend.on_host)
        return self._few(
            self._clashes, key, ["clashes", *key],
            lambda: ad.clashes(self.ir, dim, arrays, backend.on_host), [],
        )  # fmt: skip

    def adjoint_ir(self, wrt: frozenset[str], journaled: frozenset[str]) -> ad.Adjoint:
        with _lock:
            key = (wrt, journaled)
            if key not in self._adjoints:
                out = ad.reverse(self.reversible, wrt, journaled)
                _checked(out.fn)
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
        return _checked(out.fn)

    def recorded_ir(self, wrt: frozenset[str], journaled: frozenset[str]) -> Function | None:
        """The forward kernel that writes the journal; None where the adjoint needs none."""
        sites = self.adjoint_ir(wrt, journaled).sites
        return _checked(ad.record(self.reversible, sites)) if sites else None

    def needs_journal(self, wrt: frozenset[str], journaled: frozenset[str]) -> bool:
        """Whether the adjoint reads what a recorded run of the kernel has to save."""
        found = self.answers.get(["journal", wrt, journaled], bool)
        if found is None:
            found = bool(self.adjoint_ir(wrt, journaled).sites)
            self.answers.put(["journal", wrt, journaled], found)
        return bool(found)

    def adjoint_reads(self, wrt: frozenset[str], journaled: frozenset[str]) -> frozenset[str]:
        """Array parameters whose contents the adjoint reads; what it is linear in it does not."""
        found = self.answers.get(["reads", wrt, journaled], list)
        if found is None:
            found = sorted(ad.read_params(self.adjoint_ir(wrt, journaled).fn) & self._arrays)
            self.answers.put(["reads", wrt, journaled], found)
        return self._arrays & frozenset(found)

    def read_again(self, journaled: frozenset[str]) -> frozenset[str]:
        """Array parameters whose contents some adjoint may read."""
        return self.facts.read_again - journaled

    def tangent_ir(self, wrt: frozenset[str]) -> Function:
        """The kernel with tangents of the arrays `wrt`; see `engine.ad.tangent`."""
        with _lock:
            if wrt not in self._tangents:
                self._tangents[wrt] = _checked(ad.tangent(self.ir, wrt))
            return self._tangents[wrt]

    def accesses_ir(self) -> ad.Accesses | None:
        """The kernel that records its accesses, if that can be; see `engine.ad.accesses`."""
        with _lock:
            if self._accesses is False:
                found = ad.accesses(self.prepared)
                if found is not None:
                    _checked(found.fn)
                self._accesses = found
            return self._accesses

    def function(self, form: Form, wrt: frozenset[str], journaled: frozenset[str]) -> Function:
        """The IR that is compiled for a form."""
        return FORMS[form].made(self, wrt, journaled)

    def threads_of(self, form: Form, wrt: Names, journaled: Names) -> Threads:
        """What the threads of a form do to each other."""
        if form == "forward":
            return self.threads
        key = (form, wrt, journaled)
        with _lock:
            if key not in self._threads:
                of = FORMS[form].threads
                its = functools.partial(self.threads_of, of, wrt, journaled) if of else None
                kept = self._kept(form, (wrt, journaled))
                if kept is not None:
                    function = functools.partial(self.function, form, wrt, journaled)
                    self._threads[key] = Threads.of_kept(function, kept, its)
                    return self._threads[key]
                fn = self.function(form, wrt, journaled)
                if fn is self.ir:
                    self._threads[key] = self.threads
                    return self.threads
                self._threads[key] = Threads(fn, its)
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
            if not v.is_there(backend, form, key):
                made = (v, v.function(form, wrt, journaled))
                todo.setdefault(backend, {})[id(v), form, key] = made
        if not todo:
            return
        from engine.ir.messages import messages_of

        for backend, group in todo.items():
            entries = backend.compile([f for _, f in group.values()])
            for (_, form, key), (v, f), e in zip(group, group.values(), entries, strict=True):
                # Kernels of the same text share an entry; where they stand differs.
                threads = v.threads_of(form, *key)
                found = replace(
                    e, messages=messages_of(f), bound=v.bound(form), threads=threads,
                    in_order=v.in_order,
                )  # fmt: skip
                v._entries[backend, form, key] = found
                v._keep(form, key, f, found)


def _checked(fn: Function) -> Function:
    from engine.ir.verify import checked  # late: what was compiled before is not looked at

    return checked(fn)


def _check_size(ir: Function) -> None:
    """Calls double with each level of functions that call two: tells of what takes minutes.

    Raises CompilerError (E305) where it would take hours.
    """
    size = ad.inlined_size(ir)
    if size < LONG:
        return
    problem = f"the derivative of kernel {ir.name!r} is {'too ' * (size > MOST)}large"
    note = f"it has {size:,} operations after the expansion of its calls"
    help = "give a function that it calls a custom gradient (`func_grad`), or call it in a loop"
    if size > MOST:
        limit = f"{note}; {MOST:,} is the most"
        raise CompilerError(Diagnostic("E305", problem, ir.span, help, (limit,)))
    log_warning(f"{problem}: {note}, and takes minutes to compile; {help}")


def _key(form: Form, wrt: Names, journaled: Names) -> Key:
    return (wrt, journaled) if FORMS[form].of_arrays else (NONE, NONE)
