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


IDLE = f"""{CALLS.partition("for k")[0]}
double, x = Double.apply, torch.ones(3)
"""
IDLE_LINE = len(IDLE.splitlines()) + 1  # of the first one after it


@pytest.mark.parametrize(
    ("calls", "said", "cure"),
    [
        ("double(x)", "was called at {}, but no argument requires a gradient", "requires_grad_()"),
        ("[Double.apply(x) for _ in range(3)]",
         "was called 3 times, first at {}, but no argument requires a gradient",
         "requires_grad=True"),
        ("with torch.no_grad(): double(x.requires_grad_())",
         "was called at {}, but gradients are turned off there", "outside of torch.no_grad()"),
        ("with torch.inference_mode(): Double.apply(x)",
         "was called at {}, but gradients are turned off there", "torch.inference_mode()"),
        ("(x.requires_grad_() * double(x.detach())).sum().backward()",
         "was called at {}, but no argument requires a gradient", "requires_grad_()"),
    ],
    ids=["once", "several", "no_grad", "inference_mode", "detached"],
)  # fmt: skip
def test_a_function_of_which_no_call_wants_a_gradient(
    adtool: Any, calls: str, said: str, cure: str
) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    adtool.script(f"{IDLE}{calls}\n")
    done = adtool("check", "script.py")
    text = " ".join(done.stderr.split())
    assert done.returncode == 2 and "calls no handwritten gradient" not in text
    assert f"function `Double` {said.format(f'script.py:{IDLE_LINE}')}" in text
    assert "so there is no gradient to check" in text and cure in text


def test_one_call_that_wants_a_gradient_is_enough(adtool: Any) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    adtool.script(f"{IDLE}double(x)\nwith torch.no_grad(): double(x)\n"
                  "double(x.requires_grad_()).sum().backward()\n")  # fmt: skip
    report = adtool.report("script.py")
    assert report["exit_code"] == 0 and report["launches"]
    assert not any("requires a gradient" in note for note in report["notes"])


@pytest.mark.parametrize(
    ("call", "told"),
    [("Other.apply(x.detach())", True), ("torch.no_grad()(Other.apply)(x)", False)],
)
def test_a_function_beside_others_that_are_checked(adtool: Any, call: str, told: bool) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    other = IDLE.replace("class Double", "class Other").partition("double, x")[0]
    adtool.script(f"{IDLE}{other}double(x.requires_grad_()).sum().backward()\n{call}\n")
    report = adtool.report("script.py")
    assert report["exit_code"] == 0 and [x["kernel"] for x in report["launches"]] == ["Double"]
    said = [n for n in report["notes"] if "`Other` was called" in n and "was not checked" in n]
    assert bool(said) is told and len(report["notes"]) == len(said)


def test_rules_of_jax_are_checked_without_a_gradient_of_the_program(adtool: Any) -> None:
    pytest.importorskip("jax", reason="jax is not installed")
    adtool.script(
        "import jax\nimport jax.numpy as jnp\n\n"
        "@jax.custom_vjp\ndef cube(x):\n    return x ** 3\n\n"
        "cube.defvjp(lambda x: (x ** 3, x), lambda x, g: (3 * x ** 2 * g,))\n\n"
        "@jax.custom_jvp\ndef square(x):\n    return x ** 2\n\n"
        "square.defjvp(lambda p, t: (p[0] ** 2, 2 * p[0] * t[0]))\n"
        "cube(jnp.ones(3)), jax.jit(square)(jnp.ones(3))\n"
    )
    report = adtool.report("script.py")
    assert report["exit_code"] == 0
    assert {x["kernel"] for x in report["launches"]} == {"cube", "square"}
