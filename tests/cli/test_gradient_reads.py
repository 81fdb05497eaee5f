"""Gradients that a program reads, of arrays that have none for want of requires_grad."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import Tool

HEAD = """
import contextlib
import engine as wp

@wp.kernel
def scale(x: wp.array(dtype=float), k: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * k[0]

@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])

@wp.kernel
def descend(k: wp.array(dtype=float), gradient: wp.array(dtype=float)):
    k[wp.tid()] = k[wp.tid()] - 0.1 * gradient[wp.tid()]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
k = wp.array([2.0], dtype=float)
y = wp.zeros(3, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(scale, dim=3, inputs=[x, k], outputs=[y])
    wp.launch(total, dim=3, inputs=[y], outputs=[loss])
"""
TAPE = HEAD + "tape.backward(loss)\n"
MADE = "k = wp.array([2.0], dtype=float"
SEEN = f"script.py:{HEAD.splitlines().index(MADE + ')') + 1}:5)"

# The lines that use a gradient.
READS = """
print(k.grad)  # wanted
print(x.grad, [k.grad, y.grad])  # wanted
print(f"gradient: {k.grad}")  # wanted
print(tape.gradients.get(k))  # wanted
print(tape.get_adjoint(k))  # wanted
print(k[0:1].grad)  # wanted

def shown(p):
    print(p.grad)  # wanted

shown(k)
if x.grad is not None:
    print(k.grad)  # wanted
"""

# The same by programs that know that an array may have none.
RIGHT = """
import helper

if k.grad is not None:
    print("a gradient")
if k.grad:
    print("a gradient")
print(k.grad if k.grad is not None else "none")
print(k.grad or "none")
for p in (x, k):
    g = p.grad
    if g is None:
        continue
    print(g)
if (found := k.grad) is not None:
    print(found)
pairs = [(p, p.grad) for p in (x, k)]
print([p for p, g in pairs if g is not None])
print([p.grad for p in (x, k) if p.grad is not None])
assert k.grad is None
print(hasattr(k, "grad"), getattr(k, "grad", None), isinstance(k.grad, wp.array))
with contextlib.suppress(AttributeError):
    print(k.grad.numpy())
try:
    print(k.grad.numpy())
except AttributeError:
    print("none")

class Descent:
    def __init__(self, params):
        self.params = params

    def step(self, grads):
        for p, g in zip(self.params, grads):
            self.one(p, g)

    def one(self, p, g):
        if g is None:
            return

descent = Descent([x, k])
descent.one(k, k.grad)
descent.one(k, g=k.grad)

def gradient_of(p):
    return p.grad

if gradient_of(k) is None:
    print("none")
print(x.grad, x[0:1].grad, loss.grad)
ints = wp.zeros(3, dtype=int)
print(ints.grad)
alone = wp.zeros(3, dtype=float)  # no launch has it
print(alone.grad)
tape.zero()
wp.optim.SGD([x], lr=0.1).step([x.grad])
"""


def gradient_findings(report: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["code"] == "G004"]


def test_each_use_of_a_gradient_that_is_none_is_told(adtool: Tool) -> None:
    text = TAPE + READS
    adtool.script(text)
    report = adtool.report("script.py")
    found = gradient_findings(report)
    wanted = [n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# wanted")]
    assert sorted(f["line"] for f in found) == wanted
    assert report["exit_code"] == 0 and {f["severity"] for f in found} == {"warning"}
    (first,) = (f for f in found if f["line"] == wanted[0])
    assert "reads `k.grad`, but `k` (made at " in first["message"]
    assert f"{SEEN} has no requires_grad" in first["message"]
    assert "(argument `k`) of kernel `scale` in launch 0 of tape 0" in first["message"]
    assert "create `k` with requires_grad=True" in first["help"]
    done = adtool("check", "--gate", "warning", "script.py")
    assert done.returncode == 1 and "warning[G004]" in done.stdout


# How programs come to the gradient by another name than that of the array.
GIVEN = {
    "a loop": ("for p in (x, k):\n    print(p.grad)\n", "p.grad", "k"),
    "a loop of pairs": ("for n, p in {'k': k}.items():\n    print(n, p.grad)\n", "p.grad", "k"),
    "a comprehension": ("print([f'{p.grad}' for p in (x, k)])\n", "p.grad", "k"),
    "a function": ("def show(p):\n    print(p.grad)\nshow(k)\n", "p.grad", "k"),
    "a function in a loop": (
        "def show(p):\n    for n in range(2):\n        print(p.grad)\nshow(k)\n", "p.grad", "k",
    ),
    "another variable": ("p = k\nprint(p.grad)\n", "p.grad", "p"),
    "an array without a name": ("for p in made:\n    print(p.grad)\n", "p.grad", "p"),
}  # fmt: skip


@pytest.mark.parametrize("way", GIVEN)
def test_an_array_is_named_as_it_was_made(adtool: Tool, way: str) -> None:
    reads, read, name = GIVEN[way]
    nameless = "made = [wp.array([2.0], dtype=float)]\nk = made[0]"
    text = TAPE.replace(f"{MADE})", nameless) if "made" in reads else TAPE
    adtool.script(text + reads)
    (found,) = gradient_findings(adtool.report("script.py"))
    assert f"the program reads `{read}`, but `{name}` (made at " in found["message"]
    assert f"create `{name}` with requires_grad=True" in found["help"]
    assert f"do not read `{read}`" in found["help"]


def test_programs_that_expect_none_are_right(adtool: Tool) -> None:
    adtool.script("", "helper.py")
    adtool.script(TAPE + RIGHT)
    report = adtool.report("script.py")
    assert report["exit_code"] == 0 and report["error"] is None and report["findings"] == []


@pytest.mark.parametrize(
    "made",
    [f"{MADE}, requires_grad=True)", f"{MADE}, requires_grad=False)",
     f"{MADE}, requires_grad=True)\nk.requires_grad = False"],
    ids=["with a gradient", "a constant", "frozen"],
)  # fmt: skip
def test_arrays_with_a_gradient_and_arrays_that_are_meant_to_have_none(
    adtool: Tool, made: str
) -> None:
    adtool.script(TAPE.replace(f"{MADE})", made) + "print(k.grad)\n")
    report = adtool.report("script.py")
    assert report["launches"] and gradient_findings(report) == []


def test_a_tape_that_never_ran_backward_wants_nothing(adtool: Tool) -> None:
    adtool.script(HEAD + "print(k.grad)\n")
    assert gradient_findings(adtool.report("script.py")) == []


def test_a_gradient_that_was_read_before_the_backward_pass(adtool: Tool) -> None:
    adtool.script(HEAD + "print(k.grad)\ntape.backward(loss)\n")
    (found,) = gradient_findings(adtool.report("script.py"))
    assert found["line"] == len(HEAD.splitlines()) + 1 and SEEN in found["message"]


def test_an_installed_package_reads_what_it_likes(adtool: Tool) -> None:
    adtool.script("def show(p):\n    print(p.grad)\n", "site-packages/shower.py")
    adtool.script(
        "import sys\nsys.path.append('site-packages')\nimport shower\n" + TAPE + "shower.show(k)\n"
    )
    assert gradient_findings(adtool.report("script.py")) == []


def test_the_fix_gives_the_array_a_gradient(adtool: Tool) -> None:
    script = adtool.script(TAPE + "print(k.grad)\n")
    done = adtool("check", "--fix", "script.py")
    assert done.returncode == 0 and f"{MADE}, requires_grad=True)" in script.read_text()
    assert gradient_findings(adtool.report("script.py")) == []


def test_a_capture_tells_it_too(adtool: Tool) -> None:
    adtool.script(TAPE + "print(k.grad)\n")
    assert adtool("capture", "script.py").returncode == 0
    (found,) = gradient_findings(adtool.report("script.adt"))
    assert found["severity"] == "warning" and "reads `k.grad`" in found["message"]


# ---- scripts that die of it

DEATHS = {
    "a method": "print(k.grad.numpy())",
    "an index": "print(k.grad[0])",
    "arithmetic": "print(0.1 * k.grad)",
    "a function": "def norm(g):\n    return g.numpy().sum()\nprint(norm(k.grad))",
    "a variable": "g = k.grad\nprint(g.numpy())",
    "another exception": (
        "try:\n    k.grad.numpy()\nexcept AttributeError as e:\n    raise RuntimeError() from e"
    ),
    "a loop": "for p in (x, k):\n    print(p.grad.numpy())",
    "a launch": "wp.launch(descend, dim=1, inputs=[k, k.grad])",
    "a tape's gradients": "print(tape.gradients[k])",
}


@pytest.mark.parametrize("way", DEATHS)
def test_a_script_that_dies_of_it_is_told_why(adtool: Tool, way: str) -> None:
    adtool.script(TAPE + DEATHS[way] + "\n")
    done = adtool("check", "script.py")
    said = " ".join(done.stderr.split())
    raised = "the engine refused" if way == "a launch" else "the script raised"
    assert done.returncode == 2 and raised in said
    cure = "has no requires_grad: create `k` with requires_grad=True"
    assert f"because `k` (made at {SEEN} {cure}" in said
    read = {"a tape's gradients": "tape.gradients[k]", "a loop": "p.grad"}.get(way, "k.grad")
    assert f"there is no gradient `{read}` at script.py:" in said
    assert ("with plain `python` first" in said) is (way == "a variable")


OTHERS = {
    "another None": "thing = None\nthing.numpy()",
    "a gradient that is there": "thing = None\nprint(x.grad.numpy(), thing.numpy())",
    "another exception": "print(k.grad)\nraise ValueError('no')",
    "a test before": "thing = None\nif k.grad is None:\n    thing.numpy()",
    "another key": "{}[k]",
    "another launch": "wp.launch(descend, dim=1, inputs=[k, None])",
}


@pytest.mark.parametrize("way", OTHERS)
def test_other_exceptions_are_not_blamed_on_it(adtool: Tool, way: str) -> None:
    adtool.script(TAPE + OTHERS[way] + "\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2 and "there is no gradient" not in " ".join(done.stderr.split())
    plain = "with plain `python` first" in " ".join(done.stderr.split())
    assert plain is (way != "another launch")
