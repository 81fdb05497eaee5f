"""Programs of PyTorch or JAX without a gradient written by hand, and without the engine."""

from __future__ import annotations

from typing import Any

import pytest

PLAIN = {
    "PyTorch": "import torch\nx = torch.ones(3, requires_grad=True)\n(x * x).sum().backward()\n",
    "JAX": "import jax\nimport jax.numpy as jnp\n"
           "jax.grad(lambda x: jnp.sum(x * x))(jnp.ones(3))\n",
}  # fmt: skip
LOOKS = (["trace"], ["graph"], ["jacobian"], ["capture"], ["show"])
CALLS = """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2.0 * x

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad

for k in range({count}):
    x = torch.full((3,), float(k), requires_grad=True)
    Double.apply(x).sum().backward()
"""


def plain(adtool: Any, framework: str, more: str = "") -> None:
    pytest.importorskip({"PyTorch": "torch", "JAX": "jax"}[framework])
    adtool.script(PLAIN[framework] + more)


@pytest.mark.parametrize("framework", PLAIN)
def test_a_check_says_what_is_not_checked(adtool: Any, framework: str) -> None:
    plain(adtool, framework)
    done = adtool("check", "script.py")
    assert done.returncode == 2 and "the script calls no handwritten gradient" in done.stderr
    assert f"it does not check the gradients of {framework} itself" in done.stderr
    assert "Tape" not in done.stderr


@pytest.mark.parametrize("framework", PLAIN)
@pytest.mark.parametrize("words", LOOKS, ids=lambda words: words[0])
def test_commands_that_look_at_tapes(adtool: Any, framework: str, words: list[str]) -> None:
    plain(adtool, framework)
    done = adtool(*words, "script.py", *(["k"] if words == ["show"] else []))
    assert done.returncode == 2 and "Tape" not in done.stderr
    only = f"`adtool {words[0]}` is only for tapes of engine or Warp; this script uses {framework}"
    assert only in done.stderr
    assert f"`adtool check` checks functions of {framework}" in done.stderr


@pytest.mark.parametrize("framework", PLAIN)
def test_a_program_that_also_uses_the_engine(adtool: Any, framework: str) -> None:
    """It forgot the tape: what it imports of the engine may be in a function of another file."""
    adtool.script("def run():\n    from engine import Tape\n    return Tape\n", "helper.py")
    plain(adtool, framework, "import helper\nhelper.run()\n")
    assert "made no tape" in adtool("check", "script.py").stderr
    done = adtool("jacobian", "script.py")
    assert "no launch was recorded on a tape" in done.stderr and "only for" not in done.stderr


@pytest.mark.parametrize(("count", "told"), [(2, False), (3, True), (4, True), (6, True)])
def test_equal_calls_that_are_not_checked(adtool: Any, count: int, told: bool) -> None:
    """The report says so exactly where some are left out, wherever they are among the calls."""
    pytest.importorskip("torch", reason="torch is not installed")
    adtool.script(CALLS.format(count=count))
    report = adtool.report("script.py")
    assert report["sampled"] == (["PyTorch"] if told else [])
    checked = len(report["launches"])
    assert (checked < count) is told
    done = adtool("check", "script.py")
    said = f"{checked} of {count} calls of PyTorch functions were checked in full: of equal calls"
    assert done.returncode == 0 and (said in " ".join(done.stdout.split())) is told


def test_equal_calls_that_are_all_checked(adtool: Any) -> None:
    """Those with a wrong gradient are, and so nothing is said of any that are not."""
    pytest.importorskip("torch", reason="torch is not installed")
    adtool.script(CALLS.format(count=10).replace("2.0 * grad", "3.0 * grad"))
    done = adtool("check", "script.py")
    assert done.returncode == 1 and "of equal calls" not in " ".join(done.stdout.split())
    report = adtool.report("script.py")
    assert (len(report["launches"]), report["sampled"]) == (10, [])
