"""The code of a kernel at each stage, and the Python lines that it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine as wp
from engine.diagnostics import LaunchError
from engine.runtime.stages import StageLine


@wp.func
def twice(a: float):
    return a + a  # the function


@wp.kernel
def running(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    if x[i] > 0.0:  # the branch
        y[i] = y[i] * twice(x[i])  # the update


@wp.kernel(enable_backward=False)
def plain(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def generic(x: wp.array(dtype=wp.Float)):
    x[wp.tid()] = x[wp.tid()]


def record(x_grad: bool) -> Any:
    x = wp.ones(2, dtype=float, requires_grad=x_grad)
    y = wp.zeros(2, dtype=float, requires_grad=True)
    with wp.capturing() as capture, wp.Tape():
        wp.launch(running, 2, [x], [y])
    return capture.tapes[0].records[0]


def at(lines: tuple[StageLine, ...], words: str) -> list[str]:
    """The code that comes from the Python line with some words."""
    found = [x for x in lines if words in x.source]
    source = Path(__file__).read_text().splitlines()
    assert all(x.file == __file__ and words in source[(x.line or 0) - 1] for x in found)
    return [x.text for x in found]


def test_the_typed_kernel_and_its_functions() -> None:
    found = wp.kernel_stage(running, "ir")
    assert (found.kernel, found.file, found.gradients) == ("running", __file__, ())
    assert any("if " in t for t in at(found.lines, "# the branch"))
    assert any(t.strip().startswith("store %y[") for t in at(found.lines, "# the update"))
    assert any("add(%a, %a)" in t for t in at(found.lines, "# the function"))


def test_the_adjoint_of_a_launch_is_for_its_gradients() -> None:
    assert wp.kernel_stage(record(False), "adjoint").gradients == ("y",)
    found = wp.kernel_stage(record(True), "adjoint")
    assert found.gradients == ("x", "y")
    assert any("atomic_add %adj_x[" in x.text for x in found.lines)


def test_forward_mode() -> None:
    found = wp.kernel_stage(record(True), "tangent")
    assert any("store %tan_y[" in t for t in at(found.lines, "# the update"))


def test_the_text_that_is_compiled() -> None:
    found = wp.kernel_stage(record(True), "cpp")
    text = "\n".join(x.text for x in found.lines)
    # The launch overwrites what its adjoint needs: it is the form that saves it.
    assert "ENG_EXPORT void running_recorded(" in text
    assert (
        "ENG_EXPORT void running_adjoint(" in text
        and "#line" not in text
        and found.language == "c++"
    )
    assert any("if (" in t for t in at(found.lines, "# the branch"))
    entry = next(x for x in found.lines if x.text.startswith("ENG_EXPORT"))
    assert (entry.file, entry.line, entry.source) == (None, None, "")


def test_the_syntax_tree() -> None:
    found = wp.kernel_stage(running, "ast")
    assert found.lines[0].text == "FunctionDef"
    assert at(found.lines, "# the branch")[0].strip() == "If"
    assert at(found.lines, "# the update")[0].strip() == "Assign"


def test_a_kernel_without_a_backward_pass() -> None:
    found = wp.kernel_stage(plain, "cpp")
    assert found.gradients == () and not any("adjoint" in x.text for x in found.lines)


def test_what_has_no_stage() -> None:
    with pytest.raises(LaunchError, match="E405"):
        wp.kernel_stage(running, "llvm")  # type: ignore[arg-type]
    with pytest.raises(wp.EngineError):
        wp.kernel_stage(generic, "ir")
    instance = generic.add_overload([wp.array(dtype=wp.float64)])
    assert "float64" in wp.kernel_stage(instance, "ir").lines[0].text
