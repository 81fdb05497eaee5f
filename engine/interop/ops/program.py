"""A kernel as a pure function of arrays and numbers, with its derivatives. Knows no framework."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from engine.cached import cached_property
from engine.compile.backend import Journal
from engine.compile.pipeline import NONE, Variants
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.ir import nodes as n
from engine.ir.printer import to_text
from engine.lang.types import is_float
from engine.runtime.forward_mode import warn_of_nonlinear_gradients
from engine.runtime.launch import run
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import Param
from engine.tape.records import LaunchRecord

Dim = tuple[int, ...]


class Program:
    """A kernel whose arrays are inputs, outputs, or inputs of which a changed copy is a result.

    inputs, numbers, outputs: parameters in their order; what is changed is an input.
    results: what is changed, then the outputs.
    """

    def __init__(self, plan: Plan, changed: Iterable[str], outputs: Iterable[str]) -> None:
        self.plan = plan
        self.variants = plan.variants
        names, made = frozenset(changed), frozenset(outputs)
        self.inputs = tuple(p for p in plan.array_params if p.name not in made)
        self.outputs = tuple(p for p in plan.array_params if p.name in made)
        self.numbers = tuple(p for p in plan.params if p.array_kind is None)
        self.changed = tuple(p for p in self.inputs if p.name in names)
        self.results = (*self.changed, *self.outputs)
        self.float_inputs = tuple(p for p in self.inputs if is_float(p.kind))
        self.float_results = tuple(p for p in self.results if is_float(p.kind))
        self._journaled = plan.variants.journaled()
        self._checked: set[tuple[Dim, frozenset[str]]] = set()

    @property
    def key(self) -> str:
        """The kernel's name."""
        return self.plan.kernel.key

    @cached_property
    def digest(self) -> str:
        """What tells programs apart that do different things; the same in every process."""
        found: dict[int, n.Function] = {}
        todo = [self.variants.ir]
        while todo:
            f = todo.pop()
            if id(f) not in found:
                found[id(f)] = f
                todo += [g for g in (*n.callees(f), f.grad, f.replay) if g is not None]
        texts = [f"{to_text(f)}\n{f.native!r}" for f in found.values()]
        roles = [[p.name for p in group] for group in (self.changed, self.outputs)]
        texts.append(repr((roles, self.variants.debug, self.plan.kernel.enable_backward)))
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]

    # ---- what it runs

    def forward(self, dim: Dim, packed: Sequence[bytes]) -> None:
        """Runs it. packed: the arguments as kernels read them, by position."""
        run(self.plan.unobserved(dim, b"".join(packed)))

    def touched(self, wrt: frozenset[str]) -> bool:
        """Whether the adjoint needs the results of a run, and what that saved."""
        v, journaled = self.variants, self._journaled
        if v.needs_journal(wrt, journaled):
            return True
        return bool((v.adjoint_reads(wrt, journaled) | v.rewritten) & v.written)

    def recorded(self, dim: Dim, packed: Sequence[bytes], wrt: frozenset[str]) -> Journal | None:
        """Runs it, and returns what its adjoint reads of values that it overwrote."""
        args = b"".join(packed)
        return run(self.plan.unobserved(dim, args, "recorded", wrt, self._journaled)).journal

    def adjoint(
        self, dim: Dim, packed: Sequence[bytes], gradients: Sequence[bytes], wrt: frozenset[str],
        journal: Journal | None,
    ) -> None:  # fmt: skip
        """Adds to gradients of inputs, and uses up those of results.

        gradients: of the arrays `wrt`, in the order of the parameters.
        """
        args = b"".join((*packed, *gradients))
        run(self.plan.unobserved(dim, args, "adjoint", wrt, self._journaled, journal=journal))

    def check(self, dim: Dim, wrt: frozenset[str]) -> None:
        """Raises TapeError where no gradient is right (E407, E408), or none is wanted (E401)."""
        key = (tuple(min(k, 2) for k in dim), wrt)
        if key in self._checked:
            return
        if not self.plan.kernel.enable_backward:
            raise TapeError(
                Diagnostic("E401", f"no gradient flows through kernel {self.key!r}: its "
                           "enable_backward is False", call_span(),
                           "let it be True for the kernel, its module or config")
            )  # fmt: skip
        selection = self.plan.selection(0, NONE)
        record = LaunchRecord(self.plan, dim, [], b"", 0, None, NONE, selection)
        record.check_order(wrt)
        record.check_late(wrt)
        record.tell_stops(wrt)
        self._checked.add(key)

    # ---- forward mode

    @cached_property
    def moving(self) -> tuple[Param, ...]:
        """The arrays that have tangents, in the order of the parameters."""
        return self.plan.floats

    @cached_property
    def tangent(self) -> Program:
        """The program that computes tangents beside the results; it can be differentiated again.

        Raises KernelError (E110) for code in C++ that moves.
        """
        wrt = frozenset(p.name for p in self.moving)
        made = Variants(self.variants.tangent_ir(wrt))
        made.name, made.debug = self.variants.name, self.variants.debug
        plan = Plan(self.plan.kernel, made, self.plan.backend)
        tan = self.tangent_names
        changed = [p.name for p in self.changed]
        outputs = [p.name for p in self.outputs]
        return Program(
            plan,
            [*changed, *(tan[k] for k in changed if k in tan)],
            [*outputs, *(tan[k] for k in outputs if k in tan)],
        )

    def warn_of_tangent(self) -> None:
        """Warns of gradients of the user's own of which it may not be the transpose."""
        moving = frozenset(p.name for p in self.moving)
        warn_of_nonlinear_gradients(self.variants, moving)

    @cached_property
    def tangent_names(self) -> dict[str, str]:
        """What the tangents of arrays are called in `tangent`."""
        fn = self.variants.tangent_ir(frozenset(p.name for p in self.moving))
        added = fn.params[self.plan.count :]
        return {p.name: a.name for p, a in zip(self.moving, added, strict=True)}
