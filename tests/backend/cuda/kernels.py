"""Every kernel that the CUDA dialect is tried on, in every form, as IR."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import engine as wp
from adtool.selftest.run import corpus as selftest_corpus
from engine.compile.forms import Form
from engine.compile.pipeline import Variants
from engine.frontend import lower_kernel
from engine.ir.nodes import Function
from engine.runtime.kernel import Kernel
from tests.corpus import case, compound

ROOT = Path(__file__).resolve().parents[3]
DERIVATIVES: tuple[Form, ...] = ("adjoint", "checkpointed", "tangent")
Kernels = dict[str, Kernel]  # by a name for people
GROUPS = ("cases", "compounds", "files", "selftest", "samples")


@cache
def kernels(group: str) -> Kernels:
    """The kernels of a group: the corpus in both precisions, and those that stand in files."""
    if group == "cases":
        _modules("tests/corpus", "[a-z]*.py")  # they register cases
        return {f"{c.name} {T.__name__}": c.make(T) for c in case.CASES for T in _FLOATS}
    if group == "compounds":
        _modules("tests/corpus", "[a-z]*.py")
        return {f"{c.name} {T.__name__}": c.make(T)[0] for c in compound.CASES for T in _FLOATS}
    if group == "files":
        return dict(_standing(_modules("tests/corpus", "test_*.py") + _snapshots()))
    if group == "selftest":
        return {f"{i} {c.kernel.key}": c.kernel for i, c in enumerate(selftest_corpus())}
    return dict(_standing([_load(p) for p in sorted((ROOT / "samples").glob("*.py"))]))


_FLOATS = (wp.float32, wp.float64)


def _modules(folder: str, pattern: str) -> list[ModuleType]:
    names = sorted(p.stem for p in (ROOT / folder).glob(pattern))
    return [importlib.import_module(f"{folder.replace('/', '.')}.{name}") for name in names]


def _snapshots() -> list[ModuleType]:
    return [importlib.import_module("tests.snapshots.kernels")]


def _load(path: Path) -> ModuleType:
    """A program as a module, which does nothing by itself then; its settings go again."""
    spec = importlib.util.spec_from_file_location(f"sample_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    settings = dict(vars(wp.config))
    try:
        spec.loader.exec_module(module)
    finally:
        vars(wp.config).update(settings)
    return module


def _standing(modules: list[ModuleType]) -> Iterator[tuple[str, Kernel]]:
    """Kernels that are names of a module, and have types of their own."""
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, Kernel) and not value.is_generic:
                yield f"{module.__name__.rpartition('.')[2]}.{name}", value


def forms_of(v: Variants, wrt: frozenset[str]) -> Iterator[tuple[Form, Function | None]]:
    """What is compiled of a kernel, None for a form that is refused, with a diagnostic."""
    journaled = v.journaled()
    yield "forward", v.ir
    if v.recorded_ir(wrt, journaled) is not None:
        yield "recorded", v.function("recorded", wrt, journaled)
    if v.accesses_ir() is not None:
        yield "accesses", v.function("accesses", wrt, journaled)
    for form in DERIVATIVES if wrt else ():
        try:
            yield form, v.function(form, wrt, journaled)
        except wp.KernelError:
            yield form, None


@dataclass(frozen=True)
class Made:
    """functions: by the symbol that they get. refused: kernels, and forms of some, that the
    language does not let in."""

    functions: tuple[tuple[str, Function], ...]
    refused: frozenset[str]


@cache
def made(group: str) -> Made:
    """Every form of the kernels of a group."""
    found: list[tuple[str, Function]] = []
    refused = set()
    for i, (name, kernel) in enumerate(kernels(group).items()):
        try:
            v = Variants(lower_kernel(kernel.func))
        except wp.KernelError:
            refused.add(name)
            continue
        for form, fn in forms_of(v, v.differentiable):
            if fn is None:
                refused.add(f"{name} {form}")
            else:
                found.append((f"k{i}_{form}", fn))
    return Made(tuple(found), frozenset(refused))
