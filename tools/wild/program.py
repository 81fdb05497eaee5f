"""Runs one program on the engine, on the engine in float64, or on Warp; keeps what it leaves.

A process for each run: `python -m tools.wild.program SIDE ANSWER MODULE[:CALL] [ARGUMENT]...`, SIDE
one of `engine`, `wide` (all of float32 is float64) and `warp`. The numbers and arrays that can be
reached from the program's globals when it ends go to ANSWER; what it prints is the caller's.
Gradients that tapes clear at the end of a step are kept as they were before. Arrays of `empty` are
zeros, of NumPy too, and the global generators of NumPy and Python are seeded.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import pickle
import random
import runpy
import sys
import time
import traceback
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

DEPTH = 5  # of attributes and items, below a global
ITEMS = 200  # of one list or dictionary
# In names of what differs from run to run.
CLOCKS = ("timer", "fps", "elapsed", "duration", "wall_", "per_s", "start_time", "stop_time")
OTHERS = ("group_roots",)  # nodes of trees, of which either has its own


class Wide(importlib.abc.MetaPathFinder):
    """Makes the engine's float32 another name of its float64, as its types are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != "engine.lang.types":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        assert spec is not None and spec.loader is not None
        run = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            run(module)
            names = vars(module)
            wide = names["FLOAT64"]
            names["FLOAT32"] = names["SCALARS"]["float32"] = names["BY_NAME"]["float32"] = wide

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def widen() -> None:
    """What goes round the types: rounding of numbers, and vectors made of bytes."""
    from engine.lang import scalars, vectors

    assert scalars.float32.__ir_type__ is scalars.float64.__ir_type__
    scalars.float32._round = np.float64

    def from_buffer(cls: Any, source: Any, offset: int = 0) -> Any:
        values = np.asarray(source)
        narrow = values.dtype == np.float32
        start = offset // 4 if narrow else offset // 8
        return cls(*values.ravel()[start:].astype(np.float64)[: int(np.prod(cls._shape))])

    vectors.Components.from_buffer = classmethod(from_buffer)  # type: ignore[attr-defined]


# Gradients as they were before their tape cleared them, with the arrays, by their ids.
cleared: dict[int, tuple[Any, Any]] = {}


def prepare(side: str) -> Any:
    """The package that is called `warp` on a side."""
    if side != "warp":
        if side == "wide":
            sys.meta_path.insert(0, Wide())
        from engine import alias

        if side == "wide":
            widen()
        alias.install("warp")
    import warp

    warp.config.quiet = True
    warp.empty, warp.empty_like = warp.zeros, warp.zeros_like
    clear = warp.Tape.zero

    def zero(tape: Any) -> None:
        for a, grad in list(tape.gradients.items()):
            if isinstance(a, warp.array) and isinstance(grad, warp.array):
                cleared[id(a)] = a, grad.numpy().copy()
        clear(tape)

    warp.Tape.zero = zero
    for name in ("empty", "empty_like"):
        setattr(np, name, getattr(np, name.replace("empty", "zeros")))
    return warp


class Found:
    """The arrays and numbers below an object, by the way to them. packages: of classes entered."""

    def __init__(self, array: Any, packages: set[str]) -> None:
        self.array, self.packages = array, packages
        self.values: dict[str, Any] = {}
        self.seen: dict[int, Any] = {}  # kept, so that no id is given twice

    def _fields(self, o: Any) -> Any:
        cls = getattr(o, "_cls", None)  # of a struct of Warp
        kind = getattr(type(o), "__ir_type__", None)
        names = getattr(cls, "vars", None) or getattr(kind, "fields", None)
        if isinstance(names, dict):
            return [(n, getattr(o, n, None)) for n in names]
        if type(o).__module__.partition(".")[0] in self.packages and not isinstance(o, type):
            return list(getattr(o, "__dict__", {}).items())
        return []

    def walk(self, name: str, o: Any, depth: int = 0) -> None:
        """Adds what is at `o` and below it."""
        if isinstance(o, (bool, int, float)):
            if not name.endswith(".id"):  # a handle
                self.add(name, np.asarray(o))
            return
        if depth > DEPTH or id(o) in self.seen:
            return
        self.seen[id(o)] = o
        if isinstance(o, self.array):
            self.add(name, o.numpy())
            if getattr(o, "grad", None) is not None:
                self.add(f"{name}.grad", o.grad.numpy())
            if id(o) in cleared:
                self.add(f"{name}.grad, before it was cleared", cleared[id(o)][1])
        elif isinstance(o, np.ndarray):
            self.add(name, o)
        elif isinstance(o, (dict, list, tuple)):
            items = o.items() if isinstance(o, dict) else enumerate(o)
            for _, (k, item) in zip(range(ITEMS), items, strict=False):
                self.walk(f"{name}[{k}]", item, depth + 1)
        else:
            for k, item in self._fields(o):
                if not k.startswith("_"):
                    self.walk(f"{name}.{k}", item, depth + 1)

    def add(self, name: str, value: Any) -> None:
        """Keeps a value; of records, each field; no handles, which are uint64."""
        if value.dtype.names:
            for field in value.dtype.names:
                self.add(f"{name}.{field}", value[field])
        elif (
            value.dtype != np.uint64
            and value.dtype.kind in "fiub"
            and not any(c in name.lower() for c in (*CLOCKS, *OTHERS))
        ):
            self.values[name] = value.copy()


def run(side: str, program: str, arguments: list[str]) -> dict[str, Any]:
    """What a program leaves, or why it did not end."""
    module, _, call = program.partition(":")
    wp = prepare(side)
    sys.argv = [module, *arguments]
    random.seed(0)
    np.random.seed(0)
    top = module.partition(".")[0]
    kept: list[Any] = []
    if top == "newton":  # its examples are locals of a function
        examples: Any = importlib.import_module("newton.examples")
        plain = examples.run

        def noted(example: Any, *args: Any, **kwargs: Any) -> Any:
            kept.append(example)
            return plain(example, *args, **kwargs)

        examples.run = noted
    began = time.perf_counter()
    names = runpy.run_module(module, run_name=module if call else "__main__")
    if call:
        names["result"] = eval(call, names)  # the user's own, as the program is
    seconds = time.perf_counter() - began
    found = Found(wp.array, {"__main__", top} - {"warp"})
    for name, value in [("example", x) for x in kept] or names.items():
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            found.walk(name, value)
    return {"values": found.values, "seconds": seconds}


def main() -> None:
    """Arguments: see above."""
    side, answer, program, *arguments = sys.argv[1:]
    try:
        out = run(side, program, arguments)
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            error = RuntimeError("the program ended itself")
        said = getattr(error, "diagnostics", None)
        last = str(error).strip().splitlines()
        text = f"{said[0].code}: {said[0].message}" if said else (
            f"{type(error).__name__}: {last[0] if last else ''}"
        )  # fmt: skip
        out = {"cause": text[:300]}
        traceback.print_exc()
    with Path(answer).open("wb") as file:
        pickle.dump(out, file)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
