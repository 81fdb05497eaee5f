"""`pytest --adtool`: every tape of every test is checked."""

from __future__ import annotations

import pytest

from tests.plugin.project import Project

TESTS = """
import unittest
import pytest
import engine as wp
from kernels import arrays, kinked, launch, outside, right, wrong

LATE = wp.Tape()

def test_right(): launch(right)
def test_wrong(): launch(wrong)
def test_without_a_tape(): pass
def test_empty_tape(): wp.Tape()
def test_without_a_gradient(): launch(right, gradient=False)
def test_outside(): launch(outside)
def test_two_tapes(): launch(right), launch(wrong)
def test_entered_again(): launch(wrong, LATE)

def test_fails_by_itself():
    launch(wrong)
    assert 1 == 2

@pytest.mark.xfail(strict=True)
def test_xfail(): launch(wrong)

def test_skips_itself():
    launch(wrong)
    pytest.skip("own reason")

@pytest.mark.parametrize("kernel", [right, wrong], ids=["right", "wrong"])
def test_parametrised(kernel): launch(kernel)

@pytest.mark.adtool(enabled=False)
def test_left_out(): launch(wrong)

@pytest.mark.adtool(expect="G001")
def test_expected(): launch(wrong)

@pytest.mark.adtool(expect=["G001", "G005"])
def test_one_of_two_expected(): launch(wrong)

@pytest.mark.adtool(gate="note")
def test_gate_of_its_own(): launch(kinked)

def test_below_the_gate(): launch(kinked)

def test_monkeypatch(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("builtins.open", None)
    monkeypatch.chdir(tmp_path)
    launch(wrong)
    print("own words")
    assert capsys.readouterr().out == "own words\\n"

def test_replaces_what_checks_need(monkeypatch):
    launch(right)
    monkeypatch.setattr("engine.autograd.tape.check.check_launch", None)

def test_own_capture():
    with wp.capturing() as capture:
        launch(wrong)
    assert len(capture.tapes) == 1

class TestUnit(unittest.TestCase):
    def test_unit_wrong(self): launch(wrong)
    def test_unit_fails(self):
        launch(wrong)
        self.fail("own failure")
    @unittest.expectedFailure
    def test_unit_expected(self): self.fail("as expected")

@pytest.fixture(scope="module")
def shared():
    yield launch(wrong)
    launch(wrong)

def test_shared_a(shared): pass
def test_shared_b(shared): pass
"""

FAILED = {
    "test_wrong", "test_outside", "test_two_tapes", "test_entered_again", "test_fails_by_itself",
    "test_parametrised[wrong]", "test_one_of_two_expected", "test_gate_of_its_own",
    "test_monkeypatch", "test_replaces_what_checks_need", "test_own_capture",
    "test_unit_wrong", "test_unit_fails",
}  # fmt: skip
SKIPPED = {"test_xfail", "test_skips_itself", "test_unit_expected"}


@pytest.mark.parametrize("workers", [0, 2], ids=["alone", "two workers, other order"])
def test_findings_fail_the_tests_that_made_the_tapes(project: Project, workers: int) -> None:
    """However tests are ordered, each is looked at as closely."""
    project.write("test_all.py", TESTS)
    project.write("test_other.py", "from kernels import launch, right\ndef test(): launch(right)\n")
    more, first, last = [], "test_shared_a", "test_shared_b"
    if workers:
        more, first, last = ["-n", str(workers), "--dist", "loadfile"], last, "test_right"
        project.write(
            "conftest.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n"
        )
    done = project("--adtool", *more)
    kinds = done.kinds()
    assert done.code == 1, done.out + done.err
    # What a fixture records is checked with the first test that uses it, and what its teardown
    # does with the test after which it comes.
    assert {t for t, k in kinds.items() if "failure" in k} == {*FAILED, first}
    assert {t for t, k in kinds.items() if "error" in k} == {last}
    assert {t for t, k in kinds.items() if "skipped" in k} == SKIPPED
    wrong = done.text("test_wrong")
    assert wrong.startswith("Failed: adtool: G001 wrong-gradient in kernel wrong")
    assert "error[G001]: wrong gradient of kernel `wrong`" in wrong
    assert "--> kernels.py:9:1" in wrong
    assert "`adj_cube` is not the derivative of `cube`" in wrong
    assert "\x1b" not in wrong
    assert "site-packages" not in wrong
    assert "G008" in done.text("test_outside")
    assert "2 tapes, 2 launches, 2 pairs checked" in done.text("test_two_tapes")
    assert "adtool: the check failed: TypeError" in done.text("test_replaces_what_checks_need")
    assert "enabled=False" in done.text("test_replaces_what_checks_need")
    assert "assert 1 == 2" in done.text("test_fails_by_itself")
    assert "adtool" not in done.text("test_fails_by_itself")
    assert "own failure" in done.text("test_unit_fails")
    assert "adtool" not in done.text("test_unit_fails")
    assert "G005 was expected but not found" in done.text("test_one_of_two_expected")
    assert "own reason" in done.text("test_skips_itself")
    head, *rest = done.section
    # A test with the fixture's teardown is one more, unless it has a tape of its own.
    tests = 18 if workers else 19
    assert head.startswith(f"{tests} tests, 20 tapes, 20 launches, 19 pairs checked: 13 "), head
    assert head.endswith("(11 errors, 3 notes, 2 expected)"), head
    assert sum(line.startswith("error[G001]") for line in rest) == 10
    assert [x for x in rest if x.startswith("not checked: ")] == [
        "not checked: test_all.py::test_without_a_gradient: nothing was checked: the launch has no "
        "floating-point input array with requires_grad=True (1 launch)"
    ]


def test_without_the_option_nothing_is_checked_or_loaded(project: Project) -> None:
    project.write("test_a.py", "from kernels import launch, wrong\ndef test(): launch(wrong)\n")
    project.write(
        "test_b.py",
        "import sys\n"
        "def test():\n"
        "    assert 'adtool.pytest_plugin' in sys.modules\n"
        "    heavy = {'engine', 'numpy', 'rich', 'typer', 'adtool.testing', 'adtool.report'}\n"
        "    assert not heavy & set(sys.modules)\n",
    )
    alone = project("test_b.py")
    assert alone.code == 0, alone.out
    done = project("test_a.py")
    assert done.code == 0, done.out
    assert done.section == []


def test_nothing_checked_is_said(project: Project) -> None:
    project.write("test_a.py", "def test(): pass\n")
    project.write(
        "test_b.py",
        "from kernels import launch, right\ndef test(): launch(right, gradient=False)\n",
    )
    done = project("--adtool", "test_a.py")
    assert done.code == 0
    assert done.section == [
        "warning: nothing was checked: no finished test recorded a tape with launches"
    ]
    done = project("--adtool", "test_b.py")
    assert done.code == 0
    assert done.section[-1] == "warning: nothing was checked"
    assert "requires_grad=True" in done.section[1]


def test_tapes_of_imports_are_told(project: Project) -> None:
    test = "from kernels import launch, right, wrong\nTAPE = launch(wrong)\ndef test_uses(): pass\n"
    project.write("test_a.py", test)
    project.write("test_b.py", "from kernels import launch, right\ndef test(): launch(right)\n")
    done = project("--adtool", "-n", "2")
    assert done.code == 0, done.out
    assert done.section == [
        "1 test, 1 tape, 1 launch, 1 pair checked: passed",
        "not checked: test_a.py: 1 tape recorded at import; record them in a test or a fixture",
    ]


def test_settings_by_path(project: Project) -> None:
    use = "from kernels import kinked, launch, wrong\ndef test_wrong(): launch(wrong)\n"
    fixture = "def test_fixture(gradcheck): gradcheck(launch(wrong))\n"
    for name in ("old/test_a.py", "test_b.py", "strict/test_c.py"):
        project.write(name, use + fixture + "def test_kink(): launch(kinked)\n")
    project.write(
        "pyproject.toml",
        '[[tool.adtool.overrides]]\npaths = ["old/**"]\nignore = ["G001", "G010"]\n'
        '[[tool.adtool.overrides]]\npaths = ["strict/**"]\ngate = "note"\n',
    )

    def failed(*args: str) -> set[str]:
        outcomes = project("--adtool", "--import-mode=importlib", *args).kinds()
        return {test for test, kinds in outcomes.items() if "passed" not in kinds}

    both = {"test_wrong", "test_fixture"}
    assert failed("old") == set()
    assert failed("test_b.py") == both
    assert failed("strict") == {*both, "test_kink"}
    assert failed("strict", "--adtool-gate", "error") == both  # before all settings
    project.write("pyproject.toml", '[[tool.adtool.overrides]]\npaths = ["no"]\ngate = "high"\n')
    assert "high" in project("--adtool", "old").err


def test_gate_and_settings(project: Project) -> None:
    project.write(
        "test_a.py", "import engine as wp\nfrom kernels import kinked, launch, wrong\n"
        "def test_kink(): launch(kinked)\ndef test_wrong(): launch(wrong)\n"
        "@wp.kernel\n"
        "def plain(x: wp.array(dtype=float), y: wp.array(dtype=float)):\n"
        "    y[wp.tid()] = x[wp.tid()]  # adtool: ignore[G005]\n"
        "def test_comment(): launch(plain)\n",  # of use to another test, perhaps: no note
    )  # fmt: skip
    project.write("pyproject.toml", '[tool.adtool]\nignore = ["G001"]\ngate = "warning"\n')
    done = project("--adtool")
    assert done.kinds() == {
        "test_kink": ["passed"],
        "test_wrong": ["passed"],
        "test_comment": ["passed"],
    }, done.out
    assert "1 suppressed" in done.section[0]
    done = project("--adtool", "--adtool-gate", "note")
    assert done.kinds() == {
        "test_kink": ["failure"],
        "test_wrong": ["passed"],
        "test_comment": ["passed"],
    }, done.out
    project.write("pyproject.toml", '[tool.adtool]\nignor = ["G001"]\n')
    done = project("--adtool")
    assert done.code == 4
    assert "did you mean ignore?" in done.err
    assert "Traceback" not in done.err


def test_the_plugin_can_be_left_out(project: Project) -> None:
    project.write("test_a.py", "from kernels import launch, wrong\ndef test(): launch(wrong)\n")
    done = project("-p", "no:adtool", plugin=False)
    assert done.code == 0, done.out
    assert (
        "unrecognized arguments: --adtool"
        in project("-p", "no:adtool", "--adtool", plugin=False).err
    )


def test_tapes_of_earlier_tests_are_let_go(project: Project) -> None:
    project.write(
        "test_a.py",
        "import gc\nimport engine as wp\nfrom kernels import launch, right\n"
        "def test_a(): launch(right)\n"
        "def test_b():\n"
        "    gc.collect()\n"
        "    kept = [o for o in gc.get_objects() if isinstance(o, wp.CapturedTape)]\n"
        "    assert kept == []\n",
    )
    done = project("--adtool")
    assert done.kinds() == {"test_a": ["passed"], "test_b": ["passed"]}, done.out


def test_a_script_that_runs_pytest_can_be_checked(project: Project) -> None:
    """Captures in captures: `adtool check` around `pytest --adtool`."""
    project.write("test_a.py", "from kernels import launch, right\ndef test(): launch(right)\n")
    project.write(
        "run.py",
        "import sys\nimport pytest\nfrom tests.plugin.project import PLUGIN\n"
        "sys.exit(pytest.main(['-q', '-W', 'error', *PLUGIN, '--adtool', 'test_a.py']))\n",
    )
    done = project.run("adtool", "check", "run.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 test, 1 tape, 1 launch, 1 pair checked: passed" in done.stdout
    assert "1 tape, 1 launch, 1 pair checked in" in done.stdout
