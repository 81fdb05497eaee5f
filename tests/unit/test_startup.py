"""Start-up stays light: neither `import engine` nor `adtool --help` loads a heavy package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ["matplotlib", "graphviz", "rich.table", "cupy", "torch", "jax"]

REPORT = """
import json, sys
{code}
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""

HELP = """
import contextlib, io, runpy
sys.argv = ["adtool", "--help"]
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    runpy.run_module("adtool", run_name="__main__", alter_sys=True)
assert "check" in out.getvalue()
"""


def modules_after(code: str) -> set[str]:
    """Names of the modules that a fresh interpreter has loaded after running `code`."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT.format(code=code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "code", ["import engine; engine.array", HELP], ids=["import engine", "adtool --help"]
)
def test_no_heavy_module_is_loaded(code: str) -> None:
    loaded = modules_after(code)
    assert ("numpy" in loaded) == ("adtool.cli" not in loaded)
    assert [name for name in HEAVY if name in loaded] == []


# What the tool needs beside the process that runs a script: to give it its job, and to read and
# tell what came of it.
TOLD = """
import adtool.session, adtool.tasks.check_script, adtool.render.text, adtool.last, adtool.outcome
from adtool.rules import load_rules
load_rules()
"""


def test_parts_of_the_engine_come_without_the_rest() -> None:
    loaded = modules_after("import engine, engine.autograd, engine.archive")
    assert "numpy" not in loaded and len([m for m in loaded if m.startswith("engine")]) < 25
    results = modules_after("from engine.autograd import TapeResult; from engine import Fault")
    assert "numpy" not in results and "engine.ir" not in results


def test_who_tells_results_needs_no_numbers() -> None:
    loaded = modules_after(TOLD)
    assert "numpy" not in loaded and "engine.runtime.array" not in loaded


def test_engine_loads_no_part_of_the_tool() -> None:
    loaded = modules_after("import engine")
    assert not any(name.split(".")[0] in {"adtool", "typer", "rich"} for name in loaded)


# What kernels need to be compiled, and what only checks need; and what any launch needs.
COMPILES = {
    "engine.autograd", "engine.builtins", "engine.codegen.cpp", "engine.compile.cpu.compiler",
    "engine.frontend.lowering", "engine.ir", "subprocess",
}  # fmt: skip
LAUNCHES = {
    "engine.compile.cache", "engine.compile.cpu.runner", "engine.compile.pipeline",
    "engine.frontend.functions.meaning", "engine.runtime.execute", "engine.runtime.launch",
    "engine.runtime.plan", "engine.runtime.plans",
}  # fmt: skip
DECORATED = """
import engine as wp

@wp.struct
class Body:
    mass: float

@wp.func
def square(v: float):
    return v * v

@wp.kernel
def kernel(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.sin(square(1.0))

x = wp.zeros(3, dtype=wp.vec3, requires_grad=True)
x.fill_(2.0)
assert x.numpy().sum() == 18.0 and x.grad is not None
"""
KERNEL = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]
"""
EMULATION = pytest.mark.host("an emulated GPU loads a compiler")
LAUNCHED = DECORATED + "wp.launch(kernel, dim=2, inputs=[wp.zeros(2, dtype=float)])"


@EMULATION
@pytest.mark.parametrize(
    ("code", "there"),
    [("import engine; engine.array", set[str]()), (DECORATED, LAUNCHES)],
    ids=["import", "decorators"],
)
def test_what_is_loaded_before_a_launch(code: str, there: set[str]) -> None:
    """Programs without kernels launch nothing, and those with kernels may find them compiled."""
    loaded = modules_after(code)
    assert "engine.runtime.array" in loaded
    assert (COMPILES | LAUNCHES) & (loaded - modules_after("import numpy")) == there


@EMULATION
def test_the_first_launch_loads_what_compiles() -> None:
    assert (COMPILES | LAUNCHES) - modules_after(LAUNCHED) == {"engine.autograd"}


WARM = """
import importlib, sys
sys.path.insert(0, {folder!r})
kernel = importlib.import_module("kernel_of_test_startup")
import engine as wp
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
before = set(sys.modules)
with wp.Tape() as tape:
    wp.launch(kernel.square, 2, [x], [y])
tape.backward(grads={{y: wp.ones_like(y)}})
new = sorted(set(sys.modules) - before)
"""
# What captures, graphs and overwritten arrays need of tapes, and most tapes do not.
UNUSUAL = {
    "engine.accel.graph_steps", "engine.tape.captured_pass", "engine.tape.flow",
    "engine.tape.graph", "engine.tape.mixture", "engine.tape.origins", "engine.tape.outline",
    "engine.tape.records.captured", "engine.tape.records.foreign", "engine.tape.replaced",
    "engine.accel.graph_records", "engine.tape.tracing", "engine.accel.fused_graphs",
}  # fmt: skip


KERNEL_OF_FILE = """
import sys
sys.path.insert(0, {folder!r})
import kernel_of_test_startup
import engine as wp
"""


@EMULATION
def test_a_warm_launch_loads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ENGINE_VERIFY_IR", "0")  # else nothing is kept
    (tmp_path / "kernel_of_test_startup.py").write_text(KERNEL)
    code = WARM.format(folder=str(tmp_path))
    assert COMPILES - modules_after(code) == {"engine.autograd"}
    assert not modules_after(code + "assert not new, new") & UNUSUAL
    plain = code.replace("with wp.Tape() as tape:", "if True:").split("tape.backward")[0]
    modules_after(plain + "assert set(sys.modules) == before, set(sys.modules) - before")


ARRAY = "x = wp.zeros(2, dtype=float, requires_grad=True)\n"


@EMULATION
@pytest.mark.parametrize(
    ("code", "tapes"),
    [
        ("import engine as wp\n" + ARRAY, False),
        (KERNEL_OF_FILE, False),
        (KERNEL_OF_FILE + ARRAY.replace("True", "False"), False),
        (KERNEL_OF_FILE + ARRAY, True),
        ("import engine as wp\n" + ARRAY + KERNEL_OF_FILE, True),
    ],
    ids=["gradient", "kernel", "kernel and array", "kernel and gradient", "gradient and kernel"],
)
def test_tapes_come_with_a_kernel_and_a_gradient(tmp_path: Path, code: str, tapes: bool) -> None:
    (tmp_path / "kernel_of_test_startup.py").write_text(KERNEL)
    assert ("engine.tape.tape" in modules_after(code.format(folder=str(tmp_path)))) == tapes


def test_names_that_come_late_are_like_the_others() -> None:
    code = """
import engine
assert {"launch", "Tape", "sin", "array", "autograd"} <= set(dir(engine))
exec("from engine import *")
assert Tape is engine.Tape and sin is engine.sin and "max" not in engine.__all__
assert engine.quatf(0.0, 0.0, 0.0, 1.0) * engine.quatf(1.0, 0.0, 0.0, 0.0) is not NotImplemented
try:
    engine.no_such_name
except AttributeError as error:
    assert "no_such_name" in str(error)
else:
    raise AssertionError
"""
    assert "engine.tape.tape" in modules_after(code)
