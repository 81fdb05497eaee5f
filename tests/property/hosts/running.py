"""Runs host programs: in several ways by the engine, and as they are meant."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

import engine as wp
from engine import config
from tests.property.hosts import kernels
from tests.property.hosts.dual import World
from tests.property.hosts.programs import Program


class Engine:
    """The module `engine`, with a name that programs use for what has none there."""

    def __getattr__(self, name: str) -> Any:
        return getattr(wp, name)

    @staticmethod
    def indexed(a: Any, at: Any) -> Any:
        return wp.indexedarray(a, [wp.array(at, dtype=int)])


ENGINE = Engine()
WAYS = ("plain", "native")


@cache
def compiled() -> SimpleNamespace:
    """The kernels of the engine."""
    return kernels.make(wp)


def _plain(values: np.ndarray) -> np.ndarray:
    """As numbers: structs have their fields as last axis."""
    if values.dtype.names:
        return np.stack([values[n] for n in values.dtype.names], -1).copy()
    return np.array(values)


class Seen:
    """What a program shows, and the numbers that it asks for."""

    def __init__(self, seed: int, read: Callable[[Any], np.ndarray]) -> None:
        self.values: list[np.ndarray] = []
        self._seed = seed
        self._read = read

    def data(self, number: int, shape: tuple[int, ...], it: int = 0) -> np.ndarray:
        """Numbers for a place in a program, which differ from iteration to iteration."""
        n = np.arange(int(np.prod(shape)), dtype=float)
        at = 1.7 * n + 0.37 * number + 0.91 * it + 0.13 * (self._seed % 1000)
        return np.round(1.5 * np.sin(at), 3).reshape(shape)

    def see(self, a: Any) -> None:
        self.values.append(_plain(self._read(a)))
        if a.requires_grad:
            self.values.append(_plain(self._read(a.grad)))


def _directly(seen: Seen) -> Callable[..., None]:
    def drive(step: Any, before: Any, arrays: list[Any], steps: int) -> None:
        for it in range(steps):
            before(it)
            step()
            for a in arrays:
                seen.see(a)

    return drive


def _captured(seen: Seen) -> Callable[..., None]:
    def drive(step: Any, before: Any, arrays: list[Any], steps: int) -> None:
        with wp.ScopedCapture() as capture:
            step()
        for it in range(steps):
            before(it)
            wp.capture_launch(capture.graph)
            for a in arrays:
                seen.see(a)

    return drive


def run(
    program: Program, seed: int, native: bool, graph: bool = False, peek: bool = False,
    eager: bool = False,
) -> list[np.ndarray]:  # fmt: skip
    """What the engine makes of a program; last, what it has warned of.

    native: from its first launch on, if its kernels have run before; else not at all. graph: its
    step as a captured graph. peek: arrays are shown by views of their memory, not by copies.
    eager: tapes copy what launches read at once.
    """

    def read(a: Any) -> np.ndarray:
        return a.numpy() if peek else wp.clone(a, requires_grad=False).numpy()

    seen = Seen(seed, read)
    before = config.native_after, config.tape_snapshots
    config.native_after = 0 if native else -1
    config.tape_snapshots = "eager" if eager else "lazy"
    scope: dict[str, Any] = {}
    exec(program.text, scope)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            drive = (_captured if graph else _directly)(seen)
            scope["program"](ENGINE, compiled(), seen.data, seen.see, drive)
    finally:
        config.native_after, config.tape_snapshots = before
    said = [str(w.message) for w in told]
    return [*seen.values, np.array(said, object).astype(str)]


def meant(program: Program, seed: int) -> list[np.ndarray]:
    """What it means."""
    world = World()
    seen = Seen(seed, lambda a: a.numpy())
    scope: dict[str, Any] = {}
    exec(program.text, scope)
    scope["program"](world, kernels.make(world), seen.data, seen.see, _directly(seen))
    return seen.values
