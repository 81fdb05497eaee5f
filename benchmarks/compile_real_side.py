"""Compiles kernels of a package of sources, on the engine or on Warp, and times the phases.

A server like `tools.wild.side`: it imports the modules once and forks for each kernel, so that
nothing is there yet when one is compiled. Tasks and answers are lines of JSON.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.wild import side  # noqa: E402

T = TypeVar("T")


class Timed:
    """Seconds of phases, and what was learned on the way."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, made: Callable[..., T], *args: Any) -> T:
        """What `made` gives for arguments; its time is added to a phase."""
        began = time.perf_counter()
        out = made(*args)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began
        return out


def types_of(there: Any, kernel: Any) -> tuple[dict[str, Any] | None, Any]:
    """Types for the open parameters of a kernel of the engine, and the instance of them."""
    from engine.diagnostics import EngineError
    from engine.runtime.kernel import lower
    from tools.wild.instances import candidates
    from tools.wild.judge import spec_of

    if not kernel.is_generic:
        return None, kernel
    for given in candidates(kernel):
        if not isinstance(given, dict):
            given = dict(zip(kernel.signature.types, given, strict=True))
        try:
            instance = kernel.add_overload(given)
            lower(instance)
        except EngineError:
            continue
        own = dict(zip(kernel.signature.types, instance.types, strict=True))
        return {n: spec_of(own[n]) for n in kernel.signature.patterns}, given
    raise TypeError("there is no instance to try")


def here(there: Any, task: dict[str, Any]) -> dict[str, Any]:
    """A kernel on the engine: what a launch on a tape and its backward pass compile."""
    kernel = there.kernels[task["kernel"]]
    if task["do"] == "plan":
        from engine.runtime.kernel import lower

        types, given = types_of(there, kernel)
        lower(kernel if types is None else kernel.add_overload(given))
        return {"types": types}
    own = tempfile.mkdtemp(dir=task["scratch"])
    shutil.copytree(os.environ["ENGINE_CACHE_DIR"], own, dirs_exist_ok=True)
    os.environ["ENGINE_CACHE_DIR"] = own
    return compiled(there.alone(kernel, task["types"]), task)


def compiled(kernel: Any, task: dict[str, Any]) -> dict[str, Any]:
    """Each phase of it."""
    from engine.codegen import cpp
    from engine.codegen.outline import weight_of
    from engine.compile.cpu import CPU, build, compiler
    from engine.compile.forms import Form
    from engine.compile.pipeline import Variants
    from engine.runtime.kernel import lower

    t = Timed()
    compiler.__dict__["build"] = partial(t.run, "g++", build.build)
    types = next(iter(kernel.overloads)) if kernel.is_generic else None
    ir = t.run("frontend", lower, kernel if types is None else kernel.add_overload(types))
    v: Variants = t.run("frontend", Variants, ir)
    wrt, journaled = v.differentiable, v.journaled()
    t.run("prepare", lambda: v.prepared)
    adjoint = t.run("reverse", v.adjoint_ir, wrt, journaled).fn
    recorded = t.run("record", v.recorded_ir, wrt, journaled)
    first: Form = "forward" if recorded is None else "recorded"
    out: dict[str, Any] = {"form": first}
    forms: dict[Form, Any] = {first: recorded or ir, "adjoint": adjoint}
    for form, fn in forms.items():
        threads = t.run("threads", v.threads_of, form, wrt, journaled)
        t.run("threads", getattr, threads, "collected")
        text, name = cpp.emit(fn, "ENTRY"), "adjoint" if form == "adjoint" else "forward"
        if "keep" in task:
            (Path(task["keep"]) / f"{kernel.key}.{name}.cpp").write_text(text)
            (Path(task["keep"]) / f"{kernel.key}.{name}.ir").write_text(str(fn))
        out[name] = {"chars": len(text), "weight": weight_of(fn)}
    functions = [*forms.values()]
    for some in [[f] for f in functions] if task["apart"] else [functions]:
        before, began = t.seconds.get("g++", 0.0), time.perf_counter()
        CPU.compile(some)
        spent, built = time.perf_counter() - began, t.seconds["g++"] - before
        t.seconds["emit"] = t.seconds.get("emit", 0.0) + spent - built
        if task["apart"]:
            out["adjoint" if some[0] is adjoint else "forward"]["g++"] = built
    if task["others"]:
        out["others"] = others(functions)
    return {**out, "phases": t.seconds, "seconds": sum(t.seconds.values())}


def others(functions: list[Any]) -> float:
    """Seconds that the forms for any arrays take, one after the other, as launches need them."""
    from engine.codegen import late
    from engine.compile.cpu.compiler import compile_text
    from engine.compile.cpu.loops import text

    began = time.perf_counter()
    for fn in functions:
        if found := late.FORM.search(text(fn, "ENTRY")):
            compile_text(fn.name, found[1], False, False)
    return time.perf_counter() - began


def peer(there: Any, task: dict[str, Any]) -> dict[str, Any]:
    """A kernel in Warp: a module that has just it, forward and adjoint."""
    import warp as wp

    wp.config.kernel_cache_dir = tempfile.mkdtemp(dir=task["scratch"])
    wp.init()
    kernel = there.alone(there.kernels[task["kernel"]], task["types"])
    began = time.perf_counter()
    kernel.module.load("cpu")
    return {"seconds": time.perf_counter() - began}


class Compiling(side.Side):
    """A side that compiles. Its headers were compiled before, once for all kernels."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        wp = self.wp

        def nothing(x: wp.array(dtype=float)):  # type: ignore[no-untyped-def,valid-type]
            x[wp.tid()] = 1.0

        if self.name == "engine":
            from engine.compile.cpu import precompiled

            precompiled._WORTH = 0
            os.environ["ENGINE_CACHE_DIR"] = tempfile.mkdtemp(dir=Path.cwd())
            wp.Kernel(nothing, key="nothing", module=wp.Module("nothing")).plan  # noqa: B018
            return
        with tempfile.TemporaryDirectory() as folder:
            wp.config.kernel_cache_dir = folder
            wp.init()
            wp.Kernel(nothing, key="nothing", module=wp.Module("nothing")).module.load("cpu")

    def handle(self, task: Any) -> dict[str, Any]:
        return here(self, task) if self.name == "engine" else peer(self, task)


def main() -> None:
    """Arguments: `engine` or `warp`, and a JSON object with folder, skip and seconds."""
    side.Side = Compiling  # type: ignore[misc,assignment]
    warnings.simplefilter("ignore")
    side.main()


if __name__ == "__main__":
    main()
