"""A framework that cannot be watched is told by the command line: by what, and what to do.

Stand-ins for frameworks lie beside the script: packages of that name, of a version that is none.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

# What there is of each, and a place that cannot be watched in it.
STAND_INS = {
    "torch": ("__version__ = '99.1'\nclass autograd: Function = object\n", "PyTorch 99.1",
              "calls of torch.autograd.Function"),
    "jax": ("__version__ = '98.2'\n", "JAX 98.2", "all of it"),
    "warp": ("__version__ = '97.3'\nclass Tape:\n    def backward(self): pass\n", "Warp 97.3",
             "the blocks and backward passes of warp.Tape"),
}  # fmt: skip

TAPE = """
import numpy as np
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

x = wp.array(np.arange(1.0, 4.0), dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones(3, dtype=float)})
"""


def program(adtool: Any, module: str, more: str = "") -> None:
    """A script that imports the stand-in of a framework."""
    adtool.script(STAND_INS[module][0], f"{module}/__init__.py")
    adtool.script(f"import {module}\n{more}")


@pytest.mark.parametrize("module", STAND_INS)
def test_nothing_else_to_check(module: str, adtool: Any) -> None:
    program(adtool, module)
    report = adtool.report("script.py")
    _, version, seam = STAND_INS[module]
    assert report["exit_code"] == 2
    assert report["error"]["message"] == f"nothing was checked: adtool cannot watch {version}"
    (finding,) = report["findings"]
    assert "adtool doctor" in finding["help"]
    assert (finding["code"], finding["severity"]) == ("G012", "warning")
    assert f"adtool cannot watch {version}: {seam}" in finding["message"]


@pytest.mark.parametrize("module", STAND_INS)
def test_beside_a_tape_it_is_a_warning(module: str, adtool: Any) -> None:
    program(adtool, module, TAPE)
    report = adtool.report("script.py")
    assert report["exit_code"] == 0
    (finding,) = (f for f in report["findings"] if f["code"] == "G012")
    assert finding["severity"] == "warning" and STAND_INS[module][1] in finding["message"]


@pytest.mark.parametrize("module", STAND_INS)
def test_it_is_said_once(module: str, adtool: Any) -> None:
    program(adtool, module)
    done = adtool("check", "script.py")
    seam = STAND_INS[module][2]
    assert " ".join((done.stdout + done.stderr).split()).count(seam) == 1
    # Where the finding is suppressed, the error says all of it.
    done = adtool("check", "--ignore", "G012", "script.py")
    assert " ".join(done.stderr.split()).count(seam) == 1 and done.returncode == 2


def test_what_is_missing_is_no_circular_import(adtool: Any) -> None:
    program(adtool, "torch")
    (finding,) = adtool.report("script.py")["findings"]
    assert "has no attribute 'library'" in finding["message"]
    assert "circular" not in finding["message"]


# A module of a framework that holds all that is watched, and is imported after the framework.
LATE = """
import sys
import engine.foreign.{file} as watcher
from engine.foreign.seams import Part

def begin():
    sys.modules["{module}"].late.there

class Watcher:
    def __init__(self, collection): pass
    def parts(self, module): return {{"{key}": Part(begin, lambda everything: True)}}
    def remove(self): pass

watcher.Watcher = Watcher
import {imports}
"""


@pytest.mark.parametrize(
    ("module", "file", "key"),
    [("torch", "torch_functions", "functions"), ("jax", "jax_calls", "vjp"),
     ("warp", "warp_check", "tapes")],
)  # fmt: skip
@pytest.mark.parametrize("imports", ["{}.late", "{}", "{}.outer"])
def test_a_place_in_a_module_that_is_imported_later(
    module: str, file: str, key: str, imports: str, adtool: Any
) -> None:
    adtool.script("__version__ = '1'\n", f"{module}/__init__.py")
    adtool.script("there = 1\n", f"{module}/late.py")
    adtool.script(f"import {module}.late\n", f"{module}/outer.py")
    imports = imports.format(module)
    adtool.script(LATE.format(module=module, file=file, key=key, imports=imports))
    findings = adtool.report("script.py").get("findings", [])
    assert bool(findings) == (imports == module)
    assert all("has no attribute 'late'" in f["message"] for f in findings)


@pytest.mark.parametrize("module", STAND_INS)
def test_a_version_of_other_files_is_not_told(module: str, adtool: Any) -> None:
    adtool.script(STAND_INS[module][0].partition("\n")[2], f"{module}/__init__.py")
    adtool.script(f"import {module}\n")
    message = adtool.report("script.py")["error"]["message"]
    assert message.endswith(f"{STAND_INS[module][1].split()[0]} of unknown version")


@pytest.mark.parametrize("module", STAND_INS)
@pytest.mark.parametrize("error", ["ImportError", "RuntimeError"])
def test_an_import_that_fails(module: str, error: str, adtool: Any) -> None:
    adtool.script(f"raise {error}('libsome.so is missing')\n", f"{module}/__init__.py")
    adtool.script(f"try:\n    import {module}\nexcept {error}:\n    pass\n")
    message = adtool.report("script.py")["error"]["message"]
    name = STAND_INS[module][1].split()[0]
    assert f"the import of {name} failed ({error}: libsome.so is missing)" in message


@pytest.mark.parametrize(("module", "name"), [("paddle", "Paddle"), ("numba", "Numba")])
def test_frameworks_that_are_not_checked(module: str, name: str, adtool: Any) -> None:
    adtool.script("", f"{module}/__init__.py")
    adtool.script(f"import {module}\n")
    error = adtool.report("script.py")["error"]
    assert f"adtool does not check gradients of {name}" in error["message"]
    assert "docs/frameworks.md" in error["help"]
    adtool.script(f"import {module}\nimport engine\n")  # a program of the engine
    assert "made no tape" in adtool.report("script.py")["error"]["message"]


def test_warp_without_a_tape(adtool: Any) -> None:
    adtool.script("class Tape:\n    def backward(self): pass\n", "other/__init__.py")
    adtool.script("import sys, types\nsys.modules['warp'] = types.ModuleType('warp')\n"
                  "import warp\n")  # fmt: skip
    error = adtool.report("script.py")["error"]
    assert error["message"] == "nothing was checked: the script made no tape"
    assert "warp.Tape()" in error["help"]


@pytest.mark.parametrize("how", ["os.fork()", "os.forkpty()[0]"])
def test_a_tape_in_a_fork_alone(how: str, adtool: Any) -> None:
    adtool.script(f"import os\nif not {how}:\n{_indented(TAPE)}\n    os._exit(0)\nos.wait()\n")
    message = adtool.report("script.py")["error"]["message"]
    assert "no tape in its own process, and it started 1 other" in message


def test_forks_of_multiprocessing_count_once(adtool: Any) -> None:
    adtool.script(
        "import multiprocessing, os\ncontext = multiprocessing.get_context('fork')\n"
        "p = context.Process(target=print)\np.start()\np.join()\n"
        "if not os.fork():\n    os._exit(0)\nos.wait()\n"
    )
    assert "it started 2 others" in adtool.report("script.py")["error"]["message"]


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@pytest.mark.parametrize("module", STAND_INS)
def test_doctor_does_not_say_ok(module: str, adtool: Any) -> None:
    program(adtool, module)
    adtool.env["PYTHONPATH"] = str(adtool.folder)
    (item,) = (
        i for i in json.loads(adtool("doctor", "--format", "json").stdout)["items"]
        if i["name"] == module
    )  # fmt: skip
    _, _, seam = STAND_INS[module]
    assert item["status"] == "problem" and "cannot be watched" in item["found"]
    assert seam in item["found"] and "another version" in item["help"]
    assert item["found"].startswith(STAND_INS[module][1].split()[1])
