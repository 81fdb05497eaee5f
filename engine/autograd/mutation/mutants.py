"""Launches whose adjoint can be made wrong; a useful check must notice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine import ad
from engine.autograd.comparison.tolerance import AUTO_FLOOR, AUTO_RTOL
from engine.autograd.launch.derived import lifted
from engine.autograd.launch.evaluation import evaluations
from engine.autograd.launch.recorded_arguments import recorded_launch
from engine.autograd.mutation.spoil import spoil
from engine.autograd.results import LaunchResult
from engine.autograd.tape.check import check_records
from engine.autograd.tape.options import Options
from engine.classes import dataclass
from engine.compile.backend import Backend
from engine.compile.forms import Form
from engine.compile.pipeline import Request, Variants, prefetch
from engine.draws import default_rng
from engine.ir import nodes as n
from engine.lang.types import FLOAT64
from engine.runtime.array import array
from engine.runtime.device import HOST
from engine.runtime.plan import Plan
from engine.tape.records import launches
from engine.tape.tape import Tape


@dataclass(frozen=True, slots=True)
class Mutation:
    """What is wrong with an adjoint: what it adds to gradients is multiplied by `factor`.

    thread: only by threads with this first index. component: only in this component of
    vectors, or column of a matrix's first row. iteration: only in this iteration (of all that
    the thread runs) of a loop of the reverse sweep, where factors also fall on adjoints that
    the loop carries. shift: elements are added to the neighbour this far on. -1 (0 for the
    shift) stands for no such limit.
    """

    kind: str
    factor: float = 1.0
    thread: int = -1
    component: int = -1
    iteration: int = -1
    shift: int = 0

    def row(self) -> list[float]:
        """The table's contents."""
        return [self.factor, self.thread, self.component, self.iteration, self.shift]


NONE = Mutation("none")
MUTATIONS = (
    Mutation("factor 1.0001", 1.0001),
    Mutation("factor 1.001", 1.001),
    Mutation("factor 1.01", 1.01),
    Mutation("factor 1.5", 1.5),
    Mutation("sign", -1.0),
    Mutation("zero", 0.0),
    Mutation("one component", 1.01, component=1),
    Mutation("one thread", 1.01, thread=1),
    Mutation("one iteration", 1.01, iteration=1),
    Mutation("swapped index", shift=1),
)


class Spoiled(Variants):
    """The variants of a kernel with a spoiled adjoint, wrong as `mutate` says.

    backend: where else than on the host it may run. like: another one, which is wrong with it.
    """

    def __init__(self, ir: n.Function, backend: Backend, like: Spoiled | None = None) -> None:
        super().__init__(ir)
        self._backend = backend
        # A GPU reads it by itself.
        self.table: array = (
            array._allocate((len(NONE.row()),), FLOAT64, True, HOST, not backend.on_host)
            if like is None else like.table
        )  # fmt: skip
        self.mutate(NONE)

    def mutate(self, mutation: Mutation) -> None:
        """Makes it wrong in this way from now on."""
        self._backend.synchronize()  # what was launched before reads what was said before
        self.table._parts[:] = mutation.row()

    def function(self, form: Form, wrt: frozenset[str], journaled: frozenset[str]) -> n.Function:
        fn = super().function(form, wrt, journaled)
        if form != "adjoint":
            return fn
        count = len(self.ir.params)
        return spoil(fn, frozenset(p.name for p in fn.params[count:]))

    def bound(self, form: Form) -> bytes:
        return self.table._packed if form == "adjoint" else b""


@contextmanager
def spoiling(plan: Plan) -> Iterator[Spoiled]:
    """While active, the kernel's checks use an adjoint that can be made wrong."""
    right = plan.variants
    own = Spoiled(right.ir, plan.backend)
    own.derived["lifted"] = Spoiled(ad.guard_accesses(ad.lift(right.ir)), plan.backend, own)
    plan.variants = own
    try:
        yield own
    finally:
        plan.variants = right


class Trial:
    """A tape with one launch, whose adjoint can be made wrong. Use it in a `with` block.

    Raises ValueError for a tape with another number of launches.
    """

    def __init__(self, tape: Tape, seed: int = 0) -> None:
        found = launches(tape.records)
        if len(found) != 1:
            raise ValueError(f"expected a tape with one launch, found {len(found)}")
        self.record = found[0]
        self.options = Options(seed=seed)
        self._spoiling = spoiling(self.record.plan)

    def __enter__(self) -> Trial:
        self.spoiled = self._spoiling.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._spoiling.__exit__(*exc)  # type: ignore[arg-type]

    def requests(self) -> list[Request]:
        """What its checks compile."""
        own, host = self.spoiled, HOST.backend
        out: list[Request] = []
        wrt, journaled = self.record.wrt, self.record.selection.journaled
        none: frozenset[str] = frozenset()
        for v in (own, lifted(own)):
            out += [(host, v, "forward", none, none), (host, v, "adjoint", wrt, journaled)]
            if v.needs_journal(wrt, journaled):
                out.append((host, v, "recorded", wrt, journaled))
        return out

    def check(self, mutation: Mutation | None = None) -> LaunchResult:
        """The check of the launch with an adjoint that is wrong in this way; right for None."""
        self.spoiled.mutate(mutation or NONE)
        try:
            return check_records([self.record], self.options).launches[0]
        finally:
            self.spoiled.mutate(NONE)

    def changes(self, mutation: Mutation) -> bool:
        """Whether the mutation changes the gradient of this launch by more than is tolerated."""
        with evaluations(recorded_launch(self.record)) as launch:
            exact = launch.exact
            rng = default_rng(7)
            w = {b: rng.standard_normal(exact.initial[b].shape) for b in launch.outputs}
            right = {a: exact.vjp(w)[a].copy() for a in launch.inputs}
            self.spoiled.mutate(mutation)
            try:
                wrong = exact.vjp(w)
            finally:
                self.spoiled.mutate(NONE)
            return any(_differ(wrong[a], g) for a, g in right.items())


def compile_trials(trials: Sequence[Trial]) -> None:
    """Compiles what the checks of some trials run, together; they do so one by one otherwise."""
    prefetch([r for t in trials for r in t.requests()])


def _differ(wrong: Any, right: Any) -> bool:
    with np.errstate(all="ignore"):
        allowed = AUTO_RTOL * np.abs(right) + AUTO_FLOOR * np.abs(right).max(initial=0.0)
        return bool(np.any(np.abs(wrong - right) > allowed))
