"""A user's project with tests, and pytest run in it as the user does."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from xml.etree import ElementTree

# Where adtool is not installed with its entry point (a checkout on the path), it is named.
PLUGIN = [] if entry_points(group="pytest11", name="adtool") else ["-p", "adtool.pytest_plugin"]

KERNELS = """
import engine as wp

@wp.func
def cube(v: float):
    return v * v * v

@wp.func_grad(cube)
def adj_cube(v: float, adj_ret: float):
    wp.adjoint[v] += adj_ret * 2.0 * v

@wp.kernel
def wrong(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

@wp.kernel
def right(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def outside(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i + 2] * x[i]

@wp.kernel
def kinked(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.abs(x[i] - 2.0)

@wp.kernel
def total(x: wp.array(dtype=float), s: wp.array(dtype=float)):
    wp.atomic_add(s, 0, x[wp.tid()])

def total_of_constants():
    x, s = arrays()
    x.requires_grad = False
    with wp.Tape() as tape:
        wp.launch(total, dim=3, inputs=[x], outputs=[s])
    tape.backward(grads={s: wp.ones_like(s)})
    return tape

def arrays():
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    return x, wp.zeros(3, dtype=float, requires_grad=True)

def launch(kernel, tape=None, gradient=True):
    x, y = arrays()
    x.requires_grad = y.requires_grad = gradient
    tape = tape or wp.Tape()
    with tape:
        wp.launch(kernel, dim=3, inputs=[x], outputs=[y])
    if gradient:
        tape.backward(grads={y: wp.ones_like(y)})
    return tape
"""


class Project:
    """A folder with tests."""

    def __init__(self, folder: Path, root: Path, cache: Path) -> None:
        self.folder = folder
        self.env = {
            k: v for k, v in os.environ.items()
            if not k.startswith(("PYTEST_", "PY_COLORS", "FORCE_COLOR", "GITHUB_", "ENGINE_VERIFY"))
        }  # fmt: skip
        self.env |= {"PYTHONPATH": str(root), "ENGINE_CACHE_DIR": str(cache), "COLUMNS": "200"}
        self.write("kernels.py", KERNELS)
        # In the order that each test chooses, whatever else is installed.
        options = "--strict-markers -p no:cacheprovider -p no:randomly"
        self.write(
            "pytest.ini",
            f"[pytest]\naddopts = {options}\npythonpath = .\nfilterwarnings = error\n",
        )

    def write(self, name: str, text: str) -> Path:
        """Writes a file into it."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, module: str, *args: str) -> subprocess.CompletedProcess[str]:
        """Runs a module in it, as `python -m`."""
        return subprocess.run(
            [sys.executable, "-m", module, *args], cwd=self.folder, env=self.env, text=True,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip

    def __call__(self, *args: str, plugin: bool = True) -> Done:
        """Runs pytest in it, to its end."""
        junit = self.folder / "junit.xml"
        junit.unlink(missing_ok=True)
        own = PLUGIN if plugin else []
        done = self.run("pytest", *own, f"--junitxml={junit}", *args)
        return Done(done.returncode, done.stdout, done.stderr, _outcomes(junit))


class Done:
    """A run. outcomes: of tests, by name: `passed`, or what JUnit calls it, and the text."""

    def __init__(
        self, code: int, out: str, err: str, outcomes: dict[str, list[tuple[str, str]]]
    ) -> None:
        self.code, self.out, self.err, self.outcomes = code, out, err, outcomes

    def kinds(self) -> dict[str, list[str]]:
        """How each test ended: `passed`, `failure`, `error` (of setup or teardown), `skipped`."""
        return {name: [kind for kind, _ in found] for name, found in self.outcomes.items()}

    def text(self, test: str) -> str:
        """What is said of a test."""
        return "\n".join(text for _, text in self.outcomes[test])

    @property
    def section(self) -> list[str]:
        """The lines of adtool's section at the end."""
        lines = self.out.splitlines()
        heads = [i for i, line in enumerate(lines) if line.strip("= ") == "adtool"]
        if not heads:
            return []
        rest = lines[heads[0] + 1 :]
        ends = [i for i, line in enumerate(rest) if line.startswith("===")] or [len(rest)]
        return rest[: ends[0]]


def _outcomes(junit: Path) -> dict[str, list[tuple[str, str]]]:
    if not junit.exists():
        return {}
    found: dict[str, list[tuple[str, str]]] = {}
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        said = [(x.tag, f"{x.get('message', '')}\n{x.text or ''}") for x in case
                if x.tag in ("failure", "error", "skipped")]  # fmt: skip
        found.setdefault(str(case.get("name")), []).extend(said or [("passed", "")])
    return found
