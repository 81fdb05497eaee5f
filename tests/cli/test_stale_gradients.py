"""What G013 says of loops that never clear their gradients, and whether its cures can be typed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tool

HEAD = """
import numpy as np
import engine as wp

F = wp.array(dtype=float)

@wp.kernel
def decay(u: F, v: F):
    i = wp.tid()
    v[i] = 0.9 * u[i] * u[i]

@wp.kernel
def total(u: F, loss: F):
    wp.atomic_add(loss, 0, u[wp.tid()])

def start():
    return wp.array(np.linspace(0.5, 1.5, 4), dtype=float, requires_grad=True)

def zeros(n):
    return wp.zeros(n, dtype=float, requires_grad=True)
"""

STATES = """
u0 = start()
states = [u0] + [zeros(4) for _ in range(3)]
for turn in range(4):
    loss = zeros(1)
    tape = wp.Tape()
    with tape:
        for s in range(3):
            wp.launch(decay, dim=4, inputs=[states[s]], outputs=[states[s + 1]])
        wp.launch(total, dim=4, inputs=[states[3]], outputs=[loss])
    tape.backward(loss)  # wanted
    u0.assign(u0.numpy() - 0.01 * u0.grad.numpy())
    # the cure
"""

MODEL = """
class Model:
    def __init__(self):
        self.theta = start()
        self.hidden = [zeros(4) for _ in range(2)]

    def forward(self, loss):
        x = self.theta
        for y in self.hidden:
            wp.launch(decay, dim=4, inputs=[x], outputs=[y])
            x = y
        wp.launch(total, dim=4, inputs=[x], outputs=[loss])

m = Model()
for turn in range(4):
    loss = zeros(1)
    tape = wp.Tape()
    with tape:
        m.forward(loss)
    tape.backward(loss)  # wanted
    m.theta.assign(m.theta.numpy() - 0.01 * m.theta.grad.numpy())
    # the cure
"""

# The array is a variable of a function that has returned.
HIDDEN = """
def made():
    x = start()

    def run(loss):
        y = zeros(4)
        wp.launch(decay, dim=4, inputs=[x], outputs=[y])
        wp.launch(total, dim=4, inputs=[y], outputs=[loss])

    def step():
        x.assign(x.numpy() - 0.01 * x.grad.numpy())

    return run, step

run, step = made()
for turn in range(4):
    loss = zeros(1)
    tape = wp.Tape()
    with tape:
        run(loss)
    tape.backward(loss)  # wanted
    step()
    # the cure
"""

# Another array has the name where the pass runs.
HIDDEN_BY_ANOTHER = HIDDEN.replace("run, step = made()", "run, step = made()\nx = start()")

PROGRAMS = {
    "states": (STATES, "u0", True),
    "model": (MODEL, "m.theta", True),
    "hidden": (HIDDEN, "x", False),
    "hidden by another": (HIDDEN_BY_ANOTHER, "x", False),
}


def findings(tool: Tool) -> list[Any]:
    return [f for f in tool.report("script.py")["findings"] if f["code"] == "G013"]


@pytest.mark.parametrize("which", PROGRAMS)
def test_each_cure_can_be_typed_and_cures(adtool: Tool, which: str) -> None:
    text, name, valid = PROGRAMS[which]
    text = HEAD + text
    adtool.script(text)
    (found,) = findings(adtool)
    assert found["severity"] == "error" and f"moves `{name}` by it" in found["message"]
    assert found["line"] == next(
        n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# wanted")
    )
    cures = re.findall(r"[\w.]+\(\)(?=$|,)", found["help"])
    assert cures == ["tape.zero()", f"{name}.grad.zero_()"][: 1 + valid]
    assert "before this backward() runs again" in found["help"]
    assert "the same call" in " ".join(found["notes"])
    for cure in cures:
        adtool.script(text.replace("# the cure", cure))
        assert adtool("check", "script.py").returncode == 0
        assert findings(adtool) == []


def test_the_sample_of_tensors_without_zero_grad(adtool: Tool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    sample = Path(__file__).parents[2] / "samples" / "interop" / "torch_direct.py"
    right = sample.read_text("utf-8").replace("raise SystemExit(", "print(")
    clears = "        optimizer.zero_grad()\n"
    assert right.count(clears) == 1
    text = right.replace(clears, "")
    adtool.script(text)
    (found,) = findings(adtool)
    assert found["severity"] == "error" and "moves `mass` by it" in found["message"]
    assert text.splitlines()[found["line"] - 1].strip() == "tape.backward(loss)"
    assert found["help"].endswith("tape.zero(), or mass.grad.zero_()")
    for cure in ("tape.zero()", "mass.grad.zero_()"):
        adtool.script(
            text.replace("        losses.append", f"        {cure}\n        losses.append")
        )
        assert findings(adtool) == []
