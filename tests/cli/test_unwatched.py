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
    assert f"adtool cannot watch {version}: {seam}" in report["error"]["message"]
    assert "no tape" not in report["error"]["message"]
    assert "adtool doctor" in report["error"]["help"]
    (finding,) = report["findings"]
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
