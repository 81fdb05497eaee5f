"""A launch of Warp, run again by Warp itself on copies: its results, and its gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from engine.foreign.warp_tapes import WarpLaunch
from engine.foreign.warp_values import Array, Contents, for_warp, leaves, view


class WarpRun:
    """One launch, on arrays of its own. Results are by the names that the engine gives arrays.

    Arguments that are the same memory are one array, by the name of the first of them.
    """

    def __init__(self, warp: Any, launch: WarpLaunch) -> None:
        self._warp = warp
        self._launch = launch
        make = for_warp(warp, launch.before)
        self._args = [make(tree) for tree in launch.args]
        self._arrays = {p: make.arrays[p] for p in own_paths(launch) if make.arrays[p].size}
        self._before = {p: view(a).copy() for p, a in self._arrays.items()}

    def forward(self) -> dict[str, Array]:
        """What its arrays hold after it."""
        self._put(self._before)
        self._run()
        return _read(self._arrays)

    def gradients(self, seeds: Mapping[str, Array], at: Contents | None = None) -> dict[str, Array]:
        """What its adjoint makes of cotangents.

        at: contents of arrays while the adjoint runs; the launch's own for those left out.
        """
        self._put(self._before)
        tape = self._warp.Tape()
        with tape:
            self._run()
        self._put(at or {})
        moving = {p: a for p, a in self._arrays.items() if a.requires_grad and a.grad is not None}
        for path, a in moving.items():
            data = np.zeros_like(self._before[path])
            for name, part in leaves(data, path):
                if name in seeds and part.dtype.kind == "f":
                    part[...] = seeds[name].reshape(part.shape)
            view(a.grad)[...] = data
        tape.backward()
        return _read({p: a.grad for p, a in moving.items()})

    def cotangents(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random ones of everything that it changes and that has a gradient."""
        after = self.forward()
        before = {n: x for p, data in self._before.items() for n, x in leaves(data, p)}
        wanted = {n for p, a in self._arrays.items() if a.requires_grad
                  for n, _ in leaves(self._before[p], p)}  # fmt: skip
        return {
            n: rng.standard_normal(x.shape).astype(x.dtype) for n, x in after.items()
            if n in wanted and x.dtype.kind == "f" and not np.array_equal(x, before[n])
        }  # fmt: skip

    def _run(self) -> None:
        self._warp.launch(
            self._launch.kernel, dim=self._launch.dim, inputs=self._args, device="cpu"
        )

    def _put(self, contents: Contents) -> None:
        for path, x in contents.items():
            if x is not None and path in self._arrays:
                view(self._arrays[path])[...] = x


def own_paths(launch: WarpLaunch) -> list[str]:
    """The arrays of a launch, the first of those that are the same memory."""
    first: dict[Any, str] = {}
    for a in launch.arrays:
        first.setdefault(a.key if a.begin and all(a.shape) else a.path, a.path)
    return list(first.values())


def _read(arrays: Mapping[str, Any]) -> dict[str, Array]:
    return {n: x.copy() for p, a in arrays.items() for n, x in leaves(view(a), p)}
