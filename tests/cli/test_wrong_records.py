"""`adtool check` where the engine's own backward pass of a copy or fill is wrong."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Tool

SCRIPT = """
import engine as wp
from engine.tape.records import CopyRecord, FillRecord

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y, z, out = (wp.zeros(3, dtype=float, requires_grad=True) for _ in range(3))
with wp.Tape() as tape:
    wp.launch(square, 3, [x], [y])
    wp.copy(z, y)
    y.zero_()
    wp.launch(square, 3, [z], [out])
tape.backward(grads={out: wp.ones(3)})
"""


def test_right_ones_pass(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "name", "call"),
    [("CopyRecord", "copy", "wp.copy(z, y)"), ("FillRecord", "zero_", "y.zero_()")],
)
def test_a_wrong_one_is_an_error_at_its_call(adtool: Tool, kind: str, name: str, call: str) -> None:
    path = adtool.script(SCRIPT + f"{kind}.reverse = lambda self, restored=(): None\n")
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    (finding,) = adtool.report("script.py")["findings"]
    line = 1 + SCRIPT.splitlines().index(f"    {call}")
    assert (finding["code"], finding["line"], finding["file"]) == ("G010", line, str(path))
    assert f"the gradient changes across `{name}`" in finding["message"]
