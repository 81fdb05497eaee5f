"""The fixture `gradcheck` and the marker `adtool`."""

from __future__ import annotations

import pytest

from tests.plugin.project import Project

TESTS = """
import pytest
import engine as wp
from kernels import arrays, launch, outside, right, total_of_constants, wrong

def call():
    x, y = arrays()
    return {"dim": 3, "inputs": [x], "outputs": [y]}

def through(kernel):
    def function(x):
        y = wp.zeros(3, dtype=float, requires_grad=True)
        wp.launch(kernel, dim=3, inputs=[x], outputs=[y])
        return y
    return function

def cut(x):
    y = wp.zeros(3, dtype=float, requires_grad=True)
    x = wp.array(x.numpy(), dtype=float, requires_grad=True)
    wp.launch(right, dim=3, inputs=[x], outputs=[y])
    return y

def test_kernel(gradcheck):
    given = call()
    report = gradcheck(right, **given, rtol=1e-3, order=2)
    assert report.ok and report.decided and report.launches[0].kernel == "right"
    assert given["outputs"][0].numpy().tolist() == [0.0, 0.0, 0.0]

def test_wrong_kernel(gradcheck):
    gradcheck(wrong, **call())

def test_kernel_outside(gradcheck):
    gradcheck(outside, **call())

def test_function(gradcheck):
    assert gradcheck(through(right), inputs=call()["inputs"]).decided

def test_wrong_function(gradcheck):
    gradcheck(through(wrong), inputs=call()["inputs"])

def test_cut_function(gradcheck):
    gradcheck(cut, inputs=call()["inputs"])

def test_tape(gradcheck):
    tape = launch(right)
    assert gradcheck(tape).end_to_end[0].verdict == "pass"
    with tape:
        wp.launch(right, **call())
    assert len(gradcheck(tape, order=2).launches) == 2
    assert len(gradcheck(tape, end_to_end=False).end_to_end) <= 1

def test_wrong_tape(gradcheck):
    gradcheck(launch(wrong))

def test_tape_of_a_fixture(made_before, gradcheck):
    with pytest.raises(AssertionError, match="wrong gradient"):
        gradcheck(made_before)

@pytest.fixture(scope="module")
def made_before():
    return launch(wrong)

def test_options(gradcheck):
    assert gradcheck(wrong, **call(), ignore=["G001"]).findings[0].suppressed
    assert gradcheck(launch(wrong), ignore="wrong-gradient").ok
    assert gradcheck(wrong, **call(), select="G002").ok
    both = launch(right, launch(wrong))
    assert gradcheck(both, skip_kernels="wr*").ok
    with pytest.raises(AssertionError, match="G012"):
        gradcheck(both, skip_kernels="wr*", gate="note")

REFUSED = [
    ({"rtoll": 1.0}, "did you mean `rtol` or `atol`?"),
    ({"rtol": "x"}, "rtol is a number, 0 or more, not 'x'"),
    ({"eps": 0}, "eps is a number above 0"),
    ({"order": 3}, "order is 1 or 2"),
    ({"gate": "fatal"}, "gate is one of error, warning, note"),
    ({"ignore": "G99"}, "unknown code 'G99'"),
    ({"kernels": "a"}, "kernels works only with tapes"),
]

@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_refused(gradcheck, options, words):
    with pytest.raises(TypeError) as refused:
        gradcheck(right, **call(), **options)
    assert words in str(refused.value)

def test_refused_arguments(gradcheck):
    for what, given in [(launch(right), {"dim": 3}), (3, {}), (through(right), {"order": 2})]:
        with pytest.raises(TypeError, match="gradcheck: "):
            gradcheck(what, **given)
    with pytest.raises(wp.LaunchError) as refused:
        gradcheck(right, dim=3, inputs=[3])
    assert refused.value.diagnostics[0].span.file == __file__

def test_nothing(gradcheck):
    for what, given in [
        (wp.Tape(), {}),
        (launch(right, gradient=False), {}),
        (total_of_constants(), {}),
        (right, {"dim": 3, "inputs": [wp.zeros(3)], "outputs": [wp.zeros(3)]}),
        (launch(right), {"kernels": ["other"]}),
    ]:
        with pytest.raises(AssertionError) as failed:
            gradcheck(what, **given)
        said = str(failed.value)
        assert "nothing was checked" in said or "could not be checked" in said
    assert "help: " in said

@pytest.mark.adtool
def test_marked(): launch(right)

@pytest.mark.adtool(rtol=1e-2, kernels=["right"])
def test_marked_options(): launch(right, launch(wrong))

@pytest.mark.adtool
def test_marked_constants(): total_of_constants()

@pytest.mark.adtool
def test_marked_wrong(): launch(wrong)

@pytest.mark.adtool
def test_marked_beside_a_check_that_fails(gradcheck):
    with pytest.raises(AssertionError, match="G008"):
        gradcheck(outside, **call())
    launch(right)

@pytest.mark.adtool
def test_marked_nothing(): pass

@pytest.mark.adtool(ignore="G001")
class TestMarked:
    def test_of_class(self): launch(wrong)
    @pytest.mark.adtool(enabled=False)
    def test_off(self): pass

def test_not_marked(): launch(wrong)
"""

FAILED = {
    "test_wrong_kernel", "test_kernel_outside", "test_wrong_function", "test_cut_function",
    "test_wrong_tape", "test_marked_constants", "test_marked_wrong", "test_marked_nothing",
}  # fmt: skip


def test_fixture_and_marker(project: Project) -> None:
    project.write("test_all.py", TESTS)
    done = project()
    failed = {t for t, k in done.kinds().items() if k != ["passed"]}
    assert failed == FAILED, done.out
    assert len(done.outcomes) == 28
    for test in ("test_wrong_kernel", "test_wrong_tape"):
        said = done.text(test)
        assert "error[G001]: wrong gradient of kernel `wrong` in launch 0 of tape 0" in said
        assert "`adj_cube` is not the derivative of `cube`" in said
        # Of the tool's own lines none is shown.
        assert "gradcheck.py" not in said
        assert "raise AssertionError" not in said
    # A function's gradient is wrong for that of a kernel: said once, there.
    assert "kernel `wrong`" in done.text("test_wrong_function")
    assert "function `function`" not in done.text("test_wrong_function")
    assert "wrong gradient of function `cut`: `d " in done.text("test_cut_function")
    assert "--> test_all.py:17:1" in done.text("test_cut_function")
    assert "G008" in done.text("test_kernel_outside")
    assert "the test recorded no tape" in done.text("test_marked_nothing")
    assert done.section[0].startswith("7 tests, 6 tapes, 6 launches, 5 pairs checked: 3 tests")


def test_a_marked_test_of_a_framework_alone(project: Project) -> None:
    """It has no gradient that adtool checks, and is not asked for a tape of the engine."""
    pytest.importorskip("torch", reason="torch is not installed")
    project.write(
        "test_plain.py",
        """
import pytest
import torch

@pytest.mark.adtool
def test_plain():
    x = torch.ones(3, requires_grad=True)
    (x * x).sum().backward()
""",
    )
    done = project()
    assert done.kinds()["test_plain"] != ["passed"]
    said = done.text("test_plain")
    assert "the test calls no handwritten gradient" in said and "Tape" not in said


def test_a_marked_test_whose_function_needs_no_gradient(project: Project) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    project.write(
        "test_idle.py",
        """
import pytest
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2.0 * x

    @staticmethod
    def backward(ctx, grad):
        return 2.0 * grad

@pytest.mark.adtool
@pytest.mark.parametrize("needed", [False, True])
def test_double(needed):
    Double.apply(torch.ones(3, requires_grad=needed))
""",
    )
    done = project()
    assert done.kinds()["test_double[True]"] == ["passed"]
    assert done.kinds()["test_double[False]"] != ["passed"]
    said = done.text("test_double[False]")
    assert "`Double` was called at test_idle.py:17, but no argument requires a gradient" in said


def test_markers_that_are_wrong_stop_at_collection(project: Project) -> None:
    head = "import pytest\nfrom kernels import launch, right\n"
    for name, marker, words in [
        ("unknown", "gaet='note'", "did you mean `gate`?"),
        ("value", "rtol='much'", "rtol is a number"),
        ("code", "expect=['G77']", "unknown code 'G77'"),
        ("switch", "enabled='no'", "enabled is True or False, not 'no'"),
        ("words", "'G001'", "takes keywords, not 'G001'"),
    ]:
        text = f"{head}@pytest.mark.adtool({marker})\ndef test_{name}(): launch(right)\n"
        project.write(f"test_{name}.py", text)
        project.write(f"test_{name}.words", words)
    done = project()
    assert done.code == 2
    for path in project.folder.glob("*.words"):
        said = done.text(path.stem)
        assert path.read_text() in said
        assert f"{path.stem}: " in said
        assert "Traceback" not in said
