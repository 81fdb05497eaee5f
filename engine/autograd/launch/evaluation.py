"""One recorded launch as a function to be evaluated and differentiated, on copies.

Nothing here touches a user's array: an Evaluation owns its memory. There is one in the
launch's own precision and one lifted to float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.derived import called, can_lift, lifted, plain, planned
from engine.autograd.launch.recorded_arguments import Argument, RecordedLaunch
from engine.classes import dataclass
from engine.compile.backend import Journal
from engine.compile.forms import Form
from engine.compile.pipeline import Request, Variants, prefetch
from engine.diagnostics import EngineError
from engine.ir.nodes import Var
from engine.ir.sites import places
from engine.lang.numbers import epsilon
from engine.lang.types import ArrayType, is_float, scalar_of
from engine.runtime import events
from engine.runtime.device import HOST
from engine.runtime.execute import Execution, ThreadRange, foreseen
from engine.runtime.launch import run
from engine.runtime.launch_errors import KernelStopped
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import BoundLaunch

Array = NDArray[Any]
Name = str


class EvaluationFailed(Exception):
    """Why something cannot be evaluated: a kernel reported an error, or has no such derivative."""


class QuietRuns:
    """Runs of kernels for a check, of which nobody is told.

    journaled: see `runtime.execute.Executable`. inside: it is known that they need no watching.
    """

    def __init__(self, journaled: frozenset[Name]) -> None:
        self._journaled = journaled
        self.inside = False

    def run(
        self, plan: Plan, form: Form, dim: tuple[int, ...], args: bytes,
        wrt: frozenset[Name] = frozenset(), **more: Any,
    ) -> Journal | None:  # fmt: skip
        """Runs a form, and gives its journal. Raises EvaluationFailed.

        more: see `FormRun`. Messages are dropped: the launch itself has printed them.
        """
        how = {"drop_output": True, "inside": self.inside, **more}
        return _run(plan.unobserved(dim, args, form, wrt, self._journaled, **how)).journal

    def run_inside(self, plan: Plan, dim: tuple[int, ...], args: bytes) -> bool:
        """Runs a kernel, and says whether no access was outside. Raises EvaluationFailed."""
        if plan.executable("forward").is_inside(dim, args):
            self.run(plan, "forward", dim, args, inside=True)
            return True
        return _run(plan.unobserved(dim, args, look=True)).inside

    def stays_inside(self, plan: Plan, dim: tuple[int, ...], args: bytes) -> bool:
        """The same, and runs it only where that is not proven. Raises EvaluationFailed."""
        proven = plan.executable("forward").is_inside(dim, args)
        return proven or _run(plan.unobserved(dim, args, look=True)).inside


def _run(launch: BoundLaunch) -> Execution:
    try:
        return run(launch)
    except KernelStopped as stopped:
        raise EvaluationFailed(stopped.reason) from None


class Evaluation:
    """The launch in one precision: memory, forward evaluation, products with its Jacobian.

    initial: contents at record time; memory: what runs work on; grads: gradients. All by the
    name of the parameter that owns the memory: `owner` says for each array which that is.
    """

    def __init__(self, launch: RecordedLaunch) -> None:
        self.launch = launch
        self.variants = launch.variants
        self.params = launch.variants.ir.params
        self._plan = planned(launch.kernel, launch.variants)
        self.dim = launch.dim
        self.threads = int(np.prod(self.dim)) if self.dim else 1
        self.initial: dict[Name, Array] = {}
        self.memory: dict[Name, Array] = {}
        self.owner: dict[Name, Name] = {}
        wrt = set()
        for p, a in zip(self.params, launch.arguments, strict=True):
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
        self.journaled = self.variants.journaled(self._aliased())
        self._runs = QuietRuns(self.journaled)
        self.grads = self._zeros(p for p in self.params if p.name in self.wrt)
        self.changed = sorted({self.owner[w] for w in self.variants.written})
        self._asked = [a for p, a in zip(self.params, launch.arguments, strict=True)
                       if p.name not in self.owner]  # fmt: skip
        self._args = self._packed(launch)
        self._gradients = self._pack(self.grads, self.wrt)
        # With what they are as arguments.
        self._tangents: dict[frozenset[Name], tuple[dict[Name, Array], bytes]] = {}
        # What the last recorded run of all threads left; False where memory has changed since.
        self._recorded: Journal | Literal[False] | None = False

    def _packed(self, launch: RecordedLaunch) -> bytes:
        return self._plan.packed(
            self.memory[self.owner[p.name]] if p.name in self.owner else a.value
            for p, a in zip(self.params, launch.arguments, strict=True)
        )

    def _aliased(self) -> frozenset[Name]:
        """Arrays that are read and are the same memory as another one that is written."""
        written = [(w, self.owner[w]) for w in self.variants.written]
        return frozenset(
            name for name, owner in self.owner.items()
            if name in self.variants.read and any(o == owner and w != name for w, o in written)
        )  # fmt: skip

    def _zeros(self, params: Iterable[Var]) -> dict[Name, Array]:
        """Zeros like the memory of some arrays, by owner, in the order of the parameters."""
        wanted = {self.owner[p.name] for p in params}
        return {name: np.zeros_like(x) for name, x in self.memory.items() if name in wanted}

    def _pack(self, arrays: Mapping[Name, Array], wrt: frozenset[Name]) -> bytes:
        """Gradients or tangents of `wrt` as further arguments."""
        moving = (p for p in self._plan.params if p.name in wrt)
        return b"".join(p.packed(arrays[self.owner[p.name]]) for p in moving)

    def _run(
        self, form: Form, args: bytes, plan: Plan | None = None, *, journal_limit: int = 0,
        **more: Any,
    ) -> Journal | None:  # fmt: skip
        # No limit by default: what the launch itself could save takes up to four times the bytes.
        how = {"journal_limit": journal_limit, **more}
        return self._runs.run(plan or self._plan, form, self.dim, args, **how)

    def requests(self, tangent: bool) -> list[Request]:
        """Its forms with derivatives, and its own where forward mode is (tangent)."""
        host, none, wrt = HOST.backend, frozenset[Name](), self.wrt
        if not (wrt & self.variants.written and wrt & self.variants.read):
            return []
        out: list[Request] = [(host, self.variants, "adjoint", wrt, self.journaled)]
        if self.variants.needs_journal(wrt, self.journaled):
            out.append((host, self.variants, "recorded", wrt, self.journaled))
        if tangent:
            out.append((host, self.variants, "forward", none, none))
            with suppress(EvaluationFailed):
                out.append((host, plain(self.variants), "tangent", self._moving(), self.journaled))
        if self._runs.inside:
            return out
        return [foreseen(r, self.dim, self._args) for r in out]

    def _moving(self) -> frozenset[Name]:
        """All arrays of floats. Raises EvaluationFailed where the kernel has no forward mode."""
        found = _moving_in(self.variants)
        if isinstance(found, str):
            raise EvaluationFailed(found)
        return found

    @property
    def inside(self) -> bool:
        """Whether its runs are known to need no watching."""
        return self._runs.inside

    def trust(self, inside: bool) -> None:
        """Says whether runs need no watching from now on."""
        self._runs.inside = inside

    def reload(self, launch: RecordedLaunch) -> None:
        """Takes over the values of another launch of the same kind."""
        for a in launch.arguments:
            if not a.alias and (initial := self.initial.get(a.name)) is not None and initial.size:
                np.copyto(initial, np.asarray(a.value).reshape(initial.shape))
        self.refresh()
        self.ask(launch)

    def ask(self, launch: RecordedLaunch) -> None:
        """Takes over the values that are not in arrays."""
        asked = [a for a in launch.arguments if a.name not in self.owner]
        if not all(map(_same, asked, self._asked)):
            self._asked, self._args = asked, self._packed(launch)

    def stays_inside(self) -> bool:
        """Whether no access of the launch is outside of an array; it is watched for that.

        The same holds for all forms of it, at its values: they touch the same elements.
        """
        if not plain_accesses(self.variants):
            return False
        self.restore()
        try:
            return self._runs.stays_inside(self._plan, self.dim, self._args)
        except EvaluationFailed:
            return False
        finally:
            self.restore()
            self._recorded = False

    def close(self) -> None:
        """Gives the journal's memory back."""
        self._recorded = False

    # ---- values

    def restore(self) -> None:
        """Puts the contents at record time back into what the launch changes."""
        for name in self.changed:
            np.copyto(self.memory[name], self.initial[name])

    def refresh(self) -> None:
        """Takes over what was changed in `initial`."""
        for name, x in self.initial.items():
            np.copyto(self.memory[name], x)
        self._recorded = False

    @contextmanager
    def at(self, contents: Mapping[Name, Array]) -> Iterator[None]:
        """For a while, with other contents of arrays at record time."""
        kept = {name: self.initial[name].copy() for name in contents}
        try:
            for name, x in contents.items():
                self.initial[name][...] = x
            self.refresh()
            yield
        finally:
            for name, x in kept.items():
                self.initial[name][...] = x
            self.refresh()

    def forward(self) -> dict[Name, Array]:
        """Runs the launch. Returns its live memory: copy what must last."""
        self.restore()
        self.forward_again()
        return self.memory

    def forward_again(self) -> None:
        """Runs the launch on the memory as it is."""
        self._recorded = False
        self._run("forward", self._args)

    def journaled_forward(
        self, threads: ThreadRange | None = None, limit: int = 0
    ) -> NDArray[np.int64]:
        """Runs a kernel that writes a journal by itself, and gives what it wrote.

        limit: bytes that this may take, 0 for any number.
        """
        return self._words("forward", threads=threads, journal_limit=limit)

    def accesses(self, limit: int) -> NDArray[np.int64]:
        """What each thread touches: see `engine.ad.accesses`. limit: bytes that this may take."""
        return self._words("accesses", journal_limit=limit)

    def _words(self, form: Form, **more: Any) -> NDArray[np.int64]:
        """What a form leaves in its journal; memory is as at record time afterwards."""
        self.restore()
        try:
            journal = self._run(form, self._args, **more)
            return np.zeros(0, np.int64) if journal is None else journal.words()
        finally:
            self.restore()
            self._recorded = False

    # ---- derivatives

    def vjp(
        self, seeds: Mapping[Name, Array], threads: ThreadRange | None = None
    ) -> dict[Name, Array]:
        """J' w for cotangents by output name. Returns live gradient arrays by owner name.

        threads: those that run, begin and end of their linear indices; all for None.
        """
        journal = self._recorded
        if journal is False or threads is not None:
            self.restore()
            journal = self._run("recorded", self._args, wrt=self.wrt, threads=threads)
            self._recorded = journal if threads is None else False
        for g in self.grads.values():
            g.fill(0)
        for name, w in seeds.items():
            self.grads[name][...] = w
        # What native replays write is put back, as after a backward pass.
        kept = {self.owner[p]: self.memory[self.owner[p]].copy() for p in self.variants.rewritten}
        self._run(
            "adjoint", self._args + self._gradients, wrt=self.wrt, threads=threads, journal=journal
        )
        for name, before in kept.items():
            np.copyto(self.memory[name], before)
        return self.grads

    @property
    def generated(self) -> bool:
        """Whether all derivatives that the kernel uses are generated, none written by hand."""
        return not self._native and plain(self.variants) is self.variants

    @property
    def _native(self) -> bool:
        return _is_native(self.variants)

    def jvp(self, seeds: Mapping[Name, Array]) -> dict[Name, Array]:
        """J v of the kernel's own code, whatever derivatives its user wrote for parts of it.

        seeds: directions by name of any float array. Returns live arrays by owner name. Raises
        EvaluationFailed where the kernel has no forward mode.
        """
        wrt = self._moving()
        return self._jvp(seeds, wrt, planned(self.launch.kernel, plain(self.variants)))

    def jvp_by_hand(self, seeds: Mapping[Name, Array]) -> dict[Name, Array]:
        """J v with the derivatives that the user wrote, as the adjoint has them.

        seeds: directions by name of arrays with gradients. Returns live arrays by owner name.
        """
        return self._jvp(seeds, self.wrt, self._plan)

    def _jvp(
        self, seeds: Mapping[Name, Array], wrt: frozenset[Name], plan: Plan
    ) -> dict[Name, Array]:
        if wrt not in self._tangents:
            made = self._zeros(p for p in self.params if p.name in wrt)
            self._tangents[wrt] = made, self._pack(made, wrt)
        tangents, packed = self._tangents[wrt]
        self.restore()
        self._recorded = False
        for t in tangents.values():
            t.fill(0)
        for name, v in seeds.items():
            tangents[name][...] = v
        self._run("tangent", self._args + packed, plan, wrt=wrt)
        return tangents


@dataclass(frozen=True)
class Evaluations:
    """A launch in its own precision (`own`) and in float64 (`exact`), and its variables.

    Native functions of narrower floats have no float64 form: `exact` is as `own` then, and
    `epsilon` is the relative rounding of its values (0 for float64, which needs no mention).
    inputs: owners of float arrays that the launch reads and that require a gradient.
    outputs: owners of those that it writes. readable: owners of all float arrays that it reads.
    path: gives the launch on the path that it took, where `exact` decides by itself; see `paths`.
    """

    own: Evaluation
    exact: Evaluation
    epsilon: float
    inputs: tuple[Name, ...]
    outputs: tuple[Name, ...]
    readable: tuple[Name, ...]
    path: Callable[[], Evaluations | None] = lambda: None

    def size(self, name: Name) -> int:
        """Scalars in an array variable."""
        return int(self.exact.initial[name].size)

    def look_inside(self) -> bool:
        """Has its runs watched only if that is needed. Says whether it is not."""
        inside = bool(events.sanitizers()) and self.own.stays_inside()
        # What floats decide is guarded where they move; all else is as in the launch.
        self.own.trust(inside)
        self.exact.trust(inside)
        return inside

    def reload(self, launch: RecordedLaunch) -> None:
        """Takes over the values of another launch of the same kind."""
        self.own.reload(launch)
        self.exact.reload(launch)

    def close(self) -> None:
        """Gives back what they saved."""
        self.own.close()
        self.exact.close()


@contextmanager
def evaluations(
    launch: RecordedLaunch, steered: RecordedLaunch | None = None
) -> Iterator[Evaluations]:
    """A launch, ready to be evaluated in both precisions. What they saved is freed afterwards.

    steered: the launch in float64 on its own path, to be taken for its float64 form.
    """
    made = evaluations_of(launch, steered)
    made.look_inside()
    _compile_together(made.own, made.exact)
    try:
        yield made
    finally:
        made.close()


def evaluations_of(launch: RecordedLaunch, steered: RecordedLaunch | None = None) -> Evaluations:
    """The same without an end, and watched."""
    variants = launch.variants
    own = Evaluation(launch)
    exact = Evaluation(steered or replace(launch, variants=lifted(variants)))
    as_exact = steered is not None or can_lift(variants)

    def owners(names: frozenset[Name], params: Iterable[Var]) -> tuple[Name, ...]:
        return tuple(dict.fromkeys(own.owner[p.name] for p in params if p.name in names))

    moving = [p for p in own.params if p.name in own.wrt]
    floats = [p for p in own.params if isinstance(p.type, ArrayType) and is_float(p.type)]
    return Evaluations(
        own, exact, 0.0 if as_exact else _coarsest(own.params),
        owners(variants.read, moving), owners(variants.written, moving),
        owners(variants.read, floats),
    )  # fmt: skip


def _compile_together(own: Evaluation, exact: Evaluation) -> None:
    """Compiles what a check of a launch is likely to run: several compilers work at once."""
    prefetch([r for e in (own, exact) for r in e.requests(tangent=e is exact)])


@lru_cache(256)
def _moving_in(variants: Variants) -> frozenset[Name] | str:
    """All arrays of floats of a kernel; why there is none of its forward mode."""
    if _is_native(variants):
        return "it has native functions"
    found = (p for p in variants.ir.params if isinstance(p.type, ArrayType) and is_float(p.type))
    wrt = frozenset(p.name for p in found)
    try:
        plain(variants).tangent_ir(wrt)
    except (TypeError, EngineError) as why:
        return f"it has no forward mode: {why}"
    return wrt


@lru_cache(256)
def _is_native(variants: Variants) -> bool:
    return any(f.native is not None for f in called(variants.ir))


@lru_cache(256)
def plain_accesses(variants: Variants) -> bool:
    """Whether a kernel accesses elements and components, and nothing else that may be outside."""
    return not _is_native(variants) and all(
        p.access != "view" for p in places(variants.prepared)[1]
    )


def _same(a: Argument, b: Argument) -> bool:
    """Whether two values that are no arrays are the same to the bit, as far as that is simple."""
    x, y = a.value, b.value
    if x is y:
        return True
    if isinstance(x, (np.ndarray, np.generic)) and x.__class__ is y.__class__:
        return bool(x.dtype == y.dtype and x.dtype != object and x.tobytes() == y.tobytes())
    return isinstance(x, int) and x.__class__ is y.__class__ and bool(x == y)


def _coarsest(params: Sequence[Var]) -> float:
    """The relative rounding of the narrowest floats among a kernel's parameters."""
    floats = [scalar_of(p.type).numpy for p in params if is_float(p.type)]
    return max((epsilon(t) for t in floats), default=0.0)
