"""Random programs of launches, copies and backward passes, and traces of all that they do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import engine as wp
from engine.diagnostics import EngineError
from tests.unit.runtime.launching import F, in_place, made, scale, total, turns
from tests.unit.runtime.sequences import record, step

N = 5


@wp.kernel
def both(x: F, y: F, z: F):
    i = wp.tid()
    z[i] = x[i] * y[i] + wp.sin(x[i])


@wp.kernel(enable_backward=False)
def flat(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] + 1.0


@wp.kernel
def mixed(a: wp.float64, x: wp.array(dtype=wp.float64), k: wp.int64, n: wp.array(dtype=int)):
    i = wp.tid()
    x[i] = x[i] * a + wp.float64(k)
    n[i] = n[i] + 1


class Launches:
    """One random program. trace: what was seen on the way."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.arrays = [made(N) for _ in range(4)] + [made(3 * N, 2)]
        self.arrays += [self.arrays[4][:N], made(N)[:N]]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tapes = [wp.Tape()]
        self.kept: list[Any] = []
        self.trace: list[Any] = []
        self.doubles = wp.zeros(N, dtype=wp.float64, requires_grad=True)
        self.numbers = wp.zeros(N, dtype=int)

    def one(self) -> Any:
        return self.arrays[self.random.integers(len(self.arrays))]

    def launch(self) -> None:
        kind, a, b, c = self.random.integers(8), self.one(), self.one(), self.one()
        record_tape = bool(self.random.random() < 0.9)
        if kind < 3:
            wp.launch(scale, N, [a, b, 0.5], record_tape=record_tape)
        elif kind == 3:
            wp.launch(in_place, dim=(N,), inputs=[a], record_tape=record_tape)
        elif kind == 4:
            wp.launch(turns, N, inputs=(a,), outputs=(b, int(self.random.integers(4))))
        elif kind == 5:
            wp.launch(both, N, [a, b], [c])
        elif kind == 6:
            wp.launch(flat, [N], [a], [b])
        else:
            wp.launch(mixed, N, [1.5, self.doubles, 3, self.numbers])
        if self.random.random() < 0.4:
            wp.launch(total, dim=N, inputs=[b], outputs=[self.loss])

    def other(self) -> None:
        kind, a, b = self.random.integers(12), self.one(), self.one()
        tape = self.tapes[int(self.random.integers(len(self.tapes)))]
        if kind == 10:
            self.trace.append((tape.memory, len(tape.gradients)))
        elif kind == 11:
            (tape.reset if self.random.random() < 0.5 else tape.zero)()
        elif kind == 0:
            a.zero_()
        elif kind == 1:
            wp.copy(a, b, count=N)
        elif kind == 2:
            self.kept.append(a.numpy())
        elif kind == 3:
            del self.kept[:]
        elif kind == 4:
            a.requires_grad = not a.requires_grad
        elif kind == 5 and a.requires_grad:
            a.grad = wp.full(a.shape, 0.5, dtype=float)
        elif kind == 6:
            self.kept.append(a.storage.hold(a.lo, a.hi, bool(self.random.integers(2))))
        elif kind == 7:
            new = wp.zeros(N, dtype=float, requires_grad=bool(self.random.integers(2)))
            self.trace.append(
                (
                    new.shape,
                    new.dtype,
                    new.requires_grad,
                    new.numpy().tobytes(),
                    new.strides,
                    new.is_contiguous,
                    new.ndim,
                    new.size,
                    new.grad is None,
                )
            )
            self.arrays[int(self.random.integers(4))] = new
        elif kind == 8:
            self.loss = wp.zeros((1,), dtype=float, requires_grad=True)
        elif a.requires_grad and self.random.random() < 0.3:
            a.retain_grad = True

    def taped(self) -> None:
        tape = self.tapes[-1] if self.random.random() < 0.3 else wp.Tape()
        self.tapes.append(tape)
        with tape:
            for _ in range(self.random.integers(1, 5)):
                (self.launch if self.random.random() < 0.8 else self.other)()

    def backward(self) -> None:
        tape = self.tapes[-1]
        if self.random.random() < 0.5:
            tape.backward(self.loss)
        else:
            a = self.one()
            seed: Any = [np.ones(a.shape, np.float32), a, self.arrays[0]][self.random.integers(3)]
            tape.backward(grads={a: seed})
        if self.random.random() < 0.5:
            tape.zero()

    def look(self) -> None:
        everything = [*self.arrays, self.loss, self.doubles, self.numbers]
        grads = [a.existing_grad for a in everything]
        self.trace.append([a._parts.tobytes() for a in everything])
        self.trace.append([None if g is None else g._parts.tobytes() for g in grads])
        self.trace.append([a.storage.version for a in everything])
        self.trace.append([None if g is None else g.storage.version for g in grads])
        homes = {id(a.storage): k for k, a in enumerate(everything)}
        # Not at all of them: what has been looked at is kept in another way.
        for tape in self.tapes[-2:] if self.random.random() < 0.4 else ():
            seen = record(tape)
            offsets = [
                [(p - a.ptr) for p in r[2] for a in everything[:1]] and len(r[2]) for r in seen
            ]
            self.trace.append(
                [(r[0], r[1], *(x for k, x in enumerate(r[4:]) if k != 1)) for r in seen]
            )
            self.trace.append(offsets)
            self.trace.append(
                sorted(
                    (homes.get(id(s), -1), hi - lo)
                    for s, (lo, hi) in tape._overwrites._read.items()
                )
            )

    def run(self) -> list[Any]:
        for _ in range(25):
            what = self.random.random()
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    (
                        self.taped
                        if what < 0.4
                        else self.launch
                        if what < 0.6
                        else self.backward
                        if what < 0.8
                        else self.other
                    )()
                self.trace.append([str(w.message) for w in told])
            except EngineError as e:
                self.trace.append([d.code for d in e.diagnostics])
            self.look()
        return self.trace


class OneTape:
    """Launches on one tape, with all that may come between them."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.arrays = [made(N) for _ in range(6)]
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()
        self.trace: list[Any] = []

    def one(self) -> Any:
        return self.arrays[int(self.random.integers(len(self.arrays)))]

    def launches(self, count: int) -> None:
        with self.tape:
            for k in range(count):
                x, y = self.one(), self.one()
                match k % 3 if count == 6 else int(self.random.integers(5)):
                    case 0:
                        wp.launch(scale, N, [x, y, 0.5])
                    case 1:
                        wp.launch(turns, N, [x, y, 3])
                    case 2:
                        wp.launch(total, N, [x], [self.loss])
                    case 3:
                        wp.launch(step, N, [x, y, 0.1], [made(N), made(N)])
                    case _:
                        wp.launch(in_place, N, [x])  # it saves what it overwrites

    def between(self) -> None:
        match int(self.random.integers(10)):
            case 9:
                self.one().requires_grad = bool(self.random.random() < 0.5)
            case 0:
                with self.tape:
                    wp.copy(self.one(), self.one())
            case 1:
                with self.tape:
                    self.one().zero_()
            case 2:
                self.trace.append(self.tape.memory)
            case 3:
                self.trace.append(len(self.tape.gradients))
            case 4:
                self.tape.zero()
            case 5:
                self.tape.reset()
            case 6:
                with self.tape, wp.ScopedTimer("t", print=False):
                    self.tape.record_scope_begin("scope")
                    wp.launch(scale, N, [self.arrays[0], self.arrays[1], 2.0])
                    self.tape.record_scope_end()
                    self.trace.append([m[0] for m in self.tape.scopes])
            case 7:
                with self.tape:
                    self.tape.record_func(lambda: None, [self.arrays[0]])
            case _:
                self.trace.append(len(self.tape.visualize().splitlines()))

    def backward(self) -> None:
        """From the loss, or from arrays that may have required no gradient so far, or both."""
        seeds = {
            self.one(): wp.full(N, 0.5, dtype=float) for _ in range(int(self.random.integers(3)))
        }
        loss = self.loss if not seeds or self.random.random() < 0.5 else None
        try:
            self.tape.backward(loss, grads=seeds or None)
        except wp.EngineError as e:
            self.trace.append(e.diagnostic.code)

    def run(self) -> list[Any]:
        for _ in range(8):
            self.launches(int(self.random.integers(5)))
            self.between()
            if self.random.random() < 0.5:
                self.backward()
                self.trace += [None if a.grad is None else a.grad.numpy().tobytes()
                               for a in self.arrays]  # fmt: skip
                self.trace.append(self.tape.memory)
        # Addresses are of each run.
        self.trace.append(
            [(*r[:2], len(r[2]), len(r[3]), *r[4:5], *r[6:]) for r in record(self.tape)]
        )
        return self.trace
