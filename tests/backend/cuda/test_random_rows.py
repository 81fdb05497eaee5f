"""Random light kernels, whose threads run in rows on a GPU where that can be: as on the CPU.

Arrays have the shape of the grid; guards keep indices inside, in one of the ways that people write
them. What is read, written and added to, and where, is up to chance.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.cuda import runner
from tests.backend.cuda.emulated import PLACES, place

TOGETHER = 8  # kernels of a module
MODULES = int(os.environ.get("ENGINE_GPU_ROWS", "6"))
NAMES = ("i", "j", "k")
FUNCTIONS = ("wp.sin({})", "wp.exp(-{0} * {0})", "wp.sqrt({0} * {0} + 1.0)", "({} * 0.5)",
             "wp.min({}, 0.25)", "wp.where({0} > 0.0, {0}, 2.0 * {0})", "{}")  # fmt: skip
ENDS = (4, 8, 8, 12, 16, 21)


class Kernel:
    """The text of a kernel, and the shape that it is launched with."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.axes = int(rng.choice((1, 1, 2, 2, 3)))
        self.shape = (*(int(n) for n in rng.integers(3, 7, self.axes - 1)), int(rng.choice(ENDS)))
        if self.axes == 1:
            self.shape = (int(rng.integers(1, 60)),)
        self.name = f"light_{seed}"
        self.low, self.high = [0] * self.axes, [0] * self.axes
        self.kinds = ("wp.float64" if rng.random() < 0.15 else "float", int(rng.integers(3, 6)))
        reads = [self.read() for _ in range(int(rng.integers(1, 4)))]
        value = " + ".join(reads)
        body = [self.write(value) for _ in range(int(rng.integers(1, 3)))]
        self.text = "\n".join(["@wp.kernel", self.head(), *self.guarded(body), ""])

    def at(self, far: bool) -> str:
        """An index near the thread's coordinates, which guards have to allow then."""
        out = []
        for d in range(self.axes):
            by = int(self.rng.integers(-2, 3)) if far and self.rng.random() < 0.5 else 0
            self.low[d], self.high[d] = min(self.low[d], by), max(self.high[d], by)
            out.append(
                f"{NAMES[d]} + {by}" if by > 0 else f"{NAMES[d]} - {-by}" if by else NAMES[d]
            )
        return ", ".join(out)

    def read(self) -> str:
        array = "abc"[int(self.rng.integers(self.kinds[1] - 2))]
        form = FUNCTIONS[int(self.rng.integers(len(FUNCTIONS)))]
        return form.format(f"{array}[{self.at(self.rng.random() < 0.5)}]").replace(
            "0.25", f"{self.number()}(0.25)"
        )

    def number(self) -> str:
        return self.kinds[0] if self.kinds[0] != "float" else "float"

    def write(self, value: str) -> str:
        n = self.rng.random()
        if n < 0.4:
            return f"y[{self.at(False)}] = {value}"
        if n < 0.55:
            return f"y[{self.at(False)}] += {value}"
        if n < 0.8:
            return f"wp.atomic_add(z, {self.at(True)}, {value})"
        return f"wp.atomic_sub(z, {self.at(True)}, {value})"

    def head(self) -> str:
        kind = f"wp.array(dtype={self.kinds[0]}, ndim={self.axes})"
        return f"def {self.name}({', '.join(f'{a}: {kind}' for a in 'abcyz')}):"

    def guarded(self, body: list[str]) -> list[str]:
        names = ", ".join(NAMES[: self.axes])
        tests = []
        for d in range(self.axes):
            extra = int(self.rng.integers(0, 3)) if self.rng.random() < 0.3 else 0
            low, high = -self.low[d] + extra, self.high[d]
            if low:
                tests.append(self.rng.choice([f"{NAMES[d]} >= {low}", f"{NAMES[d]} > {low - 1}",
                                              f"{low} <= {NAMES[d]}"]))  # fmt: skip
            if high:
                tests.append(self.rng.choice([f"{NAMES[d]} < a.shape[{d}] - {high}",
                                              f"{NAMES[d]} + {high} < a.shape[{d}]"]))  # fmt: skip
        out = [f"    {names} = wp.tid()"]
        body = [self.typed(s) for s in body]
        way = self.rng.integers(3)
        if not tests:
            return [*out, *(f"    {s}" for s in body)]
        if way == 0:
            return [*out, f"    if {' and '.join(tests)}:", *(f"        {s}" for s in body)]
        if way == 1:
            left = " or ".join(f"not ({t})" for t in tests)
            return [*out, f"    if {left}:", "        return", *(f"    {s}" for s in body)]
        for k, t in enumerate(tests):
            out.append(f"{'    ' * (k + 1)}if {t}:")
        return [*out, *(f"{'    ' * (len(tests) + 1)}{s}" for s in body)]

    def typed(self, s: str) -> str:
        """Constants of the kernel's type of numbers."""
        if self.kinds[0] == "float":
            return s
        for constant in ("1.0", "0.5", "0.0", "2.0"):
            s = s.replace(f" {constant}", f" wp.float64({constant})")
        return s


def module(seed: int, folder: Path) -> tuple[Any, list[Kernel]]:
    made = [Kernel(seed * TOGETHER + k) for k in range(TOGETHER)]
    path = folder / f"rows_{seed}.py"
    path.write_text("\n\n".join(["import engine as wp\n", *(k.text for k in made)]))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found, made


def values_of(kernel: Any, of: Kernel, device: Any) -> list[Any]:
    rng = np.random.default_rng(5)
    kind = wp.float64 if of.kinds[0] != "float" else wp.float32
    with wp.ScopedDevice(device):
        arrays = [wp.array(rng.standard_normal(of.shape), dtype=kind, requires_grad=True)
                  for _ in range(5)]  # fmt: skip
        with wp.Tape() as tape:
            wp.launch(kernel, of.shape, arrays)
        values = [a.numpy().copy() for a in arrays]
        seeds = [wp.array(rng.standard_normal(of.shape), dtype=kind) for _ in range(2)]
        tape.backward(grads=dict(zip(arrays[3:], seeds, strict=True)))
        return values + [a.grad.numpy() for a in arrays]


def cases() -> list[Any]:
    out = []
    for where in PLACES:
        name, marks = (where, []) if isinstance(where, str) else ("cuda", [pytest.mark.gpu])
        for k in range(MODULES):
            more = [pytest.mark.sweep] if name == "emulated" and k else []
            out.append(pytest.param(name, k, id=f"{k}-{name}", marks=[*marks, *more]))
    return out


@pytest.mark.parametrize(("where", "seed"), cases())
def test_random_rows(
    where: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []  # launches whose threads run so, by their number of threads

    def is_many(count: int, at_once: int) -> bool:
        rows.append(count)
        return True

    monkeypatch.setattr(runner, "is_many", is_many)
    found, made = module(seed, tmp_path)
    with place(where) as device:
        for of in made:
            kernel = getattr(found, of.name)
            here, there = values_of(kernel, of, "cpu"), values_of(kernel, of, device)
            for a, b in zip(there, here, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=of.text)
    assert len(rows) >= TOGETHER // 2
