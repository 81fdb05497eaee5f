"""Groups of kernels that are compiled together: one for each Python module."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from engine import config
from engine.diagnostics import Diagnostic, EngineError, KernelError
from engine.hashing import hashed
from engine.itself import calling_frame
from engine.runtime.device import Device, DeviceLike, get_device, get_devices
from engine.runtime.launch_errors import fail

if TYPE_CHECKING:
    from engine.compile.pipeline import Request
    from engine.frontend import FunctionText
    from engine.runtime.kernel import Kernel
    from engine.runtime.plan import Plan

# What options a module has at first. "enable_backward", "mode" and, on GPUs, "deterministic" mean
# something, and None what config says; the others are for compilers that this engine does not have.
_OPTIONS: dict[str, Any] = {
    "enable_backward": None,
    "mode": None,
    "max_unroll": 16,
    "fast_math": False,
    "fuse_fp": True,
    "lineinfo": False,
    "cuda_output": None,
    "optimization_level": None,
    "cpu_compiler_flags": None,
    "block_dim": 256,
    "compile_time_trace": False,
    "strip_hash": False,
    "extra_build_options": None,
    "enable_mathdx_gemm": None,
    "enable_mathdx_solver": None,
    "enable_mathdx_fft": None,
    "deterministic": None,
    "deterministic_max_records": 0,
    "default_grid_stride": None,
}


Named = weakref.WeakValueDictionary[str, Any]


class Module:
    """A group of kernels with shared options.

    name: that of the Python module, as a rule. options: `enable_backward`, `mode` and
    `deterministic` count, the others are kept for programs that read them. kernels, functions,
    structs: the latest of each key that was defined there, as long as somebody holds it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.options: dict[str, Any] = dict(_OPTIONS)
        self.kernels: Named = weakref.WeakValueDictionary()
        self.functions: Named = weakref.WeakValueDictionary()
        self.structs: Named = weakref.WeakValueDictionary()
        # Kernels that no batch has looked at yet.
        self.fresh: list[weakref.ref[Kernel]] = []
        # All that somebody still holds, instances of generic ones too.
        self._live: weakref.WeakSet[Kernel] = weakref.WeakSet()
        self._loader: Any = None

    def add(self, kernel: Kernel) -> None:
        """Puts a kernel into the group."""
        self.fresh.append(weakref.ref(kernel))
        self._live.add(kernel)
        if kernel.types is None:
            self.define(self.kernels, kernel.key, kernel)

    def define(self, table: Named, key: str, made: object) -> None:
        """Notes what stands for a key. If the Python module was loaded anew, the rest is gone."""
        loader = getattr(sys.modules.get(self.name), "__loader__", None)
        if loader is not self._loader:
            self._loader = loader
            for known in (self.kernels, self.functions, self.structs):
                known.clear()
        table[key] = made

    def load(self, device: DeviceLike = None, block_dim: int | None = None) -> None:
        """Compiles all kernels of the group that are not generic, as their launches would.

        Those that need what the engine has not (E112) are left to their launches.

        block_dim: accepted for GPU code. Raises KernelError with all that is wrong with kernels,
        CompilerError where one cannot be compiled, LaunchError E208 for an unknown device.
        """
        del block_dim
        backend = get_device(device).backend
        problems: list[Diagnostic] = []
        for kernel in self._concrete():
            try:
                kernel.plan.on(backend)
            except KernelError as error:
                if any(d.code != "E112" for d in error.diagnostics):
                    problems += error.diagnostics
        if problems:
            raise KernelError(*problems)

    def unload(self) -> None:
        """Forgets what was compiled: kernels are looked at again at their next launches."""
        self.mark_modified()

    def mark_modified(self) -> None:
        """Makes kernels read what they capture from Python again, at their next launches."""
        for kernel in list(self._live):
            kernel.forget()

    def get_module_hash(self, block_dim: int | None = None) -> bytes:
        """A digest of all kernels of the group, as they are now, and of its options.

        block_dim: accepted for GPU code.
        """
        from engine.compile.pipeline import Variants
        from engine.runtime.kernel import lower

        out = hashed()
        settings = {**self.options, "block_dim": block_dim or self.options.get("block_dim")}
        general = (config.mode, config.enable_backward, config.verify_fp)
        out.update(repr((sorted(settings.items(), key=str), general)).encode())
        emit = get_device().backend.emit
        texts = set()
        for kernel in self._live:
            text = _outline(kernel.func, kernel.text)
            if not kernel.is_generic:
                with suppress(EngineError):  # its launch says what is wrong
                    text = emit(Variants(lower(kernel)).ir, "kernel")
            texts.add(f"{kernel.key}\0{sorted(kernel.options.items(), key=str)!r}\0{text}")
        for text in sorted(texts):
            out.update(text.encode())
        return out.digest()

    def hash_module(self) -> bytes:
        """The same as `get_module_hash()`."""
        return self.get_module_hash()

    def _concrete(self) -> list[Kernel]:
        return [k for k in self._live if not k.is_generic]

    def __repr__(self) -> str:
        return f"<module {self.name}>"


_modules: dict[str, Module] = {}
# Groups of one kernel each go with it.
_unique: weakref.WeakValueDictionary[str, Module] = weakref.WeakValueDictionary()


def find(
    module: Any = None,
    func: Any = None,
    key: str = "",
    text: FunctionText | None = None,
    options: Mapping[str, Any] | None = None,
) -> Module:
    """The group of a name, a Python module, a group, or (for None) the caller's module.

    func, key, text, options: the kernel that wants a group of its own, with those options,
    where `module` is "unique".
    """
    if isinstance(module, Module):
        return module
    if module is None:
        module = _caller()
    if module == "unique":
        return _own_module(func, key or func.__name__, text, options or {})
    name = module if isinstance(module, str) else getattr(module, "__name__", None)
    if name is None:
        raise fail("E202", f"{module!r} is not a module")
    return _unique.get(name) or _modules.setdefault(name, Module(name))


def _caller() -> str:
    frame = calling_frame()
    return "__main__" if frame is None else str(frame.f_globals.get("__name__", "__main__"))


def _own_module(
    func: Any, key: str, text: FunctionText | None, options: Mapping[str, Any]
) -> Module:
    """A group for one kernel, named for what the kernel is."""
    outline = f"{func.__module__}{key}{_outline(func, text)}{sorted(options.items(), key=str)!r}"
    digest = hashed(outline.encode()).hexdigest()
    name = f"{key}_{digest[:8]}"
    module = Module(name)
    _unique[name] = module
    return module


def _outline(func: Any, text: FunctionText | None) -> str:
    """A function as text: its code and what it has captured, but for globals."""
    code = func.__code__
    inside = (code.co_code, code.co_consts, code.co_names, func.__defaults__, func.__annotations__)
    statics = [] if text is None else list(text.statics.items())
    return repr((inside, [_shown(c) for c in func.__closure__ or ()], statics))


def _shown(cell: Any) -> str:
    try:
        return repr(cell.cell_contents)
    except ValueError:  # it has no value yet
        return ""


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


def check_options(options: object, what: str) -> Mapping[str, Any]:
    """Options of a decorator. Raises LaunchError (E202) for what is no option."""
    if not isinstance(options, Mapping):
        raise fail("E202", f"{what}: module options must be a dictionary, got {options!r} of "
                   f"type {type(options).__name__}")  # fmt: skip
    unknown = [k for k in options if k not in _OPTIONS]
    if unknown:
        raise fail("E202", f"{what}: there is no module option {unknown[0]!r}",
                   help=f"Valid options are {', '.join(_OPTIONS)}")  # fmt: skip
    records = options.get("deterministic_max_records", 0)
    if isinstance(records, bool) or not isinstance(records, int) or records < 0:
        raise fail("E202", f"{what}: deterministic_max_records is an integer that is not "
                   f"negative, got {records!r}")  # fmt: skip
    return options


def load_module(
    module: Module | ModuleType | str | None = None,
    device: DeviceLike | list[Any] = None,
    recursive: bool = False,
    block_dim: int | None = None,
    max_workers: int | None = None,
) -> None:
    """Compiles the kernels of a module now, in place of at their first launches.

    Args:
        module: a Python module, its name or a `Module`; the caller's module for None.
        device: one or several devices, all of them for None.
        recursive: whether modules below it are compiled too.
        block_dim: accepted for GPU code.
        max_workers: accepted; kernels of a module are compiled together anyway.

    Raises LaunchError (E202) for a module without kernels, functions and structs; KernelError
    and CompilerError as launches do.
    """
    if isinstance(module, Module):
        found, name = [module], module.name
    else:
        if module is not None and not isinstance(module, (str, ModuleType)):
            raise fail("E202", f"load_module takes a module or its name, got {module!r}")
        name = module if isinstance(module, str) else getattr(module, "__name__", "") or _caller()
        found = [m for n, m in (*_modules.items(), *_unique.items()) if n == name]
    if recursive:
        found += [m for n, m in list(_modules.items()) if n.startswith(name + ".")]
    if not any(m.kernels or m.functions or m.structs or m._concrete() for m in found):
        raise fail("E202", f"module {name!r} has no kernels, functions or structs",
                   help="import it first")  # fmt: skip
    force_load(device, found, block_dim, max_workers)


def force_load(
    device: DeviceLike | list[Any] = None,
    modules: Iterable[Module] | None = None,
    block_dim: int | None = None,
    max_workers: int | None = None,
) -> None:
    """Compiles the kernels of several modules now, of all that there are for None.

    The other arguments, and errors, are those of `load_module`.
    """
    del max_workers
    chosen = list(_modules.values()) if modules is None else list(modules)
    for place in _devices(device):
        for module in chosen:
            module.load(place, block_dim)


def _devices(device: DeviceLike | list[Any]) -> Iterator[Device]:
    if device is None:
        yield from get_devices()
    else:
        yield from map(get_device, device if isinstance(device, (list, tuple)) else [device])


def compile_group(
    module: Module, kernel: Kernel, plan: Plan, given: list[Any] | None = None
) -> None:
    """Compiles a kernel, and with it those of its module that were not launched yet.

    The others are only compiled into the cache: each is lowered again at its own first
    launch, so that it sees the values its globals have then.

    given: the arguments of a launch on a tape: see `engine.runtime.ahead`. Where others are
    compiled they keep the compilers busy, as their adjoints will, all at once.
    """
    from engine.compile.pipeline import Variants, prefetch
    from engine.runtime import ahead
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
    all_of_it: list[Request] = [(backend, v, "forward", none, none) for v in found]
    if len(found) == 1 and given is not None:
        all_of_it += ahead.requests(plan, given)
    if len(all_of_it) > 1 and ahead.compiled(all_of_it):
        return  # else one of them is wrong, whose own launch or backward pass says it
    prefetch([(backend, plan.variants, "forward", none, none)])
