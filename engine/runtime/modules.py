"""Groups of kernels that are compiled together: one for each Python module."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from engine.diagnostics import EngineError
from engine.runtime.launch_errors import fail

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan


class Module:
    """A group of kernels with shared options."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: dict[str, Any] = {
            "enable_backward": None,  # what config says
            "max_unroll": 16,
            "mode": "release",
        }
        # Kernels that no batch has looked at yet.
        self.fresh: list[weakref.ref[Kernel]] = []

    def add(self, kernel: Kernel) -> None:
        """Puts a kernel into the group."""
        self.fresh.append(weakref.ref(kernel))

    def __repr__(self) -> str:
        return f"<module {self.name}>"


_modules: dict[str, Module] = {}


def find(module: Any = None, func: Any = None) -> Module:
    """The group of a name, a Python module, a group, or (for None) the caller's module."""
    if isinstance(module, Module):
        return module
    if module is None:
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__", "").startswith("engine."):
            frame = frame.f_back
        module = "__main__" if frame is None else frame.f_globals.get("__name__", "__main__")
    if module == "unique":
        return Module(f"{func.__module__}.{func.__qualname__}")
    name = module if isinstance(module, str) else getattr(module, "__name__", None)
    if name is None:
        raise fail("E202", f"{module!r} is no module")
    return _modules.setdefault(name, Module(name))


def get_module(name: str) -> Module:
    """The group of kernels of a Python module."""
    return find(name)


def set_module_options(options: dict[str, Any], module: Any = None) -> None:
    """Sets options (`enable_backward`, ...) of the caller's module, or of another."""
    if not isinstance(options, dict):
        raise fail("E202", f"module options are a dictionary, got {options!r}")
    find(module).options.update(options)


def get_module_options(module: Any = None) -> dict[str, Any]:
    """The options of the caller's module, or of another."""
    return find(module).options


def compile_group(module: Module, kernel: Kernel, plan: Plan) -> None:
    """Compiles a kernel, and with it those of its module that were not launched yet.

    The others are only compiled into the cache: each is lowered again at its own first
    launch, so that it sees the values its globals have then.
    """
    from engine.compile.pipeline import Variants, prefetch
    from engine.runtime.kernel import lower

    none: frozenset[str] = frozenset()
    backend = plan.backend
    if backend.is_cached(plan.variants.ir):  # so are the others, most likely: no batch is needed
        prefetch([(backend, plan.variants, "forward", none, none)])
        return
    others = [k for ref in module.fresh if (k := ref()) is not None and k is not kernel]
    module.fresh.clear()
    found = [plan.variants]
    for other in others:
        if other._plan is None and not other.is_generic:
            try:
                found.append(Variants(lower(other)))
            except EngineError:
                continue  # its own launch says what is wrong
    if len(found) > 1:
        try:
            prefetch([(backend, v, "forward", none, none) for v in found])
            return
        except EngineError:  # of one of them, whose own launch says it
            pass
    prefetch([(backend, plan.variants, "forward", none, none)])
