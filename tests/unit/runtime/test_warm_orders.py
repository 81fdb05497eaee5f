"""Warm launches between changes in random orders: what each change means is known to a model."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from io import StringIO
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.tape.capture import capturing
from tests.unit.runtime.launching import way
from tests.unit.runtime.warm.changes import ONE, N, X, floats, halve, read, scale, square, zeros

SETTINGS: dict[str, tuple[Any, ...]] = {
    "tape_snapshots": ("lazy", "eager"), "overwrites": ("restore", "warn", "present"),
    "verify_fp": (False, True), "verify_autograd_array_access": (False, True),
    "print_launches": (False, True), "enable_backward": (True, False),
    "snapshot_exposed_bytes": (0, 1 << 20), "num_threads": (0, 1), "deterministic": (None, False),
}  # fmt: skip
HEAPS = {"fill": lambda x: x.fill_(9.0), "launch": lambda x: wp.launch(scale, N, [NINES, x, 1.0])}
NINES = floats(9 * ONE, grad=False)


class World:
    """Arrays and a step on them, and what the step has to give."""

    def __init__(self, seed: int, graph: bool) -> None:
        self.random = np.random.default_rng(seed)
        self.x, self.y, self.z = floats(), zeros(), zeros()
        self.one = floats(ONE, grad=False)
        self.value, self.cotangent = X.copy(), ONE.copy()
        self.flows = True
        self.over, self.looks = "", False
        self.views: list[Any] = []
        self.stack = ExitStack()
        self.graphs: dict[str, Any] | None = {} if graph else None

    def body(self) -> None:
        tape = wp.Tape()
        with tape:
            wp.launch(square, N, [self.x], [self.y])
            if self.over:
                HEAPS[self.over](self.x)
            wp.launch(scale, N, [self.y, self.z, 3.0])
        if self.looks and self.graphs is None:
            assert tape.records[0].name == "square"
        tape.backward(grads={self.z: self.one})

    def run(self) -> None:
        if self.x.requires_grad:
            self.x.grad.zero_()
        if self.graphs is None:
            return self.body()
        key = f"{self.over} {self.flows}"  # what a graph has captured
        if key not in self.graphs:
            with wp.ScopedCapture() as capture:
                self.body()
            self.graphs[key] = capture.graph
        wp.capture_launch(self.graphs[key])
        return None

    def step(self) -> None:
        self.run()
        want = 9 * ONE if self.over and wp.config.overwrites == "present" else self.value
        got = read(self.z), read(self.x.grad) if self.x.requires_grad else None
        assert np.array_equal(got[0], 3 * self.value**2), got
        if got[1] is not None:
            flows = self.flows and wp.config.enable_backward
            assert np.array_equal(got[1], 6 * want * self.cotangent if flows else 0 * X), got
        if self.over:
            self.x.assign(self.value)

    # ---- changes

    def assigns(self) -> None:
        self.value = self.number() * X
        self.x.assign(self.value)

    def numpy_writes(self) -> None:
        self.value = self.number() * X
        seen = self.x.numpy()
        seen[:] = self.value
        self.views = [seen] if self.random.integers(2) else []

    def launch_writes(self) -> None:
        wp.launch(halve, N, [self.x])
        self.value = 0.5 * self.value

    def seeds(self) -> None:
        self.cotangent = self.number() * ONE
        if self.graphs is None and self.random.integers(2):
            self.one = floats(self.cotangent, grad=False)
        else:
            self.one.fill_(self.cotangent[0])

    def flag(self) -> None:
        self.x.requires_grad = self.flows = not self.flows

    def gradient(self) -> None:
        of = (self.x, self.y, self.z)[self.random.integers(3)]
        if of.requires_grad:
            whole = wp.zeros(2 * N, dtype=float)
            of.grad = whole[::2] if self.random.integers(2) else zeros(grad=False)

    def setting(self) -> None:
        name = sorted(SETTINGS)[self.random.integers(len(SETTINGS))]
        setattr(wp.config, name, SETTINGS[name][self.random.integers(len(SETTINGS[name]))])

    def overwrites(self) -> None:
        self.over = ("", *HEAPS)[self.random.integers(3)]

    def looks_on(self) -> None:
        self.looks = not self.looks

    def listens(self) -> None:
        if self.random.integers(2):
            self.stack.enter_context(capturing())
        else:
            self.stack.close()

    def collects(self) -> None:
        gc.collect()
        self.views = [zeros() for _ in range(8)]

    def forgets(self) -> None:
        (square if self.random.integers(2) else scale).forget()

    def number(self) -> float:
        return float(self.random.integers(1, 8))


CHANGES: tuple[Callable[[World], None], ...] = (
    World.assigns, World.numpy_writes, World.launch_writes, World.seeds, World.flag, World.gradient,
    World.setting, World.setting, World.overwrites, World.looks_on, World.listens, World.collects,
    World.forgets,
)  # fmt: skip


@pytest.mark.host("native launches")
@pytest.mark.parametrize("graph", [False, True], ids=["launches", "graph"])
@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
@pytest.mark.parametrize("part", range(4))
def test_changes_in_any_order(
    part: int, native: bool, graph: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dict(vars(wp.config))
    for seed in range(10 * part, 10 * part + 10):
        with way(monkeypatch, "native" if native else True), ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            out = stack.enter_context(redirect_stdout(StringIO()))
            stack.enter_context(redirect_stderr(out))
            world = World(seed, graph)
            stack.callback(world.stack.close)
            stack.callback(vars(wp.config).update, before | {"native_after": 0 if native else -1})
            done: list[str] = []
            for _ in range(30):
                change = CHANGES[world.random.integers(len(CHANGES))]
                change(world)
                done.append(change.__name__)
                for _ in range(int(world.random.integers(1, 5))):
                    try:
                        world.step()
                    except AssertionError as e:
                        raise AssertionError(f"seed {seed}: after {done}: {e}") from e
