"""Runs corpus cases and differentiates them by central differences in float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import engine as wp
from tests.corpus.case import Arr, Case

ELEMENTS = {
    "s": ("float32", "float64", ()),
    "v2": ("vec2", "vec2d", (2,)),
    "v3": ("vec3", "vec3d", (3,)),
    "v4": ("vec4", "vec4d", (4,)),
    "m22": ("mat22", "mat22d", (2, 2)),
    "m33": ("mat33", "mat33d", (3, 3)),
    "m44": ("mat44", "mat44d", (4, 4)),
    "q": ("quat", "quatd", (4,)),
    "t": ("transform", "transformd", (7,)),
    "v6": ("spatial_vector", "spatial_vectord", (6,)),
    "m23": ("", "", (2, 3)),
    "m66": ("spatial_matrix", "spatial_matrixd", (6, 6)),
}


def element(a: Arr, double: bool) -> Any:
    if a.element == "m23":  # has no name
        return wp.types.matrix(shape=(2, 3), dtype=wp.float64 if double else wp.float32)
    return getattr(wp, ELEMENTS[a.element][1 if double else 0])


def data_of(a: Arr, rng: np.random.Generator) -> np.ndarray:
    shape = a.shape + ELEMENTS[a.element][2]
    if a.role == "out":
        return np.zeros(shape)
    # Rounded to float32, so that both precisions differentiate at the same point.
    return rng.uniform(a.low, a.high, shape).astype(np.float32).astype(np.float64)


@dataclass
class Run:
    """One case at one precision: its arguments, ready to launch."""

    case: Case
    kernel: Any
    double: bool
    data: list[Any]

    def arrays(self, requires_grad: bool) -> list[Any]:
        out = []
        for a, d in zip(self.case.args, self.data, strict=True):
            if isinstance(a, Arr):
                d = wp.array(d, dtype=element(a, self.double), requires_grad=requires_grad)
            out.append(d)
        return out

    def launch(self, args: list[Any]) -> None:
        wp.launch(self.kernel, dim=self.case.dim, inputs=args)


def inputs(case: Case) -> list[int]:
    return [i for i, a in enumerate(case.args) if isinstance(a, Arr) and a.role != "out"]


def outputs(case: Case) -> list[int]:
    return [i for i, a in enumerate(case.args) if isinstance(a, Arr) and a.role != "in"]


def cotangents(case: Case, rng: np.random.Generator) -> dict[int, np.ndarray]:
    return {
        i: rng.standard_normal(case.args[i].shape + ELEMENTS[case.args[i].element][2])
        for i in outputs(case)
    }


def differences(run: Run, weights: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """d <weights, outputs> / d inputs of a float64 run, by Richardson-extrapolated differences."""

    def loss(data: list[Any]) -> float:
        args = Run(run.case, run.kernel, run.double, data).arrays(False)
        run.launch(args)
        return float(sum((args[i].numpy() * w).sum() for i, w in weights.items()))

    out = {}
    for i in inputs(run.case):
        g = np.zeros_like(run.data[i])
        for j in range(g.size):

            def central(h: float, i: int = i, j: int = j) -> float:
                sides = []
                for s in (h, -h):
                    data = [np.copy(d) if isinstance(d, np.ndarray) else d for d in run.data]
                    data[i].flat[j] += s
                    sides.append(loss(data))
                return (sides[0] - sides[1]) / (2 * h)

            g.flat[j] = (4 * central(1e-4) - central(2e-4)) / 3
        out[i] = g
    return out
