"""Functions that stay calls in adjoints: the gradient is that of the expanded kernel.

Random kernels with random functions of numbers, which call each other, return early and return
what they were given.
`ENGINE_PROGRAMS` sets how many run (default 20).
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import numpy as np
import pytest

from engine import ad
from engine.ad import kept
from engine.codegen import outline
from engine.compile.cpu import CPU
from engine.compile.pipeline import Variants, prefetch
from engine.ir import interp
from engine.ir import nodes as n
from engine.ir.builder import Builder, Names, const
from engine.ir.verify import verify
from engine.lang.types import INT32
from tests.backend.test_random_programs import FREE, pack
from tests.property.operations import V3, F
from tests.property.programs import ARRAYS, DIM, SIZE, TAKEN, Body
from tests.property.test_random_programs import WRT, run, start

COUNT = int(os.environ.get("ENGINE_PROGRAMS", "20"))
COMPILED = 4


class Calls(Body):
    """Code that also calls functions which return integers."""

    def call(self, b: Builder) -> None:
        f = self.r.choice(self.functions)
        dsts = tuple(b.temp(t, "got") for t in f.results)
        args = [self.argument(b, p) for p in f.params]
        b.add(n.Call(dsts, f, tuple(args)))
        for d in dsts:
            if d.type == INT32:
                b.set(self.whole, b.op("mod", d, const(7, INT32)))
            else:
                v = self.of(d.type)
                half = b.op("mul" if v.type == F else "scale", d, const(0.5, F))
                b.set(v, b.op("add", half, b.op("neg", v)) if self.r.random() < 0.5 else half)


class Numbers(Calls):
    """The body of a function of numbers."""

    inputs: tuple[n.Var, ...] = ()

    def index(self, b: Builder, size: int = SIZE) -> n.Atom:
        k = self.r.randrange(size)
        if self.r.random() < 0.6:
            return const(k, INT32)
        return b.op("mod", self.whole, const(size, INT32))

    def load(self, b: Builder) -> n.Atom:
        return self.r.choice([v for v in self.inputs if v.type == F])

    def stmt(self, b: Builder, depth: int, in_loop: bool) -> None:
        kind = self.r.random()
        if depth < 3 and kind < 0.2:
            self.branch(b, depth, in_loop)
        elif kind < 0.3 and depth > 0:
            inner = b.child()
            self.assign(inner)
            self.finish(inner)
            b.add(n.If(self.cond(b), inner.block()))
        elif kind < 0.4 and self.functions:
            self.call(b)
        else:
            self.assign(b)

    def finish(self, b: Builder) -> None:
        assert self.returns is not None
        out: list[n.Atom] = []
        for a in self.returns:
            if a.type == INT32:
                out.append(self.whole)
            elif a.type == F and self.r.random() < 0.2:
                out.append(const(0.25, F))
            else:
                given = [v for v in self.inputs if v.type == a.type]
                out.append(self.r.choice(given) if self.r.random() < 0.3 else self.of(a.type))
        b.add(n.Return(tuple(out)))


def function(r: random.Random, name: str, callees: list[n.Function]) -> n.Function:
    body = Numbers(r, Names((*TAKEN, "y")), 10)
    body.functions = callees
    x, y, u, k = n.Var("x", F), n.Var("y", F), n.Var("u", V3), n.Var("m", INT32)
    body.inputs = (x, y, u)
    b = Builder(body.names)
    body.start(b)
    b.set(body.values[0], x)
    b.set(body.values[3], u)
    b.set(body.whole, b.op("mod", k, const(3, INT32)))
    kinds = [F, F, V3, INT32]
    body.returns = [n.Var("r", r.choice(kinds)) for _ in range(r.randint(1, 3))]
    if all(a.type == INT32 for a in body.returns):
        body.returns.append(x)
    body.block(b, 0, False)
    body.block(b, 1, False)
    body.finish(b)
    return n.Function(name, (x, y, u, k), tuple(a.type for a in body.returns), b.block())  # type: ignore[misc]


def program(seed: int) -> n.Function:
    r = random.Random(seed)
    functions: list[n.Function] = []
    for k in range(r.randint(1, 3)):
        functions.append(function(r, f"f{k}", list(functions)))
    body = Calls(r, Names((*TAKEN, "y")), 24)
    body.functions = functions
    b = Builder(body.names)
    body.start(b)
    body.call(b)
    body.block(b, 0, False)
    body.call(b)
    body.block(b, 0, False)
    body.call(b)
    for i, v in enumerate(body.values[:3]):
        b.add(n.Store(body.arrays[2], (const(i, INT32),), v))
    for v in body.values[3:5]:
        b.add(n.Atomic(None, "add", body.arrays[1], (const(3, INT32),), b.op("dot", v, v)))
    return n.Function("program", (*body.arrays, body.count), (), b.block(), is_kernel=True)


@pytest.fixture(autouse=True)
def all_kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(kept, "LARGE", 0)
    monkeypatch.setattr(kept, "SAVED", 0)
    yield


def kept_calls(fn: n.Function) -> list[n.Call]:
    return [s for s in n.walk(fn.body) if isinstance(s, n.Call) and s.func.kept is not None]


def gradient(fn: n.Function, marked: n.Function, arrays, weights, checkpoint=False):
    prepared = ad.prepare(marked)
    verify(prepared)
    journaled = ad.read_params(fn) & ad.written_params(fn)
    out = ad.reverse(prepared, WRT, journaled, checkpoint)
    verify(out.fn)
    journal = interp.Journal()
    after = run(ad.record(prepared, out.sites), arrays, journal=journal)
    grads = [w.copy() for w in weights]
    interp.run(out.fn, [*(a.copy() for a in after), 3, *grads], DIM, journal=journal)
    return prepared, after, grads


@pytest.mark.parametrize("seed", range(COUNT))
def test_gradients_are_those_of_the_expanded_kernel(seed: int) -> None:
    fn = program(seed)
    verify(fn)
    arrays = start(seed)
    rng = np.random.default_rng(seed)
    weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
    marked = ad.keep(fn)
    verify(marked)
    prepared, after, grads = gradient(fn, marked, arrays, weights)
    assert kept_calls(prepared)
    _, expected_after, expected = gradient(fn, fn, arrays, weights)
    _, _, spared = gradient(fn, marked, arrays, weights, checkpoint=True)
    for x, y, z in zip(after, expected_after, run(fn, arrays), strict=True):
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, z)
    for x, y, z in zip(grads, expected, spared, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12 * np.abs(y).max())
        np.testing.assert_array_equal(x, z)


@pytest.mark.parametrize("cut", [False, True])
def test_compiled_code_does_what_the_interpreter_does(
    cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cut:
        monkeypatch.setattr(outline, "LARGE", 0)
        monkeypatch.setattr(outline, "PIECE", 12)
    made = [Variants(program(seed)) for seed in range(COMPILED)]
    forms = ("forward", "recorded", "adjoint", "checkpointed")
    prefetch([(CPU, v, form, WRT, v.journaled()) for v in made for form in forms])
    for seed, v in enumerate(made):
        rng = np.random.default_rng(seed)
        weights = [rng.standard_normal(SIZE) for _ in ARRAYS]
        arrays = start(seed)
        _, after, expected = gradient(v.ir, ad.keep(v.ir), arrays, weights)
        for form in ("forward", "recorded"):
            found = [a.copy() for a in arrays]
            ran = CPU.run(v.entry(CPU, form, WRT, v.journaled()), (DIM,), pack(found), FREE)
            for x, y in zip(found, after, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
        for form in ("adjoint", "checkpointed"):
            grads = [w.copy() for w in weights]
            entry = v.entry(CPU, form, WRT, v.journaled())
            CPU.run(entry, (DIM,), pack(found, tuple(grads)), FREE, journal=ran.journal)
            for x, y in zip(grads, expected, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * np.abs(y).max())
