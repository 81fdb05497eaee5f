"""Launches with strided arrays, with their adjoints, give what they give where nothing is lent.

Random kernels whose threads touch elements near their coordinates, on tapes, with values of which
every sum is exact. `ENGINE_PROGRAMS` sets how many kernels run (default 100).
"""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

import engine as wp
from tests.backend.test_strided import always, counted, unlent
from tests.parts import cut
from tests.property.test_parts import EXACT
from tests.property.test_threads import BATCH, load
from tests.sweeps import reduced

pytestmark = pytest.mark.whole
COUNT = int(os.environ.get("ENGINE_PROGRAMS", "100"))
SIDE = 9  # of the grid; arrays are longer, some by what threads look around
AROUND = 2
READ, WRITTEN = ("a", "b", "c"), ("p", "q")


class Nearby:
    """Writes a kernel that reads some arrays around its coordinates, and writes others at them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.axes = self.rng.choice([1, 2])
        self.dim = (SIDE,) * self.axes
        self.turned = {k for k in (*READ, *WRITTEN) if self.axes == 2 and self.rng.random() < 0.3}
        self.by = {k: self.rng.choice([0, 0, 1, 2]) for k in (*READ, *WRITTEN)}

    def at(self, array: str, around: bool) -> str:
        by = [self.by[array] + (self.rng.randint(0, AROUND) if around else 0) for _ in self.dim]
        names = ["i", "j"][: self.axes]
        parts = [f"{k} + {b}" if b else k for k, b in zip(names, by, strict=True)]
        return f"{array}[{', '.join(parts[::-1] if array in self.turned else parts)}]"

    def value(self, depth: int = 0) -> str:
        pick = self.rng.random()
        if depth > 2 or pick < 0.4:
            return self.at(self.rng.choice(READ), True)
        if pick < 0.5:
            return str(float(self.rng.randint(-3, 3)))
        if pick < 0.6:
            return self.at(self.rng.choice(WRITTEN), False)
        op = self.rng.choice("++-*")
        return f"({self.value(depth + 1)} {op} {self.value(depth + 1)})"

    def statement(self) -> str:
        array = self.rng.choice(WRITTEN)
        at, pick = self.at(array, False), self.rng.random()
        if pick < 0.15:
            return f"wp.atomic_add({array}, {at[2:-1]}, {self.value()})"
        if pick < 0.3:
            return f"wp.atomic_add(sum, {self.rng.choice(['0', 'i'])}, {self.value()})"
        return f"{at} {self.rng.choice(['=', '=', '+='])} {self.value(1)}"

    def kernel(self, name: str) -> str:
        one = "wp.array(dtype=float)"
        kind = one if self.axes == 1 else "wp.array2d(dtype=float)"
        params = ", ".join(f"{k}: {kind}" for k in (*READ, *WRITTEN))
        lines = [f"def {name}({params}, sum: {one}):",
                 f"    {'i' if self.axes == 1 else 'i, j'} = wp.tid()"]  # fmt: skip
        for _ in range(self.rng.randint(1, 4)):
            pick = self.rng.random()
            if pick < 0.3:
                lines += [f"    if {self.value(2)} > {self.value(2)}:"]
            elif pick < 0.45:
                lines += ["    for _ in range(2):"]
            indent = "        " if pick < 0.45 else "    "
            lines.append(indent + self.statement())
        return "\n".join(["@wp.kernel", *lines]) + "\n"


def gradients(kernel: Any, w: Nearby) -> list[np.ndarray[Any, Any]]:
    """What a launch on strided arrays leaves, and its gradients for random cotangents."""
    rng = np.random.default_rng(w.seed)
    steps = {k: int(rng.integers(1, 4)) for k in (*READ, *WRITTEN)}

    def some(k: str, low: int, high: int, leaf: bool) -> Any:
        shape = [SIDE + w.by[k] + (AROUND if k in READ else 0)] * w.axes
        shape[-1] *= steps[k]
        values = rng.integers(low, high, shape).astype(np.float32)
        whole = wp.array(values, dtype=float, requires_grad=leaf)
        return whole[:: steps[k]] if w.axes == 1 else whole[:, :: steps[k]]

    arrays = {k: some(k, -2, 4, True) for k in steps}
    total = wp.zeros(SIDE, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, w.dim, [*arrays.values(), total])
    out = [a.numpy().copy() for a in (*arrays.values(), total)]
    seeds = {a: some(k, -2, 3, False) for k, a in arrays.items()}
    tape.backward(grads={**seeds, total: wp.ones_like(total)})
    return out + [a.grad.numpy().copy() for a in (*arrays.values(), total)]


@pytest.mark.host("the CPU lends memory to launches")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "first", reduced(range(2000, 2000 + COUNT, BATCH), lambda first: first < 2000 + BATCH)
)
def test_lent_memory_changes_nothing(first: int, tmp_path: Any) -> None:
    kernels, writers = load(tmp_path, first, Nearby)
    lent = compared = 0
    with always():
        for kernel, w in zip(kernels, writers, strict=True):
            with unlent():
                plain = gradients(kernel, w)
            if any(np.abs(a).max() > EXACT for a in plain):
                continue
            with counted() as said:
                runs = [gradients(kernel, w)]
            lent += any(said)
            with cut(2):
                runs.append(gradients(kernel, w))
            for run in runs:
                compared += 1
                for a, b in zip(run, plain, strict=True):
                    np.testing.assert_array_equal(a, b, err_msg=w.kernel("kernel"))
    assert lent > BATCH // 3 and compared > BATCH, (lent, compared)
