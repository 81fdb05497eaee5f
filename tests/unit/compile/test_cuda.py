"""The CUDA backend where it ends: what it cannot do yet, and what it says of failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import engine as wp
from engine import config
from engine.compile.cuda import Cuda, nvrtc
from engine.compile.pipeline import Variants
from engine.compile.snippet_errors import snippet_errors
from engine.diagnostics import CompilerError
from engine.frontend import lower_kernel


@wp.func_native("return a +;")
def unfinished(a: float) -> float: ...


@wp.kernel
def calls_it(x: wp.array(dtype=float)):
    x[0] = unfinished(x[1])


@wp.kernel
def doubles(x: wp.array(dtype=float)):
    x[wp.tid()] *= 2.0


def ir(kernel: wp.Kernel):
    return Variants(lower_kernel(kernel.func)).ir


@pytest.mark.parametrize(
    "use", [lambda b: b.allocate(0, 8, True), lambda b: b.synchronize()], ids=["memory", "waiting"]
)
def test_an_architecture_is_no_device(use) -> None:
    with pytest.raises(wp.LaunchError) as e:
        use(Cuda())
    (d,) = e.value.diagnostics
    assert (d.code, d.help) == ("E208", 'use device="cpu"')


@pytest.mark.skipif(wp.is_cuda_available(), reason="there is a GPU")
def test_without_a_gpu_there_is_no_such_device() -> None:
    assert [d.alias for d in wp.get_devices()] == ["cpu"]
    x = wp.zeros(1, dtype=float)
    with pytest.raises(wp.LaunchError, match="'cuda:0' is not available") as e:
        wp.launch(doubles, dim=1, inputs=[x], device="cuda:0")
    assert e.value.diagnostics[0].code == "E208"


def test_text_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", None)
    assert 'extern "C" __global__ void here(' in Cuda().emit(ir(doubles), "here")


def test_without_cupy_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", None)
    with pytest.raises(CompilerError) as e:
        Cuda().compile([ir(doubles)])
    (d,) = e.value.diagnostics
    assert (d.code, d.help) == ("E301", "install CuPy: `pip install 'cupy-cuda13x[ctk]'`")


class Refusing:
    """Stands in for CuPy's module: a compiler that finds fault with line 2 of a snippet."""

    class NVRTCError(Exception):
        pass

    def __init__(self, said: str) -> None:
        self.said = said
        self.text = ""

    def getVersion(self) -> tuple[int, int]:
        return 13, 0

    def createProgram(self, text: str, name: str, headers: object, names: object) -> int:
        self.text = text
        return 1

    def compileProgram(self, program: int, options: tuple[str, ...]) -> None:
        assert "--fmad=false" in options  # as the CPU rounds
        assert not any("fast" in o for o in options)
        raise self.NVRTCError

    def getProgramLog(self, program: int) -> str:
        at = next(i for i, s in enumerate(self.text.splitlines(), 1) if "return a +;" in s) \
            if "LINE" in self.said else 0  # fmt: skip
        return self.said.replace("LINE", str(at))

    def destroyProgram(self, program: int) -> None:
        self.text = ""


def test_what_a_compiler_refuses_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(config, "cache_dir", str(tmp_path))
    monkeypatch.delenv("ENGINE_CACHE_DIR", raising=False)
    monkeypatch.setattr(nvrtc, "find", lambda: Refusing(f"{nvrtc.FILE}(3): error: it is Monday"))
    backend = Cuda()
    with pytest.raises(CompilerError, match="failed on kernel 'doubles'") as e:
        backend.compile([ir(doubles)])
    (d,) = e.value.diagnostics
    assert d.code == "E302" and d.notes[1].endswith("error: it is Monday")
    (log,) = (tmp_path / "failed").iterdir()
    assert "it is Monday" in log.read_text() and "__global__" in log.read_text()
    assert not backend.is_cached(ir(doubles))


def test_errors_in_a_snippet_are_told_at_its_decorator(monkeypatch: pytest.MonkeyPatch) -> None:
    said = f"{nvrtc.FILE}(LINE): error: expected an expression"
    monkeypatch.setattr(nvrtc, "find", lambda: Refusing(said))
    with pytest.raises(CompilerError) as e:
        Cuda().compile([ir(calls_it)])
    (d,) = e.value.diagnostics
    assert d.code == "E304" and "`unfinished`: expected an expression" in d.message
    assert d.span is not None and d.span.file == __file__
    assert "line 1 of the snippet: `return a +;`" in d.help


def test_errors_elsewhere_are_no_snippets() -> None:
    said = f"{nvrtc.FILE}(1): error: no"
    assert snippet_errors(said, nvrtc.FILE, "int x\nint y", [ir(calls_it)], "log") == []
