"""Runs kernels of a folder, each in a child, on the engine or on Warp: one of two such servers.

It imports the modules once, and forks for each task. Tasks and answers are lines of JSON on stdin
and stdout; arrays go to files. Only what is asked of the engine alone imports it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from tools.wild import arguments, sources
from tools.wild.child import Below, _import
from tools.wild.standins import StandIns


class Side:
    """One of the packages with the sources imported. name: `engine` or `warp`."""

    def __init__(self, name: str, folder: Path, skip: list[str], seconds: int) -> None:
        self.name = name
        found = sources.find(folder, skip)
        if name == "engine":
            from engine import alias

            alias.install("warp")
            if found.package.partition(".")[0] == "warp":
                sys.meta_path.insert(0, Below(found.package, found.root))
        stand_ins = StandIns()
        if str(found.root) not in sys.path:
            sys.path.append(str(found.root))
        sys.meta_path.append(stand_ins)
        import warp

        self.wp = warp
        if name == "warp":
            warp.config.quiet = True
        self.folder = str(folder.resolve())
        for module in found.modules:
            while (error := _import(module, seconds)) is not None:
                wanted = (getattr(error, "name", None) or "").partition(".")[0]
                if not isinstance(error, ModuleNotFoundError) or wanted in stand_ins.names:
                    break
                if not wanted or wanted in ("warp", found.package.partition(".")[0]):
                    break
                stand_ins.names.add(wanted)
        self.kernels: dict[str, Any] = {}
        for kernel in self._kernels():
            code = kernel.func.__code__
            place = f"{os.path.relpath(code.co_filename, found.root)}:{code.co_firstlineno}"
            name_, k = f"{place}:{kernel.key}", 0
            while (unique := f"{name_}#{k}" if k else name_) in self.kernels:
                k += 1
            self.kernels[unique] = kernel

    def _kernels(self) -> list[Any]:
        import gc

        cls = self.wp.Kernel
        found = [k for k in gc.get_objects() if type(k) is cls]
        if self.name == "engine":
            found = [k for k in found if k.types is None]
        found = [k for k in found if k.func.__code__.co_filename.startswith(self.folder)]
        return sorted(
            found, key=lambda k: (k.func.__code__.co_filename, k.func.__code__.co_firstlineno)
        )

    def alone(self, kernel: Any, types: dict[str, Any] | None) -> Any:
        """The kernel in a module of its own, so that nothing else is compiled with it."""
        module = self.wp.Module(f"alone_{kernel.key}_{os.getpid()}")
        made = self.wp.Kernel(kernel.func, key=kernel.key, module=module)
        if types:
            made = self.wp.overload(made, {n: self.type_of(s) for n, s in types.items()})
        return made

    def type_of(self, spec: arguments.Spec) -> Any:
        """The type of a specification."""
        wp = self.wp
        if spec["t"] == "array":
            return wp.array(dtype=self.type_of(spec["of"]), ndim=spec["ndim"])
        found = getattr(wp, spec["name"], None)  # else it is a vector without a name
        return found or wp.types.vector(length=spec["shape"][0], dtype=getattr(wp, spec["dtype"]))

    def build(self, spec: arguments.Spec, kind: Any, value: Any, path: str, arrays: Any) -> Any:
        """An argument of a type; the arrays in it are noted by their names."""
        wp = self.wp
        if spec["t"] == "array":
            out = self._array(spec, kind.dtype, value)
            arrays[path] = (spec, out)
            return out
        if spec["t"] == "struct":
            made = kind()
            for name, field in spec["fields"].items():
                inner = self._field(kind, name)
                item = self.build(field, inner, value[name], f"{path}.{name}", arrays)
                setattr(made, name, item)
            return made
        if not spec["shape"]:
            return value.item()
        cls = getattr(wp, spec["name"], None) or kind
        return cls(*[x.item() for x in np.ravel(value)])

    def _field(self, kind: Any, name: str) -> Any:
        if not hasattr(kind, "__ir_type__"):  # of a struct of Warp
            return kind.vars[name].type
        from engine.runtime.parameters import _annotation

        return _annotation(kind.__ir_type__.fields[name], None)

    def _array(self, spec: arguments.Spec, dtype: Any, value: Any) -> Any:
        inner = spec["of"]
        if inner["t"] == "struct":
            shape = arguments.SHAPES[spec["ndim"]]
            records = arguments.structured(value, np.dtype(dtype.numpy_dtype()), shape)
            return self.wp.array(records, dtype=dtype, requires_grad=True, device="cpu")
        grad = np.dtype(inner["dtype"]).kind == "f"
        return self.wp.array(value, dtype=dtype, requires_grad=grad, device="cpu")

    def arguments(self, task: Any, kernel: Any) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of a task, and the arrays in them."""
        rng = np.random.default_rng(task["seed"])
        values = {n: arguments.draw(s, rng, task["style"]) for n, s in task["spec"].items()}
        arrays: dict[str, Any] = {}
        given = [
            self.build(task["spec"][a.label], a.type, values[a.label], a.label, arrays)
            for a in kernel.adj.args
        ]
        return given, arrays

    def run(self, task: Any) -> dict[str, Any]:
        """Forward, and backward from random seeds; contents and gradients of the arrays."""
        wp = self.wp
        kernel = self.alone(self.kernels[task["kernel"]], task["types"])
        given, arrays = self.arguments(task, kernel)
        grid = tuple(task["grid"])
        began = time.perf_counter()
        out: dict[str, Any] = {}
        if not task["backward"]:
            wp.launch(kernel, dim=grid, inputs=given, device="cpu")
        else:
            with wp.Tape() as tape:
                wp.launch(kernel, dim=grid, inputs=given, device="cpu")
        wp.synchronize()
        data = {p: dict(arguments.parts(a.numpy(), p)) for p, (_, a) in arrays.items()}
        out["after"] = {k: v.copy() for d in data.values() for k, v in d.items()}
        if task["backward"]:
            seeds = {}
            for path in task["written"]:
                a = arrays[path][1]
                if not a.requires_grad:
                    continue
                host = a.numpy()
                seed = np.zeros(host.shape, host.dtype)
                for name, part in arguments.parts(seed, path):
                    if part.dtype.kind == "f":
                        part[...] = seed_of(task["seed"], name, part.shape)
                seeds[a] = wp.array(seed, dtype=a.dtype, device="cpu")
            tape.backward(grads=seeds)
            wp.synchronize()
            grads = {}
            for path, (_, a) in arrays.items():
                if a.requires_grad and a.grad is not None:
                    for name, part in arguments.parts(a.grad.numpy(), path):
                        if part.dtype.kind == "f":
                            grads[name] = part.copy()
            out["grads"] = grads
        out["seconds"] = time.perf_counter() - began
        return out

    def handle(self, task: Any) -> dict[str, Any]:
        """Does a task."""
        if task["do"] == "run":
            return self.run(task)
        from tools.wild import judge  # of the engine alone

        return judge.plan(self, task) if task["do"] == "plan" else judge.decide(self, task)


def seed_of(seed: int, name: str, shape: tuple[int, ...]) -> Any:
    """The cotangent of a leaf: the same wherever it is asked for."""
    rng = np.random.default_rng([seed, *name.encode()])
    return rng.normal(size=shape)


def forked(side: Side, task: Any) -> dict[str, Any]:
    """Does a task in a child; says what became of it."""
    answer = Path(task["answer"])
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        signal.alarm(task["seconds"])
        try:
            out = {"ok": True, **side.handle(task)}
        except BaseException as error:
            found = getattr(error, "diagnostics", None)
            cause = f"{found[0].code}: {found[0].message}" if found else repr(error)
            out = {"ok": False, "cause": cause[:400], "trace": traceback.format_exc()[-3000:]}
        with answer.open("wb") as file:
            pickle.dump(out, file)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if answer.exists():
        return {"ok": True}
    code = os.waitstatus_to_exitcode(status)
    why = "took too long" if code == -signal.SIGALRM else f"ended by signal {-code}"
    return {"ok": False, "cause": why}


def main() -> None:
    """Arguments: `engine` or `warp`, and a JSON object with folder, skip and seconds."""
    warnings.simplefilter("ignore")
    said = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    options = json.loads(sys.argv[2])
    side = Side(sys.argv[1], Path(options["folder"]), options["skip"], options["seconds"])
    with os.fdopen(said, "w") as out:
        print(json.dumps(sorted(side.kernels)), file=out, flush=True)
        for line in sys.stdin:
            print(json.dumps(forked(side, json.loads(line))), file=out, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
