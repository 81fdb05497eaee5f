"""Programs with modules of their own that are named like the tool's, or the standard library's."""

from __future__ import annotations

import _imp
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adtool.program_modules import _SHARED, TOOLS
from tests.cli.conftest import Tool
from tests.sweeps import reduced

OWN = "def train_one_epoch():\n    return 7\n\nOWN = True\n"

KERNEL = """
@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sin(x[i]) * x[i] * {factor}

x, y = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True), wp.zeros(3, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
tape.backward(grads={{y: wp.ones(3)}})
"""


def started() -> set[str]:
    """Names that plain Python does not look for in the script's folder: it has them already."""
    text = "import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return {n.partition(".")[0] for n in done.stdout.split()} | set(sys.builtin_module_names)


# Names of the standard library that a program may have, too, in plain Python. `distutils` is made
# by setuptools where it is installed.
NAMES = sorted(
    n
    for n in sys.stdlib_module_names - started() - {"distutils", *_SHARED}
    if not _imp.is_frozen(n)
)
LIBRARIES = ("adtool", "engine", "graphviz", "jinja2", "matplotlib", "rich", "typer")


def passed(tool: Tool, *args: str) -> str:
    done = tool("check", *args)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 pair checked" in done.stdout
    return done.stdout + done.stderr


def require_wrong(tool: Tool, file: str) -> None:
    """The one error is a wrong gradient in a file of the program."""
    report = tool.report("script.py")
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert found["code"] == "G001" and found["file"].endswith(file)


def test_all_names_at_once(adtool: Tool) -> None:
    """The tool, NumPy and the engine run, and the program has its own of every name."""
    names = [*NAMES, *LIBRARIES]
    for name in names:
        adtool.script(OWN, f"{name}.py")
    adtool.script(
        "import warp as wp\n"
        f"for name in {names}:\n"
        "    assert __import__(name).OWN, name\n"
        "import numpy as np\n"
        "np.random.default_rng(3)\n"
        + KERNEL.format(factor=1.25)
        + "from engine import train_one_epoch\n"
        "assert train_one_epoch() == 7\n",
        "main.py",
    )
    passed(adtool, "--alias", "warp", "main.py")
    for command in (
        ["graph", "--out", "tape.dot"], ["trace"], ["capture", "--out", "run.adt"],
        ["jacobian", "--kernel", "square", "--out", "j.png"],
        ["check", "--taylor", "--plot", "p.svg", "--out", "markdown=r.md"],
        ["check", "--diff"],
    ):  # fmt: skip
        done = adtool(*command, "--alias", "warp", "main.py")
        assert done.returncode == 0, (command, done.stderr)
    done = adtool("check", "run.adt")
    assert done.returncode == 0, done.stderr


PUBLIC = [n for n in NAMES if not n.startswith("_")]


@pytest.mark.parametrize("name", reduced(PUBLIC, lambda name: name in PUBLIC[::12]))
def test_a_name_of_the_standard_library(adtool: Tool, name: str) -> None:
    """A Warp-style script beside a file of that name, which fails where it is run by mistake."""
    adtool.script("raise RuntimeError('the file of the program was run')\n", f"{name}.py")
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "main.py")
    passed(adtool, "main.py")


@pytest.mark.parametrize("place", ["engine.py", "engine/__init__.py", "adtool.py"])
@pytest.mark.parametrize("runs", ["script", "module"])
def test_the_programs_own_comes_first(adtool: Tool, place: str, runs: str) -> None:
    name = place.partition("/")[0].removesuffix(".py")
    adtool.script(OWN, place)
    adtool.script(
        f"from {name} import train_one_epoch\nimport {name}\nimport sys\n"
        f"assert sys.modules[{name!r}] is {name} and train_one_epoch() == 7\n"
        "import warp as wp\n" + KERNEL.format(factor=1.5),
        "main.py",
    )
    args = ["main.py"] if runs == "script" else ["-m", "main"]
    passed(adtool, "--alias", "warp", *args)


def test_submodules_with_the_names_of_the_engines(adtool: Tool) -> None:
    """Names, places and texts of kernels are those of the program's `engine.utils`."""
    adtool.script("", "engine/__init__.py")
    adtool.script(
        "import warp as wp\n"
        "@wp.func\n"
        "def soft(x: float):\n"
        "    return wp.sqrt(x * x + 0.5)\n"
        "@wp.func_grad(soft)\n"
        "def adj_soft(x: float, adj_ret: float):\n"
        "    wp.adjoint[x] += 3.0 * x / wp.sqrt(x * x + 0.5) * adj_ret\n"
        "@wp.kernel\n"
        "def smooth(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n"
        "    y[i] = soft(x[i])\n"
        "def run():\n"
        "    x, y = wp.ones(3, requires_grad=True), wp.zeros(3, requires_grad=True)\n"
        "    with wp.Tape() as tape:\n"
        "        wp.launch(smooth, 3, [x], [y])\n"
        "    tape.backward(grads={y: wp.ones(3)})\n",
        "engine/utils.py",
    )
    adtool.script("from engine.utils import run\nimport engine.utils\nrun()\n", "main.py")
    report = adtool.report("--alias", "warp", "main.py")
    (found,) = [f for f in report["findings"] if f["severity"] == "error"]
    assert found["code"] == "G001" and found["file"].endswith("engine/utils.py")
    assert found["line"] == 6


def test_the_script_wants_the_engine(adtool: Tool) -> None:
    """Its own `engine.py` has not what is asked for; nor has a folder of data."""
    adtool.script(OWN, "engine.py")
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "main.py")
    passed(adtool, "main.py")
    adtool.script("from engine import kernel\nimport engine as wp\n" + KERNEL.format(factor=1.5))
    passed(adtool, "script.py")


def test_a_folder_of_data_is_no_module(adtool: Tool) -> None:
    adtool.script("{}", "engine/config.json")
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "main.py")
    passed(adtool, "main.py")


def test_the_script_is_called_engine(adtool: Tool) -> None:
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "engine.py")
    passed(adtool, "engine.py")


def test_both_are_wanted(adtool: Tool) -> None:
    adtool.script(OWN, "engine.py")
    adtool.script(
        "import engine as wp\nwp.train_one_epoch()\n" + KERNEL.format(factor=1.5), "main.py"
    )
    done = adtool("check", "main.py")
    assert done.returncode == 2
    for words in ("`engine` is a module of the program", "engine.py) and of adtool",
                  "--alias warp"):  # fmt: skip
        assert words in " ".join(done.stderr.split()), done.stderr


@pytest.mark.parametrize("words", ["from engine import train_one_epoch",
                                   "import engine; engine.train_one_epoch",
                                   "import engine.own"])  # fmt: skip
@pytest.mark.parametrize("how", ["append", "insert"])
def test_folders_that_the_program_adds(adtool: Tool, words: str, how: str) -> None:
    adtool.script(OWN, "src/engine/__init__.py")
    adtool.script(OWN, "src/engine/own.py")
    place = "(" if how == "append" else "(0, "
    adtool.script(
        f"import os, sys\nsys.path.{how}{place}os.path.join(os.path.dirname(__file__), '../src'))\n"
        f"{words}\nimport engine\nassert engine.OWN\nos.environ['LEFT'] = 'x'\nos.chdir('/')\n"
        "import warp as wp\n" + KERNEL.format(factor=1.5),
        "scripts/main.py",
    )
    passed(adtool, "--alias", "warp", "scripts/main.py")


def test_pythonpath(adtool: Tool) -> None:
    """Modules that a variable puts before the standard library are the program's, too."""
    for name in ("engine", "csv", "email", "secrets", "subprocess", "rich", "tempfile"):
        adtool.script(OWN, f"lib/{name}.py")
    adtool.script(
        "import engine, csv, email, secrets\n"
        "assert engine.OWN and csv.OWN and email.OWN and secrets.OWN\n"
        "import warp as wp\n" + KERNEL.format(factor=1.5)
    )
    adtool.env["PYTHONPATH"] = str(adtool.folder / "lib")
    passed(adtool, "--alias", "warp", "script.py")


@pytest.mark.parametrize("name", ["email", "secrets", "csv", "json", "subprocess", "rich"])
def test_python_m_adtool_beside_a_file_of_the_program(adtool: Tool, root: Path, name: str) -> None:
    """`python -m` looks in the current folder first; what the tool imports is not there."""
    adtool.script("raise RuntimeError('the file of the program was run')\n", f"{name}.py")
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "main.py")
    adtool.env["PYTHONPATH"] = str(root)
    adtool.command = [sys.executable, "-m", "adtool"]
    passed(adtool, "main.py")


def test_a_copy_of_the_engine_is_the_engine(adtool: Tool, root: Path) -> None:
    """As where a checkout is checked by a tool that is installed elsewhere: it is watched."""
    text = (root / "engine" / "__init__.py").read_text()
    adtool.script(text, "engine/__init__.py")
    adtool.script("import engine as wp\n" + KERNEL.format(factor=1.5), "main.py")
    passed(adtool, "main.py")


def test_functions_of_torch_in_the_programs_engine(adtool: Tool) -> None:
    pytest.importorskip("torch")
    adtool.script("from .ops import Square\n", "engine/__init__.py")
    adtool.script(
        "import torch\n"
        "class Square(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        ctx.save_for_backward(x)\n"
        "        return x * x\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return 3 * ctx.saved_tensors[0] * g\n",
        "engine/ops.py",
    )
    adtool.script(
        "import torch\nfrom engine import Square\n"
        "x = torch.arange(1.0, 4.0, requires_grad=True)\nSquare.apply(x).sum().backward()\n"
    )
    require_wrong(adtool, "engine/ops.py")


@pytest.mark.parametrize("search", [None, ".", "", os.pathsep + "elsewhere"])
def test_modules_of_the_current_folder_are_not_the_tools(adtool: Tool, search: str | None) -> None:
    """Nor of its children's, also where PYTHONPATH has the folder, which an empty word in it is."""
    for name in ("re", "json", "numpy"):
        adtool.script("raise SystemExit('the folder has its own')\n", f"{name}.py")
    for name in ("one", "two"):
        adtool.script("import sys\nsys.path[:] = [p for p in sys.path if p not in ('', '..')"
                      f" and p != {str(adtool.folder)!r}]\nimport warp as wp\n"
                      + KERNEL.format(factor=1.5), f"apart/{name}.py")  # fmt: skip
    if search is not None:
        adtool.env["PYTHONPATH"] = search
    done = adtool("doctor")
    assert done.returncode == 0 and "compiled and run, with a gradient" in done.stdout, done
    done = adtool("check", "-j", "2", "--alias", "warp", "apart/one.py", "apart/two.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 scripts" in done.stdout and "has its own" not in done.stdout + done.stderr


def test_the_table_of_names() -> None:
    """It is made from what this Python has, and not from a list that grows old."""
    assert {"csv", "email", "secrets", "string"} <= set(NAMES)
    assert len(NAMES) > 150 and set(TOOLS) <= set(LIBRARIES)


def test_rules_of_jax_in_the_programs_engine(adtool: Tool) -> None:
    pytest.importorskip("jax")
    adtool.script("from .ops import square\n", "engine/__init__.py")
    adtool.script(
        "import jax\n"
        "@jax.custom_vjp\n"
        "def square(x):\n"
        "    return x * x\n"
        "def forward(x):\n"
        "    return x * x, x\n"
        "def backward(x, g):\n"
        "    return (3 * x * g,)\n"
        "square.defvjp(forward, backward)\n",
        "engine/ops.py",
    )
    adtool.script(
        "import jax, jax.numpy as jnp\nfrom engine import square\n"
        "jax.grad(lambda x: square(x).sum())(jnp.arange(1.0, 4.0))\n"
    )
    require_wrong(adtool, "engine/ops.py")


LATE = (
    "import importlib; assert importlib.import_module('engine.util').Cfg",
    "import sys; sys.modules['engine.util']; sys.modules[__name__]",
    "import pickle; pickle.loads(pickle.dumps(engine.util.Cfg()))",
    "import inspect; inspect.getsource(engine.util.Cfg)",
    "import dataclasses as d\n        @d.dataclass\n        class D:\n            a: 'int' = 1",
    "import pkgutil; assert b'Cfg' in pkgutil.get_data('engine', 'util.py')",
    "import importlib; importlib.import_module('engine.late').L",
    "from engine.late import L; import engine.util as u; u.Cfg",
)


def test_modules_that_are_asked_for_while_functions_are_checked(adtool: Tool) -> None:
    pytest.importorskip("torch")
    adtool.script("MINE = 1\n", "engine/__init__.py")
    adtool.script("class Cfg:\n    pass\n", "engine/util.py")
    adtool.script("L = 1\n", "engine/late.py")
    text = "import torch, engine, engine.util\n"
    for number, line in enumerate(LATE):
        text += (
            f"class Cube{number}(torch.autograd.Function):\n"
            "    @staticmethod\n"
            "    def forward(ctx, x):\n"
            "        ctx.save_for_backward(x)\n"
            "        return x ** 3\n"
            "    @staticmethod\n"
            "    def backward(ctx, g):\n"
            "        (x,) = ctx.saved_tensors\n"
            f"        {line}\n"
            "        return 3 * x ** 2 * g\n"
        )
    adtool.script(text, "engine/ops.py")
    adtool.script(
        "import torch\nfrom engine import ops\n"
        f"for n in range({len(LATE)}):\n"
        "    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)\n"
        "    getattr(ops, f'Cube{n}').apply(x).sum().backward()\n"
    )
    report = adtool.report("script.py")
    assert not report["findings"] and len(report["launches"]) == len(LATE)


@pytest.mark.parametrize("name", ["code", "calendar", "engine"])
@pytest.mark.parametrize("way", ["fork", "spawn", "queue", "timeit"])
def test_libraries_find_what_the_program_names(adtool: Tool, name: str, way: str) -> None:
    adtool.script("", f"{name}/__init__.py")
    adtool.script(
        "class Cfg:\n    def __init__(self, n): self.n = n\ndef work(i):\n    return Cfg(i)\n",
        f"{name}/model.py",
    )
    use = {
        "fork": "with mp.get_context('fork').Pool(2) as p:\n        got = p.map(work, [1, 2])",
        "spawn": "with mp.get_context('spawn').Pool(1) as p:\n        got = p.map(work, [1, 2])",
        "queue": "q = mp.Queue(); q.put(Cfg(1)); got = [q.get(), Cfg(2)]",
        "timeit": "import timeit; timeit.timeit('work(1)', "
        f"'from {name}.model import work', number=1); got = [Cfg(1), Cfg(2)]",
    }[way]
    adtool.script(
        f"from {name}.model import work, Cfg\nimport multiprocessing as mp\n"
        f"if __name__ == '__main__':\n    {use}\n    assert got[1].n == 2\n"
        "    import main_kernel\n",
        "main.py",
    )
    adtool.script("import warp as wp\n" + KERNEL.format(factor=1.5), "main_kernel.py")
    passed(adtool, "--alias", "warp", "main.py")


def test_a_folder_with_code_in_its_folders(adtool: Tool) -> None:
    adtool.script("A = 3\n", "engine/sub/mod.py")
    adtool.script(
        "from engine.sub.mod import A\nassert A == 3\n"
        "import warp as wp\n" + KERNEL.format(factor=1.5),
        "main.py",
    )
    passed(adtool, "--alias", "warp", "main.py")


@pytest.mark.parametrize("name", ["logging", "json", "email", "rich", "random"])
def test_a_folder_without_a_package_gives_way(adtool: Tool, name: str) -> None:
    """As in plain Python: the standard library's comes before a folder of scripts."""
    adtool.script("X = 1\n", f"{name}/helper.py")
    adtool.script(
        f"import {name}\nassert {name}.__file__\nimport warp as wp\n" + KERNEL.format(factor=1.5),
        "main.py",
    )
    passed(adtool, "--alias", "warp", "main.py")
