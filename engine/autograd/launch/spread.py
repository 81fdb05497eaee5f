"""The spread of repeated runs of a launch on a GPU, where the order of threads matters."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.launch.derived import planned
from engine.autograd.launch.directions import REPEATED
from engine.autograd.launch.evaluation import Evaluation
from engine.autograd.results import PairResult, Spread
from engine.compile.backend import Journal, Restless
from engine.compile.forms import Form
from engine.diagnostics import EngineError
from engine.ir.nodes import Var
from engine.lang.types import ArrayType, shape_of
from engine.runtime.array import array
from engine.runtime.device import DEVICES, Device
from engine.runtime.launch import run
from engine.tape.records import LaunchRecord

Array = NDArray[Any]
RUNS = 4  # the order may be the same twice


def spreads_of(
    record: LaunchRecord, own: Evaluation, rng: np.random.Generator
) -> tuple[Spread, ...]:
    """What was seen of a launch: of its results, and of its adjoint.

    own: the launch on the host, where it is known to stay inside of its arrays.
    """
    device = next((d for d in DEVICES if d.backend is record.plan.backend), None)
    if device is None or device.backend.on_host or not own.inside or own.variants.in_order():
        return ()
    found: list[Spread] = []
    with suppress(EngineError, MemoryError):  # it is refused there, or too large
        repeated = _Repeated(own, device)
        found += repeated.results()
        found += repeated.gradients(rng)
    return tuple(found)


def marked_nondeterministic(
    pairs: tuple[PairResult, ...], spreads: tuple[Spread, ...]
) -> tuple[PairResult, ...]:
    """Pairs with what is said of them where that is more than rounding explains."""
    out = []
    for p in pairs:
        for s in spreads:
            mine = p.output if s.of == "results" else p.input
            if s.part > REPEATED and mine == s.array and p.verdict not in ("nan", "fail"):
                p = replace(p, verdict="nondeterministic", reason=f"its {s.text}")
        out.append(p)
    return tuple(out)


class _Repeated:
    """A launch on copies of its arrays on a device."""

    def __init__(self, own: Evaluation, device: Device) -> None:
        self._own, self._device, self._backend = own, device, device.backend
        self._arrays = {
            p.name: self._made(p, own.initial[p.name]) for p in own.params if p.name in own.initial
        }
        given = {p.name: a.value for p, a in zip(own.params, own.launch.arguments, strict=True)}
        self._plan = planned(own.launch.kernel, own.variants).on(self._backend)
        self._args = self._plan.packed(
            self._array(p.name, self._arrays) if p.name in own.owner else given[p.name]
            for p in own.params
        )
        variants = own.variants
        self._useful = bool(own.wrt & variants.written and own.wrt & variants.read)
        recorded = self._useful and variants.needs_journal(own.wrt, own.journaled)
        self._form: Form = "recorded" if recorded else "forward"
        self._entry = variants.entry(self._backend, self._form, own.wrt, own.journaled)

    def _made(self, p: Var, data: Array) -> array:
        assert isinstance(p.type, ArrayType)
        out = array._allocate(data.shape[: p.type.ndim], p.type.element, False, self._device)
        self._put(out, data)
        return out

    def _put(self, a: array, data: Array) -> None:
        if a.size:
            self._backend.put(a._parts, data.reshape(*a.shape, *shape_of(a._ir.element)))

    def _array(self, name: str, arrays: Mapping[str, array]) -> array | None:
        a = arrays[self._own.owner[name]]
        return a if a.size else None

    def _run(self, form: Form, args: bytes, journal: Journal | None = None) -> Journal | None:
        own = self._own
        return run(self._plan.unobserved(
            own.dim, args, form, own.wrt, own.journaled, journal=journal, journal_limit=0,
            drop_output=True, inside=True,
        )).journal  # fmt: skip

    def _forward(self) -> Journal | None:
        for name, a in self._arrays.items():
            self._put(a, self._own.initial[name])
        return self._run(self._form, self._args)

    def results(self) -> list[Spread]:
        """What its results differ by."""
        why = self._backend.restless(self._entry, self._own.dim, self._args)
        if why is None:
            return []
        runs = []
        for _ in range(RUNS):
            self._forward()
            runs.append({k: np.array(self._arrays[k]._host()) for k in self._own.changed})
        return self._spread("results", why, runs)

    def gradients(self, rng: np.random.Generator) -> list[Spread]:
        """What its adjoint gives other gradients by, after one and the same run."""
        own, variants = self._own, self._own.variants
        if not self._useful:
            return []
        moving = [p for p in self._plan.params if p.name in own.wrt]
        outputs = {own.owner[p.name] for p in moving if p.name in variants.written}
        seeds = {k: rng.standard_normal(x.shape) * (k in outputs) for k, x in own.grads.items()}
        kinds = {p.name: p for p in own.params}
        grads = {k: self._made(kinds[k], seed) for k, seed in seeds.items()}
        args = self._args + b"".join(p.packed(self._array(p.name, grads)) for p in moving)
        entry = variants.entry(self._backend, "adjoint", own.wrt, own.journaled)
        journal = self._forward()
        why = self._backend.restless(entry, own.dim, args, journal)
        if why is None:
            return []
        runs = []
        for _ in range(RUNS):
            for k, g in grads.items():
                self._put(g, seeds[k])
            self._run("adjoint", args, journal)
            runs.append({k: np.array(g._host()) for k, g in grads.items()})
        return self._spread("gradients", why, runs)

    def _spread(self, of: str, why: Restless, runs: list[dict[str, Array]]) -> list[Spread]:
        parts = {k: max(_part(r[k], runs[0][k]) for r in runs) for k in runs[0]}
        worst = max(parts, key=lambda k: parts[k], default="")
        if not worst or not parts[worst] > 0:
            return []
        return [Spread(of, worst, parts[worst], self._device.alias, why.what, why.span)]


def _part(found: Array, first: Array) -> float:
    """How far two results are apart, as a part of the largest value; 0 where bits are equal."""
    x, y = found.astype(np.float64), first.astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        size = np.abs(y[np.isfinite(y)]).max(initial=0.0)
    most = float(np.nan_to_num(off, nan=np.inf).max(initial=0.0))
    return most / size if most and size else most
