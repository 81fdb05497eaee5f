"""In child processes of tests that run with `--device emulated-cuda`: they are on that device, too.

`tests.emulated` puts this folder on the path of each process that tests start. Those that import no
kernels load nothing; where a program finds `engine` is as without it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
DEVICES = "engine.runtime.device"


class _Devices(Loader):
    """The module of devices, with one more."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.config.device = "emulated-cuda"
        # It is there when somebody looks: it takes modules that may come after this one.
        for name in ("get_device", "look_for_gpus"):
            setattr(module, name, _first(_register, getattr(module, name)))


def _first(before: Callable[[], None], function: Any) -> Any:
    @functools.wraps(function)
    def found(*args: Any, **given: Any) -> Any:
        before()
        return function(*args, **given)

    return found


@functools.cache
def _register() -> None:
    there, path = set(sys.modules), list(sys.path)
    sys.path.insert(0, str(HERE.parents[1]))
    try:
        from tests.backend.cuda.device import register

        register()
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - there:  # programs may have a package of that name
            if name.partition(".")[0] == "tests":
                del sys.modules[name]


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != DEVICES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None:
            spec.loader = _Devices(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
# What this stands before; programs look for modules where they would otherwise.
sys.path[:] = [p for p in sys.path if not p or Path(p).resolve() != HERE]
me = sys.modules.pop(__name__)
with contextlib.suppress(ImportError):
    import sitecustomize  # noqa: F401
sys.modules[__name__] = me
