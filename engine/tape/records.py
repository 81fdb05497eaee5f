"""What a tape keeps of each kind of operation, and what each does in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np

from engine import config
from engine.ad.threads import Classes
from engine.compile.backend import Journal
from engine.compile.pipeline import Request
from engine.diagnostics import Diagnostic, KernelError, Span, TapeError
from engine.diagnostics.site import Site
from engine.ir.nodes import Function
from engine.logger import log_warning
from engine.runtime import watch
from engine.runtime.array import array
from engine.runtime.execute import foreseen
from engine.runtime.finite import look
from engine.runtime.kernel import Kernel
from engine.runtime.leaves import float_parts
from engine.runtime.plan import Call, Plan, Selection
from engine.runtime.storage import Glance, Hold
from engine.tape.record import OFF, Record
from engine.tape.restoration import Restoration, contents

__all__ = ["CopyRecord", "FuncRecord", "LaunchRecord", "OverwriteRecord", "Record"]

NumpyArray = np.ndarray[Any, Any]

_NOTHING = nullcontext()


class LaunchRecord(Record):
    """A kernel launch with its arguments, and holds on what its inputs contained."""

    __slots__ = (
        "_arrays",
        "aliased",
        "blob",
        "dim",
        "holds",
        "input_count",
        "journal",
        "plan",
        "selection",
        "stack_bytes",
        "values",
    )

    # What the user passed for each parameter, where that is known without the user's text.
    names: Sequence[str] | None = None

    def __init__(self, call: Call, site: Site | None, aliased: frozenset[str],
                 selection: Selection) -> None:  # fmt: skip
        self.plan: Plan = call.plan
        self._arrays: list[array] | None = None
        self.dim = call.dim
        self.values = call.values
        self.blob = call.blob
        self.input_count = call.inputs
        self._site = site
        self.aliased = aliased
        self.selection = selection
        self.journal: Journal | None = None
        # Memory of the values that a thread of its last backward pass saved.
        self.stack_bytes = 0
        self.holds: dict[int, Hold] = {}

    @property
    def kernel(self) -> Kernel:
        """What was launched."""
        return self.plan.kernel

    @property
    def definition(self) -> Span:
        """The place of the kernel's own code."""
        return self.plan.variants.ir.span

    @property
    def name(self) -> str:
        return self.plan.kernel.key

    @property
    def arrays(self) -> Sequence[array]:
        if self._arrays is not None:
            return self._arrays
        found, values = {}, self.values
        for p in self.plan.array_params:
            a = values[p.index]
            if a is not None:
                whole = a if a._whole is None else a._whole
                found[id(whole)] = whole
        self._arrays = list(found.values())
        return self._arrays

    @property
    def written(self) -> Sequence[array]:
        values = self.values
        return [values[i] for i in self.plan.writes if values[i] is not None]

    @property
    def args(self) -> list[Any]:
        """The launch's arguments in parameter order; arrays as they are, None for none."""
        return self.values

    @property
    def wrt(self) -> frozenset[str]:
        """Names of the array parameters that had gradients when the launch was recorded."""
        return self.selection.wrt

    def take_holds(self, eager: bool, copied: bool = True) -> None:
        """Remembers what the inputs contain; to be called before the kernel runs.

        eager: copies them now. copied: whether they are, when they are about to change.
        """
        values, holds = self.values, self.holds
        for i in self.plan.held:
            a = values[i]
            if a is None:
                continue
            if copied or eager:
                holds[i] = a.storage.hold(a.lo, a.hi, eager)
            else:
                holds[i] = Glance(a.storage, a.lo, a.hi)

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        for i in self.selection.watched:
            if self.values[i] is not None:
                yield i, self.values[i], self.holds.get(i)

    def reads(self) -> Collection[int]:
        return self._now().reads

    def reads_journal(self) -> bool:
        return self.journal is not None and self._now().recorded

    def argument(self, index: int) -> str:
        return f"argument {self.plan.params[index].name!r} of kernel {self.name!r}"

    def inputs_at_record(self) -> list[Any]:
        """The arguments as they were when the launch was recorded, in parameter order.

        Arrays come as fresh NumPy copies, components last; None where the contents are
        `lost` or no array was passed. What other code wrote unseen (through a NumPy view) counts
        as having been there, unless it was copied (`config.snapshot_exposed_bytes`).
        Arrays that the kernel only writes come with their present contents, which no
        result depends on. Other arguments come as they were given.
        """
        out = []
        for p, v in zip(self.plan.params, self.values, strict=True):
            if p.array_kind is None or v is None:
                out.append(v)
            elif p.index in self.holds:
                out.append(contents(v, self.holds[p.index]))
            else:
                out.append(None if p.index in self.plan.inputs else self._only_written(v))
        return out

    def _only_written(self, a: Any) -> NumpyArray:
        return np.array(a._host())

    @property
    def lost(self) -> dict[str, str]:
        """Names of the inputs whose contents at record time are not known, and why."""
        out = {}
        for i in self.plan.inputs:
            if self.values[i] is not None:
                hold = self.holds.get(i)
                why = OFF if hold is None else hold.lost
                if why:
                    out[self.plan.params[i].name] = why
        return out

    @property
    def journal_bytes(self) -> int:
        """Memory of the values that the launch saved for its adjoint."""
        return 0 if self.journal is None else self.journal.nbytes

    @property
    def snapshots(self) -> Sequence[Hold]:
        return list(self.holds.values())

    # ---- backward

    def _now(self) -> Selection:
        """The selection to differentiate with. Raises TapeError (E401) if it came too late."""
        then = self.selection
        present = self.plan.select(self.values, self.aliased)
        if present is then or present.wrt <= then.wrt:
            return then
        if present.recorded:
            late = ", ".join(sorted(present.wrt - then.wrt))
            raise TapeError(
                Diagnostic(
                    "E401", f"requires_grad was set on {late} after kernel {self.name!r} was "
                    "recorded, and its adjoint needs values saved by the launch", self.site,
                    help="set requires_grad before the launch",
                )
            )  # fmt: skip
        return present

    def contents(self, index: int) -> NumpyArray | None:
        """What an input held at the launch, as a fresh copy; None where it still holds it.

        What other code may have changed unseen is taken to be as it was. Raises TapeError
        (E401) where the contents are not known any more.
        """
        a, hold = self.values[index], self.holds.get(index)
        if hold is not None and hold.unseen and hold.version == a.storage.version:
            return None
        if hold is None or hold.lost:
            raise self.unknown(index, hold)
        if hold.storage is not None:
            return None
        return contents(a, hold)

    def _restored(self, restored: Sequence[Restoration]) -> tuple[bytes, list[Any]]:
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

    def _pack(self, values: Sequence[Any]) -> bytes:
        return b"".join(
            p.pack(v) if p.array_kind is None else p.null if v is None else v._packed
            for p, v in zip(self.plan.params, values, strict=True)
        )

    def check_order(self, wrt: frozenset[str]) -> None:
        """Raises TapeError (E407) where the order of threads certainly decides what stays.

        Who watches is told instead; gradients are those of the order in which threads ran.
        """
        for s in self.plan.variants.clashes(self.dim, wrt):
            if watch.watchers:
                watch.tell([watch.clash(self.plan.variants, s, self.dim, self.site)])
                continue
            raise TapeError(
                Diagnostic(
                    "E407", f"all threads of kernel {self.name!r} store a value of their own to "
                    f"one element of {s.array.name!r}, so no gradient is right", s.span,
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

    def requests(self) -> list[Request]:
        selection = self._now()
        if not selection.useful:
            return []
        self.check_order(selection.wrt)
        self.check_late(selection.wrt)
        plan = self.plan
        if not watch.watchers and plan.has_adjoint(selection):
            return []
        what: Request = (
            plan.backend, plan.variants, "adjoint", selection.wrt, selection.journaled
        )  # fmt: skip
        return [
            foreseen(what, tuple(self.dim), self._pack(self.values)) if watch.watchers else what
        ]

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        selection = self._now()
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
        blob, _alive = self._restored(restored) if restored else (self.blob, None)
        blob += b"".join([g._packed for g in grads])
        with self._rewritten() if self.plan.variants.rewritten else _NOTHING:
            adjoint = self.plan.adjoint(selection.wrt, selection.journaled)
            self.stack_bytes = adjoint.run(self.dim, blob, None, self.journal).stack_bytes
        if config.verify_fp:
            wrt = [p.name for p in self.plan.floats if p.name in selection.wrt]
            look(f"the adjoint of kernel {self.name!r}", zip(wrt, grads, strict=True))

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


class CopyRecord(Record):
    """`copy`, `clone` or `assign`: what is overwritten passes its gradient to the source.

    source: what the source held, where it came from outside of the tape.
    """

    __slots__ = ("dest", "source", "src")

    def __init__(
        self, dest: array, src: array, site: Site | None, source: Hold | None = None
    ) -> None:
        self.dest = dest
        self.src = src
        self._site = site
        self.source = source

    @property
    def name(self) -> str:
        return "copy"

    @property
    def arrays(self) -> Sequence[array]:
        return [self.dest, self.src]

    @property
    def written(self) -> Sequence[array]:
        return [self.dest]

    @property
    def snapshots(self) -> Sequence[Hold]:
        return () if self.source is None else (self.source,)

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        cotangent = self.dest.grad
        if cotangent is None:
            return
        seeds = [part.copy() for part in float_parts(cotangent)]
        cotangent.zero_()
        into = self.src.grad
        if into is not None:
            into.storage.before_write(into.lo, into.hi)
            of, to = cotangent.device.backend, into.device.backend
            for part, seed in zip(float_parts(into), seeds, strict=True):
                if into.device == cotangent.device:
                    np.add(part, seed, out=part, casting="unsafe")
                else:
                    to.put(part, to.to_host(part) + of.to_host(seed))


class OverwriteRecord(Record):
    """`fill_`, `zero_` or item assignment: what was there before gets no gradient."""

    __slots__ = ("_name", "dest")

    def __init__(self, dest: array, what: str, site: Site | None) -> None:
        self.dest = dest
        self._name = what
        self._site = site

    @property
    def name(self) -> str:
        return self._name

    @property
    def arrays(self) -> Sequence[array]:
        return [self.dest]

    @property
    def written(self) -> Sequence[array]:
        return [self.dest]

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        if self.dest.grad is not None:
            self.dest.grad.zero_()


class FuncRecord(Record):
    """A Python function that the user recorded to be called in the backward pass.

    holds: what its arrays held then; empty where nothing is remembered.
    """

    __slots__ = ("_arrays", "function", "holds")

    def __init__(
        self, function: Callable[[], Any], arrays: Sequence[array], site: Site | None
    ) -> None:
        self.function = function
        self._arrays = list(arrays)
        self._site = site
        self.holds: dict[int, Hold] = {}

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    @property
    def arrays(self) -> Sequence[array]:
        return self._arrays

    @property
    def written(self) -> Sequence[array]:
        return []

    @property
    def snapshots(self) -> Sequence[Hold]:
        return list(self.holds.values())

    def take_holds(self) -> None:
        """Remembers what its arrays contain."""
        self.holds = {i: a.storage.hold(a.lo, a.hi) for i, a, _ in self.watched()}

    def watched(self) -> Iterable[tuple[int, array, Hold | None]]:
        for i, a in enumerate(self._arrays):
            if isinstance(a, array):
                yield i, a, self.holds.get(i)

    def reads(self) -> Collection[int]:
        return range(len(self._arrays))

    def backward(self, restored: Sequence[Restoration] = ()) -> None:
        with ExitStack() as stack:
            for x in restored:
                stack.enter_context(x.in_place())
            self.function()


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
