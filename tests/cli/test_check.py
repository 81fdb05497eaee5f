"""`adtool check` on programs with real kernels: what it finds, and what it leaves alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

GOOD = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
    wp.launch(total, dim=3, inputs=[y], outputs=[loss])
"""

WRONG = """
import engine as wp

@wp.func
def cube(x: float):
    return x * x * x

@wp.func_grad(cube)
def adj_cube(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * adj_ret

@wp.kernel
def cubes(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = cube(x[i])

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
for step in range(STEPS):
    with wp.Tape():
        wp.launch(cubes, dim=3, inputs=[x], outputs=[y])
"""

ROOTS = """
import engine as wp

@wp.kernel
def roots(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.sqrt(x[i])

x = wp.array([1.0, 0.0, 4.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(roots, dim=3, inputs=[x], outputs=[y])
"""


def test_a_right_program(adtool: Any) -> None:
    adtool.script(GOOD)
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 tape, 2 launches, 2 pairs checked" in done.stdout
    assert "passed" in done.stdout
    assert not done.stderr


def test_a_right_program_as_json(adtool: Any) -> None:
    path = adtool.script(GOOD + "print('noise')\n")
    report = adtool.report("script.py")
    assert report["ok"] and report["device"] == "cpu"
    assert [x["kernel"] for x in report["launches"]] == ["square", "total"]
    first = report["launches"][0]
    assert (first["tape"], first["index"], first["dim"]) == (0, 0, [3])
    assert (first["file"], first["line"]) == (str(path), 5)
    assert (first["call_file"], first["call_line"]) == (str(path), 18)
    assert [(p["input"], p["output"], p["verdict"]) for p in first["pairs"]] == [("x", "y", "pass")]
    assert first["pairs"][0]["checked"] > 0


def test_as_a_module(adtool: Any) -> None:
    adtool.script("", "pack/__init__.py")
    adtool.script(GOOD, "pack/fit.py")
    assert adtool("check", "-m", "pack.fit").returncode == 0


def test_a_wrong_gradient(adtool: Any) -> None:
    path = adtool.script(WRONG.replace("STEPS", "1"))
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[G001]: wrong gradient of kernel `cubes` in launch 0 of tape 0" in done.stdout
    assert "  --> script.py:9:" in done.stdout
    assert "failed (1 error)" in done.stdout
    (found,) = adtool.report("script.py")["findings"]
    assert (found["code"], found["kernel"], found["file"]) == ("G001", "cubes", str(path))


CLIPPED = """
import engine as wp

@wp.func
def square(x: float):
    return x * x

@wp.func_grad(square)
def adj_square(x: float, adj_ret: float):
    wp.adjoint[x] += 2.0 * x * wp.max(adj_ret, 0.0)

@wp.kernel
def squares(x: wp.array(dtype=float), w: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = square(x[i]) * w[i]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
w = wp.array([1.0, -1.0, 0.5], dtype=float)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(squares, 3, inputs=[x, w], outputs=[y])
tape.backward(grads={y: wp.ones(3, dtype=float)})
"""


def test_a_gradient_that_is_not_linear_in_its_cotangent(adtool: Any) -> None:
    """A finding; what `jvp` warns of is not said of the forward mode that checks use."""
    adtool.script(CLIPPED)
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[G001]: wrong gradient of kernel `squares`" in done.stdout
    assert "forward mode takes" not in done.stdout + done.stderr


def test_the_same_mistake_is_one_finding(adtool: Any) -> None:
    adtool.script(WRONG.replace("STEPS", "30"))
    report = adtool.report("script.py")
    (found,) = report["findings"]
    assert (found["count"], found["tape"], report["tapes"]) == (30, 0, 30)
    done = adtool("check", "script.py")
    assert len(done.stdout.splitlines()) < 40


def test_a_gradient_that_is_not_finite(adtool: Any) -> None:
    adtool.script(ROOTS)
    done = adtool("check", "script.py")
    assert done.returncode == 1, done.stdout + done.stderr
    (found,) = adtool.report("script.py")["findings"]
    assert (found["code"], found["launch"]) == ("G002", 0)
    assert "`x[1]`" in found["message"]
    assert found["line"] == 7


@pytest.mark.parametrize("add", ["wp.atomic_add(loss, 0, y[wp.tid()])", "loss[0] += y[wp.tid()]"])
def test_a_forgotten_requires_grad_beside_a_sum(adtool: Any, add: str) -> None:
    """The loss is an input, too: what is added to has a value before."""
    good = GOOD.replace("wp.atomic_add(loss, 0, y[wp.tid()])", add)
    lone = good.replace(", requires_grad=True", "").split("tape = ")[0]
    adtool.script(
        f"{lone}loss.requires_grad = True\n"
        "with wp.Tape() as tape:\n    wp.launch(total, dim=3, inputs=[x], outputs=[loss])\n"
        "tape.backward(loss)\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "nothing was checked" in done.stderr and "requires_grad=True" in done.stderr
    assert "end to end: skipped" in done.stdout and "pass" not in done.stdout
    # Beside a tape that was checked, it is no part of what passed.
    adtool.script(
        f"{good}w = wp.ones(3, dtype=float)\n"
        "with wp.Tape() as other:\n    wp.launch(total, dim=3, inputs=[w], outputs=[loss])\n"
        "other.backward(loss)\n"
    )
    report = adtool.report("script.py")
    assert [e["verdict"] for e in report["end_to_end"]] == ["pass", "skipped"]
    assert [(f["code"], f["tape"]) for f in report["findings"]] == [("G012", 1)]


def test_a_forgotten_requires_grad(adtool: Any) -> None:
    adtool.script(GOOD.replace(", requires_grad=True", ""))
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "nothing was checked" in done.stderr
    assert "requires_grad=True" in done.stderr
    assert "note[G012]" in done.stdout


def test_a_forgotten_requires_grad_of_the_parameter_alone(adtool: Any) -> None:
    """Some launches have gradients, and are right; what the program wants has none."""
    parameter = "x = wp.array([1.0, 2.0, 3.0], dtype=float"
    adtool.script(GOOD.replace(f"{parameter}, requires_grad=True", parameter))
    report = adtool.report("script.py")
    assert [e["verdict"] for e in report["end_to_end"]] == ["skipped"]
    (found,) = (f for f in report["findings"] if f["severity"] == "warning")
    assert found["code"] == "G012" and "the tape as a whole was not checked" in found["message"]
    assert "requires_grad=True" in found["help"]


def test_kernels_are_chosen_by_pattern(adtool: Any) -> None:
    adtool.script(GOOD)
    assert [x["kernel"] for x in adtool.report("--kernel", "tot*", "script.py")["launches"]] == [
        "total"
    ]
    report = adtool.report("--skip-kernel", "tot*", "script.py")
    assert report["ok"]
    # The whole was left out with it, and that is a warning.
    assert [(f["code"], f["severity"]) for f in report["findings"]] == [("G012", "warning")]
    assert "--skip-kernel" in report["findings"][0]["message"]
    assert [x["kernel"] for x in report["launches"]] == ["square"]
    report = adtool.report("--kernel", "nothing*", "script.py")
    assert report["exit_code"] == 2
    assert "square" in report["error"]["help"]


def test_a_recorded_function_is_said(adtool: Any) -> None:
    adtool.script(GOOD + "tape.record_func(backward=lambda: None, arrays=[x, y])\n")
    report = adtool.report("script.py")
    assert report["exit_code"] == 0
    whole, note = report["findings"]
    assert [(f["code"], f["severity"]) for f in (whole, note)] == [
        ("G012", "warning"), ("G012", "note"),
    ]  # fmt: skip
    assert "the tape as a whole was not checked" in whole["message"]
    # Third of the records, and no launch.
    assert "in record 2 of tape 0" in note["message"]
    assert note["launch"] == -1
    assert adtool.report("--gate", "note", "script.py")["exit_code"] == 1


def test_the_script_may_use_its_tape(adtool: Any) -> None:
    adtool.script(
        GOOD
        + "tape.backward(loss=loss)\nprint(x.grad.numpy().tolist())\ntape.zero()\ntape.reset()\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("[2.0, 4.0, 6.0]\n")
    assert "2 pairs checked" in done.stdout


@pytest.mark.parametrize("end", ["sys.exit(0)", "sys.exit()", "os.chdir('/'); sys.stdout.close()"])
def test_other_normal_ends(adtool: Any, end: str) -> None:
    adtool.script(GOOD + f"import os, sys\n{end}\n")
    report = adtool.report("script.py")
    assert report["ok"]


def test_what_goes_with_the_process_says_nothing(adtool: Any) -> None:
    """Memory that launches saved in, and a sequence has still, as the interpreter ends."""
    adtool.script(
        GOOD
        + "import sys\nwith wp.ScopedCapture() as c:\n    again = wp.Tape()\n    with again:\n"
        + "        wp.launch(square, dim=3, inputs=[x], outputs=[y])\n"
        + "        wp.launch(square, dim=3, inputs=[y], outputs=[y])\n"
        + "    again.backward(grads={y: wp.ones_like(y)})\n"
        + "for k in range(600):\n    wp.capture_launch(c.graph)\nsys.exit(1)\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "sys.exit(1)" in done.stderr
    assert "Exception ignored" not in done.stderr and "Traceback" not in done.stderr


def test_settings_of_the_script_do_not_reach_the_checks(adtool: Any) -> None:
    adtool.script(
        "import numpy, warnings\nnumpy.seterr(all='raise')\nwarnings.simplefilter('error')\n"
        + ROOTS
    )
    assert adtool("check", "script.py").returncode == 1


def test_launches_of_a_fork_are_not_ours(adtool: Any) -> None:
    adtool.script(
        GOOD
        + "import os\npid = os.fork()\nif not pid:\n"
        + "    with wp.Tape():\n        wp.launch(square, dim=3, inputs=[x], outputs=[y])\n"
        + "else:\n    assert os.waitpid(pid, 0)[1] == 0\n"
    )
    assert len(adtool.report("script.py")["launches"]) == 2


def test_a_kernel_that_the_language_refuses(adtool: Any) -> None:
    adtool.script(
        "import engine as wp\n\n@wp.kernel\ndef bad(x: wp.array(dtype=float)):\n"
        "    y = [i for i in range(3)]\n    import os\n\n"
        "wp.launch(bad, dim=1, inputs=[wp.zeros(1, dtype=float)])\n"
    )
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "error[E1" in done.stderr
    assert "script.py:5:" in done.stderr and "script.py:6:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_crash_names_kernel_launch_and_call(adtool: Any) -> None:
    adtool.script(
        GOOD
        + "@wp.kernel\ndef far(x: wp.array(dtype=float)):\n    x[wp.tid() + 2000000000] = 1.0\n\n"
        + "wp.launch(far, dim=1, inputs=[x])\n"
    )
    done = adtool("check", "--no-bounds", "script.py")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "killed by SIG" in done.stderr
    assert "launch was number 2, kernel `far`" in done.stderr
    assert "script.py:24)" in done.stderr


def test_the_limit_names_the_launch(adtool: Any) -> None:
    adtool.script(GOOD + adtool.without_waiting() + "while True:\n    pass\n")
    done = adtool("check", "--timeout", "600", "script.py")
    assert done.returncode == 2
    assert "launch was number 1, kernel `total`" in done.stderr


MANY = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def triple(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 3.0

n = 100000
tape = wp.Tape()
for step in range(8):
    x = wp.full(n, 1.0 + step, requires_grad=True)
    y, z = (wp.zeros(n, dtype=float, requires_grad=True) for _ in range(2))
    with tape:
        wp.launch(square, dim=n, inputs=[x], outputs=[y])
        wp.launch(triple, dim=n, inputs=[y], outputs=[z])
    tape.backward(grads={z: wp.ones(n, dtype=float)})
    tape.reset()
    del x, y, z
"""


def test_memory_is_bounded_and_what_is_left_out_is_said(adtool: Any) -> None:
    adtool.script(MANY)
    # 3 MB: seven of the 16 arrays of 400 kB that the launches read.
    report = adtool.report("--memory", "0.0028", "script.py")
    assert report["exit_code"] == 0
    checked = [bool(x["pairs"]) for x in report["launches"]]
    assert checked == [True] * 7 + [False] * 9
    unchecked = [f for f in report["findings"] if f["code"] == "G012"]
    assert any(f["severity"] == "warning" and "as a whole" in f["message"] for f in unchecked)
    found = [f for f in unchecked if f["severity"] == "note"]
    assert sum(f["count"] for f in found) == 9
    assert "would exceed 2.9 MiB" in found[0]["message"]
    assert "--memory GIB" in found[0]["help"]


def test_kernels_that_are_left_out_take_no_memory(adtool: Any) -> None:
    adtool.script(MANY)
    report = adtool.report("--memory", "0.0031", "--kernel", "triple", "script.py")
    assert [bool(x["pairs"]) for x in report["launches"]] == [True] * 8


def test_no_memory_for_anything(adtool: Any) -> None:
    adtool.script(GOOD)
    done = adtool("check", "--memory", "0", "script.py")
    assert done.returncode == 2
    assert "at launch time are lost: copies of arrays that launches read" in done.stderr
    assert "help: raise the limit with --memory GIB" in done.stderr


def test_the_tapes_of_the_scripts_own_capture(adtool: Any) -> None:
    adtool.script(
        GOOD.replace("tape = wp.Tape()", "").replace(
            "with tape:", "with wp.capturing() as own, wp.Tape() as tape:"
        )
        + "assert len(own.tapes) == 1\n"
    )
    report = adtool.report("script.py")
    assert [x["kernel"] for x in report["launches"]] == ["square", "total"]


def test_verbose_and_tolerances(adtool: Any) -> None:
    adtool.script(WRONG.replace("STEPS", "30"))
    done = adtool("check", "--verbose", "--max-inputs", "1", "--max-outputs", "2", "script.py")
    assert done.returncode == 1
    assert sum(" cubes " in line for line in done.stdout.splitlines()) >= 30
    assert adtool("check", "--atol", "100", "--eps", "0.01", "script.py").returncode == 0


def test_a_variable_without_a_value(adtool: Any) -> None:
    adtool.script(
        """
import engine as wp

@wp.kernel
def half(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:
        s = 0.5 * x[i]
    y[i] = s * s

for values in ([1.0, 2.0], [1.0, -2.0]):
    x = wp.array(values, dtype=float, requires_grad=True)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(half, 2, [x, y])
    tape.backward(grads={y: wp.ones(2, dtype=float)})
"""
    )
    done = adtool("check", "--format", "json", "script.py")
    (found,) = json.loads(done.stdout)["findings"]
    assert (found["code"], found["tape"], found["line"]) == ("G014", 1, 9)
    assert done.returncode == 0 and "Assign it on every path" in done.stderr
    assert adtool("check", "--gate", "warning", "script.py").returncode == 1


def test_a_graph_that_a_tape_does_not_record(adtool: Any) -> None:
    head, block = GOOD.split("tape = wp.Tape()\n")
    captured = block.replace("with tape:", "with wp.ScopedCapture() as captured:")
    run = "with wp.Tape() as tape:\n    wp.capture_launch(captured.graph)\n"
    adtool.script(f"{head}{captured}{run}tape.backward(loss)\n")
    done = adtool("check", "--format", "json", "script.py")
    report = json.loads(done.stdout)
    (found,) = report["findings"]
    assert (done.returncode, found["code"], report["error"]) == (1, "G004", None)
    assert "through kernel `square`, which a captured graph runs here" in found["message"]
    assert found["line"] == len(head.splitlines()) + 5


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_a_gradient_that_is_zero_is_off_by_all_of_the_derivative(adtool, seed: int) -> None:
    """Where nothing else contributes to it: the start value of a sum would."""
    text = WRONG.replace("2.0 * x * adj_ret", "0.0").replace("STEPS", "1")
    adtool.script(text)
    report = json.loads(
        adtool("check", "--seed", str(seed), "--format", "json", "script.py").stdout
    )
    (whole,) = report["end_to_end"]
    assert (whole["verdict"], whole["rel_error"]) == ("fail", 1.0)
