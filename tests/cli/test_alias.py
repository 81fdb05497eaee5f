"""`--alias warp`: scripts written for Warp, by every command that runs a script."""

from __future__ import annotations

import importlib.util
import json

import pytest

from tests.cli.conftest import Tool

RIGHT = """
import warp as wp
from warp.types import vector

vec2 = vector(length=2, dtype=float)

@wp.kernel
def energy(x: wp.array(dtype=vec2), e: wp.array(dtype=float)):
    wp.atomic_add(e, 0, wp.dot(x[wp.tid()], x[wp.tid()]))

@wp.kernel
def reset(x: wp.array(dtype=vec2)):
    x[wp.tid()] = vec2(0.0, 1.0)

wp.init()
x = wp.array([[1.0, 2.0], [3.0, 4.0]], dtype=vec2, requires_grad=True)
e = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(energy, dim=2, inputs=[x], outputs=[e])
    OVERWRITE
tape.backward(e)
"""
OVERWRITTEN = RIGHT.replace("OVERWRITE", "wp.launch(reset, dim=2, outputs=[x])")
RIGHT = RIGHT.replace("OVERWRITE", "pass")


def test_a_right_script(adtool: Tool) -> None:
    adtool.script(RIGHT)
    data = adtool.report("--alias", "warp", "script.py")
    assert data["ok"] is True
    assert data["findings"] == []
    assert [launch["kernel"] for launch in data["launches"]] == ["energy"]


def test_overwritten_inputs_are_an_error(adtool: Tool) -> None:
    """The gradient is that of Warp, which is wrong; by the engine's own name it is right."""
    adtool.script(OVERWRITTEN)
    data = adtool.report("--alias", "warp", "script.py")
    assert data["exit_code"] == 1
    assert {f["code"]: f["severity"] for f in data["findings"]}["G003"] == "error"
    data = adtool.report("--alias", "warp", "--overwrites", "restore", "script.py")
    assert data["exit_code"] == 0
    adtool.script(OVERWRITTEN.replace("warp", "engine"))
    assert adtool.report("script.py")["exit_code"] == 0


def test_every_command_that_runs_scripts(adtool: Tool) -> None:
    adtool.script(RIGHT)
    alias = ("--alias", "warp")
    for words in (
        ("graph", "--no-check", *alias, "--out", "tape.dot", "script.py"),
        ("trace", *alias, "script.py"),
        ("jacobian", "--kernel", "energy", *alias, "script.py"),
        ("show", *alias, "script.py", "energy"),
        ("capture", *alias, "--out", "run.adt", "script.py"),
        ("check", "run.adt"),  # which needs no alias
        ("report", *alias, "--out", "page.html", "script.py"),
        ("baseline", "write", *alias, "script.py"),
        ("check", *alias, "-m", "script"),
    ):
        done = adtool(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert "energy" in (adtool.folder / "tape.dot").read_text()


def test_settings_and_jobs(adtool: Tool) -> None:
    adtool.script(RIGHT, "a.py")
    adtool.script(OVERWRITTEN, "b.py")
    adtool.script("[tool.adtool]\nalias = 'warp'\n", "pyproject.toml")
    done = adtool("check", "--jobs", "2", "--format", "json", "--each", "a.py", "b.py")
    assert done.returncode == 1
    found = {r["script"]: r["exit_code"] for r in json.loads(done.stdout)["runs"]}
    assert found == {"a.py": 0, "b.py": 1}


@pytest.mark.parametrize("name", ["engine", "warp.types", "1"])
def test_names_that_are_refused(adtool: Tool, name: str) -> None:
    adtool.script(RIGHT)
    done = adtool("check", "--alias", name, "script.py")
    assert done.returncode == 2
    assert "cannot be a name of the engine" in done.stderr


def test_who_forgets_it_is_told(adtool: Tool) -> None:
    adtool.script(RIGHT)
    if importlib.util.find_spec("warp") is None:  # else its own tapes are looked at
        done = adtool("check", "script.py")
        assert done.returncode == 2
        assert "--alias warp" in done.stderr
    # Something of that name whose tapes cannot be looked at.
    adtool.script("class Tape: pass\n", "warp.py")
    adtool.script("import warp\nwarp.Tape()\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "with --alias warp" in " ".join(done.stdout.split())


def test_fixes(adtool: Tool) -> None:
    right = """
import warp as wp
from warp import zeros

@wp.kernel
def twice(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = 2.0 * x[0]

x = wp.array([1.0], dtype=float, requires_grad=True)
m = zeros(1, dtype=float, requires_grad=True)
y = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(twice, dim=1, inputs=[x], outputs=[m])
    wp.launch(twice, dim=1, inputs=[m], outputs=[y])
tape.backward(y)
"""
    wrong = right.replace(
        "m = zeros(1, dtype=float, requires_grad=True)", "m = zeros(1, dtype=float)"
    )
    path = adtool.script(wrong)
    done = adtool("check", "--alias", "warp", "script.py")
    assert "G004" in done.stdout
    done = adtool("check", "--alias", "warp", "--fix", "script.py")
    assert done.returncode == 0, done.stdout
    assert path.read_text() == right
