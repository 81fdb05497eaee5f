"""CUDA's own compiler takes every kernel of the corpus and every builtin. It needs no device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from engine import ad
from engine.codegen import cuda, headers
from engine.codegen.winners import fights_of
from engine.compile.cuda import Cuda, apart, nvrtc
from engine.compile.pipeline import Variants
from engine.diagnostics import CompilerError
from engine.frontend import lower_kernel
from engine.ir.nodes import Function
from tests.backend.cuda.kernels import GROUPS, forms_of, kernels, made
from tests.backend.signatures import signatures
from tests.backend.test_kernel_builtins import CASES as KERNEL_ONLY
from tests.overloads import OVERLOADS, SMOOTH, kernel_of

try:
    nvrtc.version()
    MISSING = ""
except CompilerError as e:
    MISSING = f"no NVRTC: {e.diagnostics[0].notes[0]} (pip install 'cupy-cuda13x[ctk]')"
pytestmark = [pytest.mark.nvrtc, pytest.mark.skipif(bool(MISSING), reason=MISSING)]

PTX = "compute_90"  # the compiler's own part; `sm_90` is machine code
# Programs are not to be run here: without it the compiler takes ten times as long.
FAST = "--Ofast-compile=max"
ARCHS = ("sm_75", "sm_80", "sm_90", "sm_100")
# Loops of any length, winners, what is overwritten, scatters, snippets, structs, 64-bit numbers.
FEW = (
    "inplace_in_loop float32", "data_dependent_exit float64", "test_atomics._vector_max",
    "test_native.run_atomic_add", "kernels.structs", "kernels.scatter", "kernels.dynamic_product",
)  # fmt: skip
BATCH = 100  # kernels of one compiler run


def compiled(functions: Sequence[tuple[str, Function]], arch: str = PTX, *options: str) -> bytes:
    """One program of some kernels; the compiler has no word to say."""
    fns = [fn for _, fn in functions]
    texts = [cuda.emit(fn, s, known=apart.known_of(fn)) for s, fn in functions]
    text = "\n".join([cuda.preamble(fns), *texts])
    code, said = nvrtc.compile_program(text, arch, *(options or (FAST,)))
    assert code, said[:4000]
    assert said.strip("\0\n ") == ""
    for symbol, _ in functions:
        assert symbol.encode() in code
    return code


# ---- the corpus


@pytest.mark.parametrize("group", GROUPS)
def test_corpus(group: str) -> None:
    functions = made(group).functions
    for k in range(0, len(functions), BATCH):
        compiled(functions[k : k + BATCH])


@pytest.mark.parametrize("group", GROUPS)
def test_watched(group: str) -> None:
    """The same kernels as they are watched, native text kept inside of its arrays."""
    functions = [
        (symbol, ad.watch(fn, "silent" if symbol.endswith("_checkpointed") else "bounds"))
        for symbol, fn in made(group).functions[::2]
    ]
    for k in range(0, len(functions), BATCH):
        compiled(functions[k : k + BATCH])


def test_machine_code() -> None:
    """The assembler takes it, too; of kernels with snippets, atomics, and large ones."""
    code = compiled(made("files").functions[::3], "sm_90", "--Ofast-compile=0")
    assert code.startswith(b"\x7fELF")


# ---- machine code for each architecture


@pytest.fixture
def arch(request: pytest.FixtureRequest) -> str:
    """One of `ARCHS`, where the compiler knows it."""
    if nvrtc.known(request.param) != request.param:
        pytest.skip(f"NVRTC {'.'.join(map(str, nvrtc.version()))} does not know {request.param}")
    return str(request.param)


def few() -> list[tuple[str, Function]]:
    """All forms of a few kernels that together have what device code is made of."""
    names = [*kernels("cases"), *kernels("files")]
    assert set(FEW) <= set(names)
    out = []
    for group in ("cases", "files"):
        at = {f"k{i}": name for i, name in enumerate(kernels(group))}
        out += [(f"{group}_{s}", f) for s, f in made(group).functions
                if at[s.partition("_")[0]] in FEW]  # fmt: skip
    return out


@pytest.mark.parametrize("arch", ARCHS, indirect=True)
def test_each_architecture(arch: str) -> None:
    functions = few()
    forms = {s.split("_", 2)[2] for s, _ in functions}
    assert forms == {"forward", "recorded", "accesses", "adjoint", "checkpointed", "tangent"}
    assert any(fights_of(f).open for _, f in functions)
    assert compiled(functions, arch).startswith(b"\x7fELF")


@pytest.mark.sweep
@pytest.mark.parametrize("arch", ARCHS, indirect=True)
@pytest.mark.parametrize("group", GROUPS)
def test_each_architecture_with_the_corpus(group: str, arch: str) -> None:
    functions = made(group).functions
    for k in range(0, len(functions), BATCH):
        compiled(functions[k : k + BATCH], arch)


@pytest.mark.parametrize("arch", ARCHS, indirect=True)
@pytest.mark.parametrize("header", ["copies.h", "crowns.h"])
def test_the_kernels_of_the_package(header: str, arch: str) -> None:
    code, said = nvrtc.compile_program(headers.in_one(headers.CUDA, header), arch)
    assert code and not said.strip("\0\n "), said


# ---- every builtin with all its types


def batches(cases: Sequence[Any]) -> list[Sequence[Any]]:
    return [cases[i : i + BATCH] for i in range(0, len(cases), BATCH)]


@pytest.mark.parametrize("batch", batches(signatures()), ids=len)
def test_operations(batch: Sequence[Any]) -> None:
    compiled([(f"k{i}", s.kernel()) for i, s in enumerate(batch)])


@pytest.mark.parametrize("batch", batches(OVERLOADS), ids=len)
def test_composites(batch: Sequence[Any]) -> None:
    compiled([(f"k{i}", kernel_of(o)[0]) for i, o in enumerate(batch)])


@pytest.mark.parametrize("batch", batches(KERNEL_ONLY), ids=len)
def test_builtins_of_kernels(batch: Sequence[Any]) -> None:
    def found() -> Iterator[tuple[str, Function]]:
        for i, c in enumerate(batch):
            v = Variants(lower_kernel(c.kernel.func))
            for form, fn in forms_of(v, v.differentiable):
                assert fn is not None, (c, form)
                yield f"k{i}_{form}", fn

    compiled(list(found()))


# Noise in four dimensions has adjoints of tens of thousands of operations.
ADJOINTS = [o for o in SMOOTH if "curlnoise" not in o.composite.func.__name__]


@pytest.mark.parametrize("batch", batches(ADJOINTS), ids=len)
def test_derivatives_of_composites(batch: Sequence[Any]) -> None:
    def found() -> Iterator[tuple[str, Function]]:
        for i, o in enumerate(batch):
            kernel, wrt = kernel_of(o)
            for form, fn in forms_of(Variants(kernel), wrt):
                if form in ("adjoint", "tangent"):
                    assert fn is not None, (o, form)
                    yield f"k{i}_{form}", fn

    compiled(list(found()))


# ---- the backend


def test_the_backend_compiles_kernels_together_and_once() -> None:
    backend = Cuda()
    fns = [fn for _, fn in made("samples").functions[:3]]
    first = backend.compile([*fns, fns[0]])
    assert first[3] is first[0]
    assert len({entry.symbol for entry in first}) == 3
    assert first[0].code.module.startswith(b"\x7fELF")
    for entry in first:
        assert entry.symbol.encode() in entry.code.module
    assert all(map(backend.is_cached, fns))
    assert not backend.is_cached(made("samples").functions[5][1])
    assert backend.compile(fns[:1])[0] is first[0]


def test_machine_code_is_kept_for_other_processes(tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "cache"))
    fn, other = (f for _, f in made("samples").functions[:2])
    first = Cuda().compile([fn])[0]

    def gives_up(*_: Any) -> Any:
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(nvrtc, "compile_program", gives_up)
    backend = Cuda()
    assert backend.is_cached(fn) and not backend.is_cached(other)
    again = backend.compile([fn])[0]
    assert again.symbol == first.symbol and again.code.module == first.code.module
    assert not Cuda("sm_80").is_cached(fn)
    (kept,) = (tmp_path / "cache" / "objects").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])  # damaged: compiled again
    assert not Cuda().is_cached(fn)
    with pytest.raises(AssertionError, match="was called"):
        Cuda().compile([fn])


def test_kernels_of_the_package_are_kept_for_other_processes(
    tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "cache"))
    first = Cuda()._helpers_code("copies.h")

    def gives_up(*_: Any) -> Any:
        raise AssertionError("the compiler was called")

    monkeypatch.setattr(nvrtc, "compile_program", gives_up)
    assert Cuda()._helpers_code("copies.h") == first
    with pytest.raises(AssertionError, match="was called"):
        Cuda("sm_80")._helpers_code("copies.h")
