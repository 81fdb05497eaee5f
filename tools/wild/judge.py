"""Decides how a kernel of another project can be launched, and which engine is right.

The judge is the kernel's IR with every float made float64, run by the NumPy interpreter of the
IR: it shares neither code generation nor adjoints with what it judges.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.lang.structs import ARRAYS, IndexedArrayType, StructType, TupleType
from engine.lang.types import ScalarType, scalar_of, shape_of
from engine.lang.values import value_class
from tools.wild import arguments
from tools.wild.side import seed_of

# Of differences, relative to the number that is moved.
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)
HANDLES = ("mesh_", "bvh_", "hash_grid_", "volume_", "texture_", "tile_")


class NotRandom(Exception):
    """A kernel has an argument that cannot be made of random numbers."""


def spec_of(kind: Any) -> arguments.Spec:
    """A type as plain data. Raises NotRandom."""
    if isinstance(kind, (IndexedArrayType, TupleType)):
        raise NotRandom("it takes an indexed array or a tuple")
    if isinstance(kind, ARRAYS):
        element = kind.element
        if isinstance(element, StructType) and element.linked:
            raise NotRandom("it takes an array of structs that hold arrays")
        return {"t": "array", "of": spec_of(element), "ndim": kind.ndim}
    if isinstance(kind, StructType):
        if kind.missing:
            raise NotRandom("it takes a struct with a field of a type that is not here")
        return {"t": "struct", "fields": {n: spec_of(f) for n, f in kind.fields.items()}}
    scalar = scalar_of(kind)
    if isinstance(kind, ScalarType):
        return {"t": "value", "dtype": scalar.name, "shape": [], "name": scalar.name}
    return {
        "t": "value", "dtype": scalar.name, "shape": list(shape_of(kind)),
        "tag": getattr(kind, "tag", ""), "name": value_class(kind).__name__,
    }  # fmt: skip


def plan(side: Any, task: Any) -> dict[str, Any]:
    """How a kernel is launched: types, arguments, grid, what it writes, draws that fit."""
    from engine.compile.pipeline import Variants
    from engine.diagnostics import EngineError
    from engine.ir.interp import InterpError
    from engine.ir.nodes import Let, callees, walk
    from engine.runtime.kernel import lower
    from tools.wild.child import apart
    from tools.wild.instances import candidates

    kernel = side.kernels[task["kernel"]]
    if found := apart(kernel.func):
        return {"skip": f"with {found}"}
    types: dict[str, Any] | None = None
    ir, own = None, kernel.signature.types
    if kernel.is_generic:
        for given in candidates(kernel):
            if not isinstance(given, dict):
                given = dict(zip(kernel.signature.types, given, strict=True))
            try:
                instance = kernel.add_overload(given)
                ir = lower(instance)
            except EngineError:
                continue
            own = dict(zip(kernel.signature.types, instance.types, strict=True))
            types = {n: spec_of(own[n]) for n in kernel.signature.patterns}
            break
        if ir is None:
            return {"skip": "generic, and no instance was found"}
    else:
        ir = lower(kernel)
    functions = [ir, *callees(ir)]
    ops = [s for f in functions for s in walk(f.body)]
    if any(f.name.startswith(HANDLES) for f in functions):
        return {"skip": "its arguments are handles of meshes and the like"}
    if any(str(getattr(s, "op", "")).startswith(HANDLES) for s in ops):
        return {"skip": "its arguments are handles of meshes and the like"}
    try:
        spec = {name: spec_of(kind) for name, kind in own.items()}
    except NotRandom as error:
        return {"skip": str(error)}
    arity = max((_count(s) for s in ops if isinstance(s, Let) and s.op == "tid"), default=1)
    written = sorted(_arrays(spec, Variants(ir).written))
    chosen = {"types": types, "spec": spec, "grid": arguments.GRIDS[arity], "written": written}
    why = ""
    for style in range(task.get("first", 0), len(arguments.STYLES)):
        try:
            Lifted(side, {**task, **chosen, "style": style}, lifted=False).after()
        except InterpError as error:  # an access outside of an array, or a loop without end
            why = str(error)
            continue
        return {**chosen, "style": style, "backward": True}
    return {"skip": "no random arguments without accesses outside of arrays", "why": why}


def _count(tid: Any) -> int:
    """The number of coordinates that a kernel asks for."""
    return int(tid.args[1].value)


def _arrays(spec: arguments.Spec, names: Any) -> set[str]:
    """Paths of the arrays that leaves belong to."""
    found: set[str] = set()

    def visit(s: arguments.Spec, path: str) -> None:
        if s["t"] == "array":
            if any(n == path or n.startswith(path + ".") for n in names):
                found.add(path)
        elif s["t"] == "struct":
            for name, field in s["fields"].items():
                visit(field, f"{path}.{name}")

    for name, s in spec.items():
        visit(s, name)
    return found


class Lifted:
    """The kernel in float64: its outputs, and what seeds make of them."""

    def __init__(self, side: Any, task: Any, lifted: bool = True) -> None:
        from engine import ad
        from engine.runtime.arguments import Arguments
        from engine.runtime.kernel import lower

        kernel = side.alone(side.kernels[task["kernel"]], task["types"])
        ir = lower(kernel)
        if lifted and not ad.can_lift(ir):
            raise NotRandom("it has native code, which has no float64 form")
        self.ir = ad.lift(ir) if lifted else ir
        given, _ = side.arguments(task, kernel)
        flat = given
        if ir.arguments:  # there are structs
            split = Arguments(ir.arguments)
            flat = [x for k, g in enumerate(given) for x in split.split(k, g)]
        self.names = [p.name for p in self.ir.params]
        self.start = [self._plain(p, x) for p, x in zip(self.ir.params, flat, strict=True)]
        self.grid, self.task = tuple(task["grid"]), task

    @staticmethod
    def _plain(p: Any, x: Any) -> Any:
        dtype = scalar_of(p.type).numpy
        if hasattr(x, "numpy"):
            return np.array(x.numpy(), dtype)
        return np.array(x, dtype).reshape(np.shape(x) or shape_of(p.type))[()]

    def after(self, leaf: str = "", index: Any = None, step: float = 0.0) -> dict[str, Any]:
        """Contents after a run, where one number was moved before it."""
        from engine.ir import interp

        values = [x.copy() if isinstance(x, np.ndarray) else x for x in self.start]
        if leaf:
            values[self.names.index(leaf)][index] += step
        interp.run(self.ir, values, self.grid, max_steps=200_000)
        return dict(zip(self.names, values, strict=True))

    def noise(self) -> float:
        """What rounding in float64 may do to the weighted outputs."""
        total = 0.0
        for name, value in self.after().items():
            if any(name == w or name.startswith(w + ".") for w in self.task["written"]):
                if value.dtype.kind == "f":
                    seed = seed_of(self.task["seed"], name, value.shape)
                    total += float(np.abs(value * seed).sum())
        return total * float(np.finfo(np.float64).eps)

    def change(self, leaf: str, index: Any, to: float, since: float) -> float:
        """How much more the outputs, weighted by their seeds, are at one step than at another.

        Elements are subtracted before they are summed: what does not change may be large.
        """
        a, b, total = self.after(leaf, index, to), self.after(leaf, index, since), 0.0
        for name, value in a.items():
            if any(name == w or name.startswith(w + ".") for w in self.task["written"]):
                if value.dtype.kind == "f":
                    seed = seed_of(self.task["seed"], name, value.shape)
                    total += float(((value - b[name]) * seed).sum())
        return total


def decide(side: Any, task: Any) -> dict[str, Any]:
    """Numbers of the judge: outputs in float64, or slopes at the entries that differ."""
    lifted = Lifted(side, task)
    if task["what"] == "forward":
        return {"after": {k: v for k, v in lifted.after().items() if isinstance(v, np.ndarray)}}
    slopes = []
    for leaf, index in task["entries"]:
        at = tuple(index)
        x = abs(float(lifted.start[lifted.names.index(leaf)][at]))
        row = []
        for step in STEPS:
            h = step * max(1.0, x)
            forth, back = lifted.change(leaf, at, h, 0.0) / h, lifted.change(leaf, at, 0.0, -h) / h
            row.append([0.5 * (forth + back), forth, back, lifted.noise() / h])
        slopes.append(row)
    return {"slopes": slopes}
