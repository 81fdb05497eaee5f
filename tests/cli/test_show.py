"""adtool show and adtool doctor."""

from __future__ import annotations

import json
from typing import Any

import pytest

SCRIPT = """
import sys
import engine as wp

@wp.kernel
def scale(x: wp.array(dtype=wp.Float), y: wp.array(dtype=wp.Float)):
    i = wp.tid()
    y[i] = x[i] * x[i]  # the product

@wp.kernel
def unused(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0

print("args", sys.argv[1:])
x = wp.array([1.0, 2.0], dtype=wp.float64, requires_grad=True)
y = wp.zeros(2, dtype=wp.float64, requires_grad=True)
with wp.Tape():
    wp.launch(scale, dim=2, inputs=[x], outputs=[y])
"""


def test_beside_the_python_lines(adtool: Any) -> None:
    adtool.script(SCRIPT)
    done = adtool("show", "script.py", "scale", "--stage", "adjoint", "7")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "args ['7']\n" and "\x1b" not in done.stdout
    head, place, *lines = done.stdout.splitlines()
    assert head == "kernel `scale`, the backward pass, with gradients of x, y"
    assert place == "script.py:6"
    first = next(i for i, line in enumerate(lines) if "# the product" in line)
    assert lines[first].startswith("8     y[i] = x[i] * x[i]  # the product  ")
    assert "float64 = load %x[%i]" in lines[first]
    # The line is said once; what else comes from it stands below.
    assert sum("# the product" in line for line in lines) == 1
    assert "atomic_add %adj_x[%i]" in "\n".join(lines[first + 1 :])


def test_stages_as_json(adtool: Any) -> None:
    adtool.script(SCRIPT)
    done = adtool("show", "--format", "json", "--stage", "cpp", "script.py", "*")
    data = json.loads(done.stdout)
    assert (data["ok"], data["exit_code"], data["error"]) == (True, 0, None)
    assert [k["kernel"] for k in data["kernels"]] == ["scale", "unused"]
    lines = data["kernels"][0]["lines"]
    assert {x["source"].strip() for x in lines if x["line"] == 8} == {
        "y[i] = x[i] * x[i]  # the product"
    }
    assert all(x["file"] is None for x in lines if x["line"] is None)


@pytest.mark.parametrize(
    ("args", "words", "help"),
    [
        (["script.py", "scal"], "no kernel `scal`", "did you mean `scale`?"),
        (["script.py", "zzz"], "no kernel `zzz`", "its kernels are `scale`, `unused`"),
        (["script.py"], "no kernel is named on the command line", "adtool show SCRIPT KERNEL"),
        (["--stage", "llvm", "script.py", "scale"], "'llvm'", ""),
        (["missing.py", "scale"], "the script `missing.py` does not exist", ""),
        (["run.adt", "scale"], "takes no captures: `run.adt`", "adtool show SCRIPT scale"),
    ],
)
def test_what_cannot_be_shown(adtool: Any, args: list[str], words: str, help: str) -> None:
    adtool.script(SCRIPT)
    if "run.adt" in args:
        assert adtool("capture", "script.py", "--out", "run.adt").returncode == 0
    done = adtool("show", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("error: ") == 1
    assert words in done.stderr and help in done.stderr and "Traceback" not in done.stderr


def test_doctor(adtool: Any) -> None:
    done = adtool("doctor")
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "kernels on the CPU ok compiled and run, with a gradient" in said
    adtool.env["CXX"] = "no-such-compiler"
    done = adtool("doctor", "--format", "json")
    data = json.loads(done.stdout)
    assert (data["ok"], data["exit_code"], done.returncode) == (False, 2, 2)
    (compiler,) = (i for i in data["items"] if i["name"] == "compiler")
    assert compiler["status"] == "missing" and compiler["needed"] and "CXX" in compiler["help"]
