"""CUDA text that `adtool show` prints: a file that compilers take as it is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from engine.compile.cuda import nvrtc
from engine.diagnostics import CompilerError
from tests.backend.cuda.host import compile_text

SCRIPT = r"""
import engine as wp

@wp.func_native("return x + 1.0f;")
def native(x: float) -> float: ...

@wp.kernel
def winner(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_max(y, 0, \
        x[i] * x[i])  # the product \

@wp.kernel
def windows(x: wp.array2d(dtype=wp.vec3), n: int, y: wp.array(dtype=wp.vec3d)):
    i, j = wp.tid()
    for k in range(n):
        y[i] += wp.vec3d(wp.cross(x[i, j], x[i, k]))
    wp.printf("%d\n", i)

@wp.kernel
def with_snippet(x: wp.array(dtype=float)):
    x[wp.tid()] = native(x[wp.tid()])

x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(winner, dim=2, inputs=[x], outputs=[y])
"""
SYMBOL = re.compile(r'extern "C" __global__ void (\w+)\(')
STAGES = {
    "cuda": ["winner_recorded", "windows_forward", "with_snippet_forward"],
    "cuda-adjoint": ["winner_adjoint", "windows_adjoint", "with_snippet_adjoint"],
}


@pytest.fixture(params=STAGES)
def shown(request: pytest.FixtureRequest, adtool: Any) -> tuple[str, list[str]]:
    """What is printed of all kernels, without CuPy, and their entry points."""
    adtool.script("raise ImportError('no CuPy')", "cupy.py")
    adtool.script(SCRIPT)
    done = adtool("show", "script.py", "w*", "--stage", request.param)
    assert done.returncode == 0, done.stderr
    return done.stdout, STAGES[request.param]


def test_it_is_one_text_with_python_lines_as_comments(shown: tuple[str, list[str]]) -> None:
    text, names = shown
    assert "#include" not in text and "#line" not in text and "\x1b" not in text
    assert [s for s in SYMBOL.findall(text) if not s.endswith("_apart")] == names
    assert text.startswith("// kernel `winner`, the CUDA code of the ")
    assert "(script.py:8)" in text.partition("\n")[0]
    assert text.count("// 10: wp.atomic_max(y, 0,\n") and "nvcc -std=c++17" in text
    assert not re.search(r"//.*\\$", text, re.M)  # it would go on in the next line


def test_the_system_compiler_takes_it(shown: tuple[str, list[str]], tmp_path: Path) -> None:
    library, said = compile_text(shown[0], tmp_path)
    assert library is not None, said[:2000]


@pytest.mark.nvrtc
def test_nvrtc_takes_it(shown: tuple[str, list[str]]) -> None:
    text, names = shown
    try:
        nvrtc.version()
    except CompilerError:
        pytest.skip("no NVRTC")
    code, said = nvrtc.compile_program(text, "sm_90")
    assert code and not said.strip("\0\n "), said[:2000]
    assert all(name.encode() in code for name in names)


@pytest.mark.nvrtc
def test_nvcc_takes_it(shown: tuple[str, list[str]], tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("no nvcc")
    (tmp_path / "shown.cu").write_text(shown[0])
    given = next(s for s in shown[0].splitlines() if s.startswith("// nvcc "))
    command = given.removeprefix("// nvcc ").replace("FILE.cu", "shown.cu").split()
    done = subprocess.run([nvcc, *command, "-Werror", "all-warnings"], cwd=tmp_path, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[:2000]
    assert not (done.stdout + done.stderr).strip()


def test_json_has_what_stands_before(adtool: Any) -> None:
    adtool.script(SCRIPT)
    done = adtool("show", "script.py", "winner", "--stage", "cuda", "--format", "json")
    (kernel,) = json.loads(done.stdout)["kernels"]
    assert kernel["language"] == "cuda" and "namespace eng" in kernel["preamble"]
    assert any(x["line"] == 10 for x in kernel["lines"])
