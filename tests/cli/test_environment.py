"""Faults of the system are told as such: closed or full streams, no temporary folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adtool import endings, status

GOOD = """
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
print("from the script")
"""

needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")


def shell(adtool: Any, redirection: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool by a shell that redirects its streams."""
    command = ["sh", "-c", f'"$@" {redirection}', "sh", *adtool.command, *args]
    return subprocess.run(
        command, cwd=adtool.folder, env=adtool.env, capture_output=True, text=True, timeout=300
    )


# Runs the tool as if packages were not installed: the first argument names them.
_WITHOUT = """
import sys
gone = sys.argv.pop(1).split(",")

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in gone:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Finder)
sys.path[0] = {!r}
from adtool.__main__ import main; main()
"""


def without(adtool: Any, *args: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool without packages, which the first argument names."""
    command = [sys.executable, "-c", _WITHOUT.format(adtool.root), *args]
    return subprocess.run(
        command, cwd=adtool.folder, env=adtool.env, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    ("gone", "args"),
    [("typer", ["doctor"]), ("typer", ["check", "script.py"]), ("typer", []),
     ("numpy", ["check", "script.py"]), ("numpy", ["--no-color", "graph", "script.py"]),
     ("rich", ["doctor"])],
)  # fmt: skip
def test_a_base_dependency_that_is_missing(gone: str, args: list[str], adtool: Any) -> None:
    adtool.script(GOOD)
    done = without(adtool, gone, *args)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert f"adtool needs the package {gone}, which is not installed" in done.stderr
    assert f"pip install {gone}" in done.stderr and "bug" not in done.stderr


def test_a_base_dependency_that_is_missing_as_json(adtool: Any) -> None:
    done = without(adtool, "numpy", "check", "--format", "json", "script.py")
    error = json.loads(done.stdout)["error"]
    assert error["kind"] == "environment" and "package numpy" in error["message"]


@pytest.mark.parametrize("gone", ["numpy", "torch,jax,warp", "matplotlib"])
def test_doctor_says_which_packages_are_missing(gone: str, adtool: Any) -> None:
    done = without(adtool, gone, "doctor", "--format", "json")
    items = {i["name"]: i for i in json.loads(done.stdout)["items"]}
    assert all(items[name]["status"] == "missing" for name in gone.split(","))
    assert items["typer"]["status"] == "ok" and done.stderr == ""
    assert done.returncode == (2 if gone == "numpy" else 0)
    assert items["kernels on the CPU"]["status"] == ("problem" if gone == "numpy" else "ok")


@pytest.mark.parametrize("redirection", ["2>&-", "<&- 2>&-"])
def test_a_closed_standard_error_is_no_fault(adtool: Any, redirection: str) -> None:
    adtool.script(GOOD)
    done = shell(adtool, redirection, "check", "script.py")
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("from the script\n")
    assert "passed" in done.stdout
    done = shell(adtool, redirection, "check", "--format", "json", "script.py")
    assert json.loads(done.stdout)["ok"]


@needs_full
def test_a_full_standard_error_is_no_fault(adtool: Any) -> None:
    adtool.script(GOOD)
    assert shell(adtool, "2>/dev/full", "check", "script.py").returncode == 0
    assert shell(adtool, "2>/dev/full", "check", "missing.py").returncode == 2


@pytest.mark.parametrize("format", ["text", "json"])
@pytest.mark.parametrize("redirection", [">&-", pytest.param("> /dev/full", marks=needs_full)])
def test_a_report_that_cannot_be_printed(adtool: Any, redirection: str, format: str) -> None:
    adtool.script(GOOD.replace("print", "0 and print"))
    done = shell(adtool, redirection, "check", "--format", format, "script.py")
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output cannot be written: ")
    assert done.stderr.count("\n") == 1, done.stderr


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["explain"]])
def test_other_output_that_cannot_be_printed(adtool: Any, args: list[str]) -> None:
    done = shell(adtool, ">&-", *args)
    assert done.returncode == 2
    assert done.stderr.startswith("error: standard output cannot be written: ")
    assert done.stderr.count("\n") == 1, done.stderr


def test_what_the_script_prints_never_lands_in_files_of_the_tool(adtool: Any) -> None:
    adtool.script(
        "import os, sys\nassert sys.stdout is None\n"
        "os.write(2, os.readlink('/proc/self/fd/1').encode())\n"
    )
    if sys.platform == "linux":
        done = shell(adtool, ">&-", "check", "script.py")
        assert done.stderr.startswith("/dev/nullerror: "), done.stderr


def test_a_terminal_of_no_width(adtool: Any) -> None:
    adtool.script(GOOD)
    adtool.env["COLUMNS"] = "0"
    assert "1 tape, 1 launch" in adtool("check", "script.py").stdout


def test_names_that_the_locale_has_not(adtool: Any) -> None:
    adtool.script(GOOD.replace("square", "gr\u00f6\u00dfe"))
    adtool.env |= {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stderr


def test_a_limit_on_the_size_of_files(adtool: Any) -> None:
    adtool.script(GOOD)
    adtool.command = ["sh", "-c", 'ulimit -f 2; exec "$@"', "sh", *adtool.command]
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr and "cannot write" in done.stderr, done.stderr


@pytest.mark.parametrize("args", [["check", "script.py"], ["explain"], ["--help"]])
def test_a_reader_that_goes_away(adtool: Any, args: list[str]) -> None:
    adtool.script(GOOD.replace("print", "0 and print"))
    reader, writer = os.pipe()
    os.close(reader)
    process = adtool.start(*args, stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (2, "")


def test_no_temporary_folder(adtool: Any) -> None:
    adtool.script("")
    code = adtool.command[-1].replace(
        "from adtool",
        "import tempfile; tempfile._candidate_tempdir_list = lambda: ['/nowhere']; from adtool",
    )
    adtool.command = [*adtool.command[:-1], code]
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert done.stderr.startswith("error: adtool cannot create a temporary folder: ")
    assert "help: set TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr
    report = adtool.report("script.py")
    assert report["error"]["kind"] == "environment"


def test_a_temporary_folder_that_vanishes(adtool: Any, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    adtool.env["TMPDIR"] = str(folder)
    adtool.script(f"import shutil\nshutil.rmtree({str(folder)!r})\n")
    done = adtool("check", "script.py")
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: the temporary folder of the run, {folder}")
    assert "Traceback" not in done.stderr


def test_results_that_cannot_be_written() -> None:
    failure = endings.died(1, status.Status(status.END), "")
    assert failure.kind == "environment"
    assert "results could not be written" in failure.message
    assert "os._exit" not in failure.help


@pytest.mark.parametrize("what", ["sys.modules.clear()", "REMOVE"])
def test_modules_that_the_script_removes(adtool: Any, what: str) -> None:
    remove = (
        "for name in list(sys.modules):\n"
        "    if name.startswith(('engine', 'adtool', 'numpy', 'json')):\n"
        "        del sys.modules[name]"
    )
    adtool.script(GOOD + f"import sys\n{remove if what == 'REMOVE' else what}\n")
    done = adtool("check", "script.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_temporary_folder_that_others_may_exchange(adtool: Any) -> None:
    """Another user could put a job of its own there, which would be run."""
    adtool.script("pass\n")
    folder = adtool.folder / "tmp"
    folder.mkdir()
    adtool.env["TMPDIR"] = str(folder)
    folder.chmod(0o777)
    done = adtool("check", "script.py")
    assert done.returncode == 2 and "not safe from other users" in " ".join(done.stderr.split())
    assert not list(folder.iterdir())
    folder.chmod(0o1777)
    assert "made no tape" in adtool("check", "script.py").stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there, a current folder stays")
@pytest.mark.parametrize(
    "words", [["check", "x.py"], ["doctor"], ["explain", "G001"], ["graph"], ["check", "x.adt"]],
    ids=" ".join,
)  # fmt: skip
def test_the_current_folder_was_removed(adtool: Any, words: list[str]) -> None:
    gone = adtool.folder / "gone"
    gone.mkdir()
    command = ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", *adtool.command, *words]
    done = subprocess.run(
        command, cwd=gone, env=adtool.env, text=True, capture_output=True, timeout=100
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the current folder was removed\n"), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there, a current folder stays")
def test_a_script_that_removes_its_current_folder(adtool: Any) -> None:
    adtool.script(GOOD + "import os, shutil\nshutil.rmtree(os.getcwd())\n")
    (adtool.folder / "gone").mkdir()
    process = adtool.start("check", "../script.py", cwd=adtool.folder / "gone")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    assert "error" not in err
