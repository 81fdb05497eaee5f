"""Reruns a Warp launch in Warp itself on copies, with its results and gradients."""

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

    def moving(self) -> dict[str, Array]:
        """What those arrays of floats held before it that have a gradient."""
        wanted = ((p, x) for p, x in self._before.items() if self._arrays[p].requires_grad)
        found = (leaf for p, x in wanted for leaf in leaves(x, p))
        return {name: x for name, x in found if x.dtype.kind == "f"}

    def forward(self, inputs: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """What its arrays hold after it. inputs: what some hold before it, not their own."""
        self._begin(inputs)
        self._run()
        return _read(self._arrays)

    def gradients(
        self, seeds: Mapping[str, Array], at: Contents | None = None,
        inputs: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:  # fmt: skip
        """What its adjoint makes of cotangents.

        at: contents of arrays while the adjoint runs; the launch's own for those left out. inputs:
        as for `forward`.
        """
        self._begin(inputs)
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

    def repeats(self) -> bool:
        """Whether it leaves what the recorded launch left, but for rounding."""
        found = self.forward()
        for path in self._arrays:
            then = self._launch.after.get(path)
            for name, x in leaves(then, path) if then is not None else ():
                with np.errstate(all="ignore"):
                    near = np.isclose(found[name], x, rtol=1e-4, atol=1e-6, equal_nan=True)
                if not np.all(near):
                    return False
        return True

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

    def _begin(self, inputs: Mapping[str, Array] | None) -> None:
        self._put(self._before)
        for path, a in self._arrays.items() if inputs else ():
            for name, part in leaves(view(a), path):
                if inputs and name in inputs:
                    part[...] = inputs[name].reshape(part.shape)

    def _run(self) -> None:
        more = {"block_dim": self._launch.block_dim} if self._launch.block_dim > 1 else {}
        self._warp.launch(
            self._launch.kernel, dim=self._launch.dim, inputs=self._args, device="cpu", **more
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
