"""`adtool check --diff` and `--fix`: what is written makes findings go away, and is no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Tool

SHARED = """import engine as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret


@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])


def room(n):
    return ["日", wp.zeros(n, dtype=float)][1]  # made here
"""

# No fix but the first is safe.
MAIN = """import engine as wp
from shared import room, square, total

@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.1 * gradient[i]

x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
for step in range(2):
    y = room(2)
    z = wp.zeros(
        2,
        dtype=float,  # one a line
    )
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    wp.launch(square, 2, inputs=[x], outputs=[y])
    with wp.Tape() as tape:
        wp.launch(square, 2, inputs=[y], outputs=[z])
        wp.launch(total, 2, inputs=[z], outputs=[loss])
    tape.backward(loss)
    seen = x.grad.numpy().tolist()
    wp.launch(descend, 2, inputs=[x, x.grad])
print("gradient", seen)
"""
FIXED = """import engine as wp
from shared import room, square, total

@wp.kernel
def descend(x: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] - 0.1 * gradient[i]

x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
for step in range(2):
    y = room(2)
    z = wp.zeros(
        2,
        dtype=float,  # one a line
        requires_grad=True,
    )
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 2, inputs=[x], outputs=[y])
        wp.launch(square, 2, inputs=[y], outputs=[z])
        wp.launch(total, 2, inputs=[z], outputs=[loss])
    tape.backward(loss)
    seen = x.grad.numpy().tolist()
    wp.launch(descend, 2, inputs=[x, x.grad])
    tape.zero()
print("gradient", seen)
"""
ROOM = '["日", wp.zeros(n, dtype=float)]'
ROOMY = '["日", wp.zeros(n, dtype=float, requires_grad=True)]'


def test_several_faults_in_two_files(adtool: Tool, root: Path) -> None:
    main = adtool.script("", "main.py")
    before = b"\xef\xbb\xbf" + MAIN.replace("\n", "\r\n").encode()
    main.write_bytes(before)
    shared = adtool.script(SHARED, "shared.py")

    words = ("check", "-q", "--gate", "warning", "--diff", "--unsafe-fixes", "main.py")
    process = adtool.start(*words, text=False)
    shown, _ = process.communicate(timeout=300)
    assert process.returncode == 1
    assert b"fixes to try" not in shown  # the diff shows them all
    safe = adtool("check", "-q", "--gate", "warning", "--diff", "main.py").stdout
    assert "fixes to try: 1 with --fix --unsafe-fixes; --diff --unsafe-fixes shows it" in safe
    all_of_them = adtool("check", "-q", "--gate", "warning", "main.py").stdout
    assert all_of_them.endswith("--fix --unsafe-fixes; --diff --unsafe-fixes shows it\n")
    assert (main.read_bytes(), shared.read_text()) == (before, SHARED)
    subprocess.run(["git", "apply"], cwd=adtool.folder, input=shown, check=True, timeout=60)
    assert main.read_bytes() == b"\xef\xbb\xbf" + FIXED.replace("\n", "\r\n").encode()
    assert shared.read_text() == SHARED.replace(ROOM, ROOMY)
    plain = python(adtool, root, "main.py")
    # The derivative of the sum of x**4, at 1 - 0.4 and 2 - 3.2.
    seen = json.loads(plain.removeprefix("gradient"))
    assert seen == pytest.approx([4 * 0.6**3, 4 * (-1.2) ** 3], rel=1e-5)


def python(adtool: Tool, root: Path, script: str) -> str:
    """What a script prints when plain Python runs it."""
    done = subprocess.run(
        [sys.executable, script], cwd=adtool.folder, env=adtool.env | {"PYTHONPATH": str(root)},
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout


def test_a_fix_that_brings_another_fault_to_light_is_not_made(adtool: Tool) -> None:
    adtool.script(SHARED, "shared.py")
    text = (
        "import engine as wp\nfrom shared import cubes, room, total\n"
        "x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)\ny = room(2)\n"
        "loss = wp.zeros(1, dtype=float, requires_grad=True)\n"
        "with wp.Tape() as tape:\n    wp.launch(cubes, 2, inputs=[x], outputs=[y])\n"
        "    wp.launch(total, 2, inputs=[y], outputs=[loss])\ntape.backward(loss)\n"
    )
    adtool.script(text)
    done = adtool("check", "--format", "json", "--fix", "script.py")
    data = json.loads(done.stdout)
    assert done.returncode == data["exit_code"] == 1
    assert [f["code"] for f in data["findings"] if f["severity"] == "error"] == ["G004"]
    assert data["findings"][0]["fix"]["safe"] is True
    assert (adtool.folder / "shared.py").read_text() == SHARED
    assert (
        "not fixed: error[G004] at script.py:8: with the change there is error[G001]"
    ) in done.stderr
    assert "changed" not in done.stderr


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_it_is_told_that_there_is_nothing_to_fix(adtool: Tool, option: str) -> None:
    adtool.script(SHARED, "shared.py")
    wrong = (
        "import engine as wp\nfrom shared import cubes\n"
        "x, y = wp.ones(2, requires_grad=True), wp.zeros(2, requires_grad=True)\n"
        "with wp.Tape() as tape:\n    wp.launch(cubes, 2, inputs=[x], outputs=[y])\n"
    )
    adtool.script(wrong)
    none = "nothing to fix: no finding has a fix\n"
    done = adtool("check", option, "script.py")
    assert done.returncode == 1 and none in done.stdout and not done.stderr
    done = adtool("check", option, "--format", "json", "script.py")
    assert json.loads(done.stdout)["exit_code"] == 1 and done.stderr == none
    assert "to fix" not in adtool("check", "-q", option, "script.py").stdout
    adtool.script(
        MAIN.replace("y = room(2)", "y = wp.zeros(2, requires_grad=True)").replace(
            "        dtype=float,  # one a line\n", "        requires_grad=True,\n"
        )
    )
    done = adtool("check", option, "script.py")
    assert "nothing to fix: no finding has a safe fix\n" in done.stdout
    adtool.script("raise ValueError")
    done = adtool("check", option, "script.py")
    assert done.returncode == 2 and "to fix" not in done.stdout + done.stderr


def test_a_module_of_two_scripts_is_fixed_once(adtool: Tool) -> None:
    text = (
        "import engine as wp\nfrom shared import room, square, total\n"
        "x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)\ny = room(2)\n"
        "loss = wp.zeros(1, dtype=float, requires_grad=True)\n"
        "with wp.Tape() as tape:\n    wp.launch(square, 2, inputs=[x], outputs=[y])\n"
        "    wp.launch(total, 2, inputs=[y], outputs=[loss])\ntape.backward(loss)\n"
        "wp.launch(square, 2, inputs=[x], outputs=[y])  # adtool: ignore[G003]\n"
    )
    shared = adtool.script(SHARED, "shared.py")
    shared.chmod(0o750)
    adtool.script(text, "a.py")
    adtool.script(text.replace("  # adtool: ignore[G003]", ""), "b.py")
    data = json.loads(adtool("check", "--format", "json", "--fix", "a.py", "b.py").stdout)
    assert data["exit_code"] == 0 and [r["ok"] for r in data["runs"]] == [True, True]
    assert [[f["code"] for f in r["findings"]] for r in data["runs"]] == [[], []]
    assert shared.read_text() == SHARED.replace(ROOM, ROOMY)
    assert shared.stat().st_mode & 0o777 == 0o750
    assert (adtool.folder / "a.py").read_text() == (adtool.folder / "b.py").read_text()


def test_what_is_refused(adtool: Tool) -> None:
    adtool.script("")
    for words, message in (
        (["--fix", "--diff"], "--fix and --diff exclude each other"),
        (["--unsafe-fixes"], "--unsafe-fixes needs --fix or --diff"),
    ):
        done = adtool("check", *words, "script.py")
        assert done.returncode == 2 and message in done.stderr
    (adtool.folder / "pyproject.toml").write_text("[tool.adtool]\nfix = true\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2 and "fix" in done.stderr


def test_the_samples(adtool: Tool, root: Path) -> None:
    del adtool.env["ENGINE_CACHE_DIR"]  # these kernels are known from other tests
    samples = {
        "broken_missing_requires_grad.py": "= wp.zeros(balls, dtype=wp.vec3, requires_grad=True)",
        "broken_stale_gradient.py": "{size:.4f}\")\n        tape.zero()\n\n",
    }  # fmt: skip
    for name in samples:
        adtool.script((root / "samples" / name).read_text(), name)
    done = adtool("check", "-q", "--gate", "warning", "--fix", "--unsafe-fixes", ".")
    assert done.returncode == 0, done.stdout
    for name, line in samples.items():
        text = (adtool.folder / name).read_text()
        assert line in text
        assert f"changed {name}" in done.stdout
        compile(text, name, "exec")
    printed = python(adtool, root, "broken_missing_requires_grad.py")
    assert "gradient" in printed and "gradient 0.00000" not in printed
