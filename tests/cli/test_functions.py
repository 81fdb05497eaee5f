"""`adtool check` on scripts with functions of PyTorch that have a backward of their own."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

CUBE = """
import torch

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return {factor} * x ** 2 * grad

cube = Cube.apply
x = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
cube(x).sum().backward()
print("gradient", x.grad.tolist())
"""

TAPE = """
import engine as wp

@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]

a = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
b = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(double, dim=2, inputs=[a], outputs=[b])
"""


def test_a_right_function_alone_is_a_success(adtool: Any) -> None:
    adtool.script(CUBE.format(factor=3))
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("gradient [3.0, 12.0, 0.75]") == 1
    assert "1 call of PyTorch functions" in done.stdout and "passed" in done.stdout
    assert "as wholes" not in done.stdout


def test_a_wrong_one_is_an_error_at_its_backward(adtool: Any) -> None:
    path = adtool.script(CUBE.format(factor=2))
    done = adtool("check", "--format", "json", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    report = adtool.report("script.py")
    (finding,) = report["findings"]
    assert (finding["code"], finding["kernel"]) == ("G001", "Cube")
    line = path.read_text().splitlines()[finding["line"] - 1]
    assert line.strip() == "def backward(ctx, grad):"
    (launch,) = report["launches"]
    assert launch["framework"] == "PyTorch" and launch["pairs"][0]["verdict"] == "fail"
    assert "function `Cube`" in finding["message"]


def test_a_comment_suppresses_what_is_meant(adtool: Any) -> None:
    text = CUBE.format(factor=2).replace(
        "def backward(ctx, grad):", "def backward(ctx, grad):  # adtool: ignore[G001]"
    )
    adtool.script(text)
    done = adtool("check", "script.py")
    assert done.returncode == 0
    assert "1 call of functions, 1 pair checked" in done.stdout and "launch," not in done.stdout


def test_tapes_and_functions_in_one_report(adtool: Any) -> None:
    adtool.script(TAPE + CUBE.format(factor=3))
    report = adtool.report("script.py")
    assert report["ok"] and report["tapes"] == 2
    assert [(x["tape"], x["kernel"], x["framework"]) for x in report["launches"]] == [
        (0, "double", ""), (1, "Cube", "PyTorch"),
    ]  # fmt: skip
    said = "1 tape, 1 launch, 1 call of functions, 2 pairs checked"
    assert said in adtool("check", "script.py").stdout
    assert said in adtool("check", "--format", "markdown", "script.py").stdout


def test_functions_are_chosen_as_kernels_are(adtool: Any) -> None:
    adtool.script(TAPE + CUBE.format(factor=2))
    assert adtool("check", "--skip-kernel", "Cube", "script.py").returncode == 0
    assert adtool("check", "--kernel", "Cube", "script.py").returncode == 1


def test_what_is_left_out_is_told_where_it_is_all(adtool: Any) -> None:
    adtool.script(CUBE.format(factor=3).replace("0.5]", "0.5j]").replace("x.grad.tolist()", "0")
                  .replace(".sum().backward()", ""))  # fmt: skip
    report = adtool.report("script.py")
    assert report["exit_code"] == 2 and "complex" in report["error"]["message"]


def test_torch_without_a_function_of_its_own_is_nothing_to_check(adtool: Any) -> None:
    adtool.script("import torch\ntorch.ones(2, requires_grad=True).sum().backward()\n")
    report = adtool.report("script.py")
    assert report["exit_code"] == 2 and report["error"]["kind"] == "no-tape"


COMPILED = CUBE.replace(
    "cube = Cube.apply",
    """
@torch.compile(backend="aot_eager")
def cube(x):
    return Cube.apply(x)
""",
)


def test_compiled_code_is_a_finding_and_the_error_says_so(adtool: Any) -> None:
    adtool.script(COMPILED.format(factor=2))
    report = adtool.report("script.py")
    (finding,) = report["findings"]
    assert (finding["code"], finding["severity"]) == ("G012", "note")
    assert "function `Cube` was not checked" in finding["message"]
    assert "TORCH_COMPILE_DISABLE=1" in finding["help"] and finding["line"] > 0
    assert report["exit_code"] == 2 and report["notes"] == []
    assert "function `Cube`: it ran inside code that torch.compile" in report["error"]["message"]
    assert "TORCH_COMPILE_DISABLE=1" in report["error"]["help"]
    adtool.env["TORCH_COMPILE_DISABLE"] = "1"  # what it says to do
    assert [f["code"] for f in adtool.report("script.py")["findings"]] == ["G001"]


def test_compiled_code_counts_beside_what_is_checked(adtool: Any) -> None:
    adtool.script(COMPILED.format(factor=3) + TAPE)
    done = adtool("check", "script.py")
    assert done.returncode == 0 and "1 note" in done.stdout.splitlines()[-1]
    assert adtool("check", "--gate", "note", "script.py").returncode == 1
    assert "warning:" not in done.stdout + done.stderr


TWICE = """
import torch
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = wp.from_torch(x, requires_grad=True)
        ctx.y = wp.zeros(x.shape[0], requires_grad=True)
        wp.launch(square, x.shape[0], [ctx.x], [ctx.y])
        return wp.to_torch(ctx.y)

    @staticmethod
    def backward(ctx, grad):
        ctx.y.grad = wp.from_torch(grad)
        wp.launch(square, grad.shape[0], [ctx.x], [ctx.y], [ctx.x.grad], [ctx.y.grad], adjoint=True)
        return wp.to_torch(ctx.x.grad)

x = torch.tensor([1.0, 2.0], requires_grad=True)
Square.apply(x).backward(torch.ones(2))
print("gradient", x.grad.tolist())
"""


@pytest.mark.host("tensors of the host")
def test_a_gradient_that_counts_twice_is_told_at_the_backward(adtool: Any) -> None:
    """As Warp's own documentation writes such a function: the array shares the leaf's gradient."""
    adtool.script(TWICE)
    done = adtool("check", "script.py")
    assert "gradient [4.0, 8.0]" in done.stdout
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stdout
    text = " ".join(done.stdout.split())
    assert "error[G003]: `Square.backward` changes the gradient of the argument `x`, and" in text
    assert "from_torch(x.detach(), requires_grad=True)" in text


def test_a_function_of_an_installed_package_is_left_alone_with_words(adtool: Any) -> None:
    head, _, calls = CUBE.format(factor=2).partition("cube = ")
    mine = CUBE.format(factor=3).replace("Cube", "Mine")
    folder = adtool.script("").parent / "site-packages"
    (folder / "cubelib").mkdir(parents=True)
    (folder / "cubelib" / "__init__.py").write_text(head)
    text = (
        f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport torch\n"
        f"from cubelib import Cube\ncube = {calls}"
    )
    adtool.script(text)
    report = adtool.report("script.py")
    assert report["exit_code"] == 2 and "`Cube` of cubelib" in report["error"]["message"]
    assert adtool("check", "--kernel", "Cube", "script.py").returncode == 1
    adtool.script(text + mine, "both.py")
    report = adtool.report("both.py")
    assert report["exit_code"] == 0 and any("`Cube` of cubelib" in n for n in report["notes"])


def test_a_difference_that_is_intended(adtool: Any) -> None:
    """The help names a comment for it, and the comment at the line of the finding does it."""
    adtool.script(CUBE.format(factor=2))
    done = adtool("check", "script.py")
    assert done.returncode == 1
    said = "if the difference is intended, mark the line with `# adtool: ignore[G001]`"
    assert said in done.stdout
    line = "def backward(ctx, grad):"
    assert f"| {'    ' + line}" in done.stdout
    text = CUBE.format(factor=2).replace(line, f"{line}  # adtool: ignore[G001]")
    adtool.script(text)
    done = adtool("check", "script.py")
    assert done.returncode == 0 and "passed (1 suppressed)" in done.stdout
