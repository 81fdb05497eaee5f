"""The record of a launch on a tape, and its part in the backward pass."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from engine import config
from engine.compile.backend import Journal
from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, KernelError, TapeError
from engine.diagnostics.site import Site
from engine.logger import log_warning
from engine.runtime import events, faults
from engine.runtime.array import array
from engine.runtime.execute import Executable, foreseen
from engine.runtime.launch import run
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import FormRun, Selection
from engine.tape.records.launch_arguments import LaunchArguments, NumpyArray
from engine.tape.records.record import Record, Replayer
from engine.tape.restoration import Restoration

if TYPE_CHECKING:
    from engine.ad.threads import Classes
    from engine.ir.nodes import Function
    from engine.tape.forward import Tangents

_NOTHING = nullcontext()
_KEPT = 256  # grids of a kernel that are remembered


class LaunchRecord(LaunchArguments):
    """A kernel launch with its arguments, and holds on what its inputs contained."""

    __slots__ = ("journal", "stack_bytes")

    def __init__(
        self, plan: Plan, dim: tuple[int, ...], values: list[Any], blob: bytes, inputs: int,
        site: Site | None, aliased: frozenset[str], selection: Selection,
    ) -> None:  # fmt: skip
        # Every recorded launch comes here: no more than most of them need.
        self.plan = plan
        self.dim = dim
        self.values = values
        self.blob = blob
        self.input_count = inputs
        self._site = site
        self.aliased = aliased
        self.selection = selection
        self.journal: Journal | None = None
        # Memory of the values that a thread of its last backward pass saved.
        self.stack_bytes = 0
        self.held = ()

    def reads(self) -> Collection[int]:
        return self._selection_now().reads

    def reads_journal(self) -> bool:
        return self.journal is not None and self._selection_now().saves_journal

    @property
    def journal_bytes(self) -> int:
        return 0 if self.journal is None else self.journal.nbytes

    @property
    def launch(self) -> LaunchRecord:
        return self

    # ---- backward

    def _selection_now(self) -> Selection:
        """The selection to differentiate with. Raises TapeError (E401) if it came too late."""
        then = self.selection
        present = self.plan.select(self.values, self.aliased)
        if present is then or present.wrt <= then.wrt:
            return then
        if present.saves_journal:
            late = ", ".join(sorted(present.wrt - then.wrt))
            raise TapeError(
                Diagnostic(
                    "E401", f"requires_grad was set on {late} after kernel {self.name!r} was "
                    "recorded, and its adjoint needs values saved by the launch", self.site,
                    help="set requires_grad before the launch",
                )
            )  # fmt: skip
        return present

    def _restored_arguments(self, restored: Sequence[Restoration]) -> tuple[bytes, list[Any]]:
        """The arguments with saved contents in their places, and what keeps these alive."""
        values = list(self.values)
        for x in restored:
            values[x.index] = x.copy()
        return self._pack(values), values

    def classes(self) -> Classes:
        """What the threads of the launch did to each other, and by which accesses."""
        return self.plan.variants.threads.classes_of(self.dim, self._pack(self.values))

    def fills(self, a: array) -> bool:
        """Whether the launch certainly stored every element of an argument."""
        plan = self.plan
        names = [plan.params[i].name for i in plan.writes if self.values[i] is a]
        return any(plan.variants.threads.fills(x, self.dim, self._pack(self.values)) for x in names)

    def check_order(self, wrt: frozenset[str]) -> None:
        """Raises TapeError (E407) where the order of threads certainly decides what stays.

        Who watches is told instead; gradients are those of the order in which threads run.
        """
        for s in self.plan.variants.clashes(self.plan.backend, self.dim, wrt):
            if events.sanitizers():
                from engine.runtime import watch

                watch.tell([watch.clash(self.plan.variants, s, self.dim, self.site)])
                continue
            raise TapeError(
                Diagnostic(
                    "E407", f"all threads of kernel {self.name!r} store different values "
                            f"to one element of {s.array.name!r}, so no gradient is right", s.span,
                    help="let one thread store it, or combine the values: "
                    f"atomic_add({s.array.name}, ...)",
                    notes=(f"it was launched with dim={self.dim}"
                           + (f" at {self.site}" if self.site else ""),),
                )
            )  # fmt: skip

    def check_late(self, wrt: frozenset[str]) -> None:
        """Raises TapeError (E408) where a gradient of the user's own would read what the launch
        itself has overwritten. Where `config.overwrites` is "present" that is what it reads.
        """
        if config.overwrites == "present":
            return
        for x in self.plan.variants.late(wrt, self.aliased):
            raise TapeError(
                Diagnostic(
                    "E408", f"the gradient of {x.function!r} reads array {x.array!r}, which kernel "
                    f"{self.name!r} overwrites after the call", x.call,
                    help=f"pass what it needs of {x.array!r} as a number, or store to another "
                    "array",
                    notes=(f"it is overwritten at {x.store}",),
                )
            )  # fmt: skip

    def is_ready(self) -> bool:
        """Whether its adjoint can run as it did before: there is nothing to compile or to say."""
        found = self.selection
        return (
            found.adjoint is not None and self.dim in found.ready_grids and not events.sanitizers()
            and config.overwrites != "present"
            and self.plan.select(self.values, self.aliased) is found
        )  # fmt: skip

    def requests(self) -> list[Request]:
        selection = self._selection_now()
        if not selection.useful:
            return []
        self.check_order(selection.wrt)
        self.check_late(selection.wrt)
        plan = self.plan
        if not events.sanitizers() and plan.has_adjoint(selection):
            self._mark_ready(selection)
            return []
        what: Request = (
            plan.backend, plan.variants, "adjoint", selection.wrt, selection.journaled
        )  # fmt: skip
        return [
            foreseen(what, tuple(self.dim), self._pack(self.values))
            if events.sanitizers()
            else what
        ]

    def _mark_ready(self, selection: Selection) -> None:
        """Notes that the adjoint is there, and that nothing is to be said of launches like this."""
        plan, wrt = self.plan, selection.wrt
        variants = plan.variants
        if (
            variants.stops(wrt) or variants.clashes(plan.backend, self.dim, wrt)
            or variants.rewritten
            or variants.late(wrt, self.aliased) or 0 in self.dim
        ):  # fmt: skip
            return
        if len(selection.ready_grids) >= _KEPT:
            selection.ready_grids.clear()
        selection.ready_grids.add(self.dim)
        selection.adjoint = plan.adjoint(wrt, selection.journaled)

    def reverse(self, restored: Sequence[Restoration] = ()) -> None:
        if not restored and self.is_ready():
            self.run_ready()
            return
        selection = self._selection_now()
        if not selection.useful:
            if selection.wrt & self.plan.variants.written:
                log_warning(
                    f"no gradient flows through kernel {self.name!r}: "
                    "its enable_backward is False (the kernel's, its module's or config's)"
                )
            return
        if 0 in self.dim:
            return
        self.tell_stops(selection.wrt)
        grads = self.gradients(selection)
        for g in grads:
            g.storage.before_write(g.lo, g.hi)
        blob, _alive = self._restored_arguments(restored) if restored else (self.blob, None)
        blob += b"".join([g._packed for g in grads])
        with self._rewritten() if self.plan.variants.rewritten else _NOTHING:
            adjoint = self.plan.adjoint(selection.wrt, selection.journaled)
            self._run(adjoint, blob)
        self._report(selection, grads)

    def run_ready(self) -> None:
        """`reverse` where nothing is to be compiled, restored or warned of."""
        selection, values = self.selection, self.values
        adjoint = selection.adjoint
        assert adjoint is not None
        loud = events.are_writes_observed()
        parts, grads = [self.blob], []
        for i in selection.gradients:
            g = values[i]._grad
            if g is None:
                g = values[i].grad
            storage = g.storage
            if loud or storage._hold is not None:
                storage.before_write(g.lo, g.hi)
            else:
                storage.version += 1
            parts.append(g._packed)
            grads.append(g)
        self._run(adjoint, b"".join(parts))
        if events.everywhere or config.verify_fp:
            self._report(selection, grads)

    def _run(self, adjoint: Executable, blob: bytes) -> None:
        with faults.any_order(self.plan.variants) if events.sanitizers() else nullcontext():
            how = FormRun(adjoint, None, self.journal)
            self.stack_bytes = run(self.plan.running(how, self.dim, blob)).stack_bytes

    def _report(self, selection: Selection, grads: Sequence[array]) -> None:
        found = events.observers()
        if found:
            wrt = [p.name for p in self.plan.floats if p.name in selection.wrt]
            for o in found:
                o.differentiated(self.plan, list(zip(wrt, grads, strict=True)))

    def gradients(self, selection: Selection) -> list[array]:
        """The gradients that the adjoint adds to.

        For one that was dropped since the launch there are zeros: it still has a place there.
        """
        arrays = [self.values[p.index] for p in self.plan.floats if p.name in selection.wrt]
        return [a.grad or array._allocate(a.shape, a._ir.element, True, a.device) for a in arrays]

    def tell_stops(self, wrt: frozenset[str]) -> None:
        """Warns where gradients end at native functions. Raises KernelError (E110) for `grad`."""
        for f in self.plan.variants.stops(wrt):
            if f.native is not None and f.native.inputs is not None:
                raise _no_second_derivative(self.name, f)
            log_warning(
                f"no gradient flows through native function {f.name!r} of kernel "
                f"{self.name!r}: it has no adj_snippet"
            )

    @contextmanager
    def _rewritten(self) -> Iterator[None]:
        """Puts back what replays of native functions write: the user sees gradients only."""
        names = self.plan.variants.rewritten
        changed = [a for p in self.plan.array_params
                   if p.name in names and (a := self.values[p.index]) is not None]  # fmt: skip
        kept = [a._parts.copy() for a in changed]
        for a in changed:
            a.storage.before_write(a.lo, a.hi)
        try:
            yield
        finally:
            for a, before in zip(changed, kept, strict=True):
                a._parts[...] = before

    # ---- what gradients flow through

    @property
    def stored(self) -> Iterable[array]:
        # Without an adjoint it takes no gradient away.
        return [a for a in self.written if self._selection_now().useful and self.fills(a)]

    def passes_gradient(self, a: array) -> bool:
        flows, wrt, params = self.plan.variants.flows, self.selection.wrt, self.plan.params
        mine = [params[i].name for i in self.plan.writes if self.values[i] is a]
        if flows is None:
            return bool(wrt)
        return any(p in wrt and q in mine and f.smooth for (p, q), f in flows.items())

    @property
    def graded(self) -> Iterable[array | None]:
        if self.plan.arguments is not None:
            return self.arrays
        values = self.values
        return [values[i] for i, _ in self.plan.bits]

    # ---- what is made of it

    def captured(self, contents: bool = True) -> Record:
        from engine.tape.records.captured import CapturedLaunch

        return CapturedLaunch(self, contents)

    def replay(self, by: Replayer) -> None:
        by.launch(self)

    # ---- forward mode

    def _moving(self) -> dict[str, array]:
        """The arguments through which derivatives flow, by parameter name."""
        found = ((p.name, self.values[p.index]) for p in self.plan.floats)
        return {name: a for name, a in found if a is not None and a.requires_grad}

    def tangent_requests(self) -> list[Request]:
        if 0 in self.dim:
            return []
        wrt, plan = frozenset(self._moving()), self.plan
        useful = wrt & plan.variants.written
        self.check_order(useful)
        return [(plan.backend, plan.variants, "tangent", wrt, frozenset())] if useful else []

    def tangent(self, tangents: Tangents) -> None:
        if 0 in self.dim:
            return
        plan, wrt = self.plan, self._moving()

        def held(i: int) -> NumpyArray | None:
            return self.contents(i) if i in plan.inputs else None

        tangents.launch(plan, self.dim, self.values, held, wrt)


def launches(records: Iterable[Record]) -> list[LaunchRecord]:
    """The launches among records."""
    return [found for r in records if (found := r.launch) is not None]


def _no_second_derivative(kernel: str, adjoint: Function) -> KernelError:
    """The error where `grad` of a native function is differentiated: C++ has no derivative."""
    return KernelError(
        Diagnostic(
            "E110",
            f"kernel {kernel!r} needs the derivative of `{adjoint.name}`, the adj_snippet of a "
            "native function, to differentiate `grad` of that function",
            adjoint.span,
            "write the function in the kernel language, or give it a `@func_grad`",
        )
    )
