"""The ways in which targets can end, and their messages. No kernel is compiled here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fails = Callable[..., str]


class TestEnvironment:
    """What the target sees is what plain `python` shows it."""

    SHOW = (
        "import json, os, sys\n"
        "main = sys.modules['__main__']\n"
        "said = [sys.argv, sys.path[0], os.getcwd(), __name__, __file__,\n"
        "        main.__dict__ is globals(), __package__,\n"
        "        __spec__ and __spec__.name, __doc__]\n"
        "json.dump([said, sys.path], open({!r}, 'w'))\n"
    )

    def compare(self, adtool: Any, plain: list[str], target: list[str]) -> None:
        subprocess.run([sys.executable, *plain], cwd=adtool.folder, env=adtool.env, check=True)
        out = adtool.folder / "out.json"
        expected = json.loads(out.read_text())
        out.unlink()
        done = adtool("check", *target)
        assert done.returncode == 2, done.stderr
        assert "no tape" in done.stderr
        assert json.loads(out.read_text()) == expected

    def test_script(self, adtool: Any) -> None:
        text = self.SHOW.format(str(adtool.folder / "out.json"))
        adtool.script(text, "sub/script.py")
        args = ["a", "--eps", "--", "b"]
        self.compare(adtool, ["sub/script.py", *args], ["sub/script.py", *args])
        self.compare(adtool, ["sub/script.py", *args], ["sub/script.py", "--", *args])

    def test_module(self, adtool: Any) -> None:
        text = self.SHOW.format(str(adtool.folder / "out.json"))
        adtool.script("", "pack/__init__.py")
        adtool.script(text, "pack/tool.py")
        args = ["--seed", "3", "x", "--", "-m"]
        self.compare(adtool, ["-m", "pack.tool", *args], ["-m", "pack.tool", *args])
        self.compare(
            adtool, ["-m", "pack.tool", "x"], ["--seed", "1", "-m", "pack.tool", "--", "x"]
        )

    def test_package(self, adtool: Any) -> None:
        text = self.SHOW.format(str(adtool.folder / "out.json"))
        adtool.script("", "pack/__init__.py")
        adtool.script(text, "pack/__main__.py")
        self.compare(adtool, ["-m", "pack"], ["-m", "pack"])

    def test_standard_input(self, adtool: Any) -> None:
        adtool.script("print('got', input())")
        assert adtool("check", "script.py", stdin="words\n").stdout == "got words\n"

    def test_output_goes_where_it_belongs(self, adtool: Any) -> None:
        adtool.script("import sys\nprint('out')\nprint('err', file=sys.stderr)")
        done = adtool("check", "script.py")
        assert done.stdout == "out\n"
        assert done.stderr.startswith("err\nerror: nothing was checked")
        done = adtool("check", "--format", "json", "script.py")
        assert json.loads(done.stdout)["exit_code"] == 2
        assert done.stderr.startswith("out\nerr\n") or done.stderr.startswith("err\nout\n")

    def test_files_beside_the_script_do_not_shadow_the_tool(self, adtool: Any) -> None:
        for name in ("json.py", "report.py", "status.py", "typing.py"):
            adtool.script("raise SystemExit('shadowed')", name)
        adtool.script("print('ran')")
        done = adtool("check", "script.py")
        assert "no tape" in done.stderr, done.stderr


class TestEnds:
    def test_an_exception(self, fails: Fails) -> None:
        text = fails("import os\nos.chdir('/')\ndef f():\n    raise ValueError('[b]bad')\nf()\n")
        assert "error: the script raised ValueError at " in text
        assert "script.py:4" in text
        assert text.count("  File ") == 2
        assert "\nValueError: [b]bad\n" in text

    def test_a_chain_of_exceptions(self, fails: Fails) -> None:
        text = fails("try:\n    1 / 0\nexcept Exception as e:\n    raise KeyError('k') from e\n")
        assert "ZeroDivisionError: division by zero" in text
        assert "direct cause" in text

    def test_a_module_that_is_missing(self, fails: Fails) -> None:
        text = fails("import no_such_module_anywhere\n")
        assert "ModuleNotFoundError" in text

    def test_a_syntax_error(self, fails: Fails) -> None:
        text = fails("x = 1\ny = (x +\n")
        assert "`script.py` has a syntax error" in text
        assert "script.py:2:5" in text
        assert "2 | y = (x +" in text

    def test_no_python_at_all(self, fails: Fails) -> None:
        text = fails("\0\0")
        assert "`script.py` has a syntax error" in text
        assert "  --> script.py\n" in text and "None" not in text

    @pytest.mark.parametrize(
        ("source", "words", "place"),
        [
            (b"x = 1\n# caf\xe9\n", "it is not UTF-8 (byte 0xe9)", "script.py:2:6"),
            (b"s = 'caf\xe9'\n", "it is not UTF-8 (byte 0xe9)", "script.py:1:9"),
            (b"# coding: ascii\ns = 'caf\xc3\xa9'\n", "it is not ASCII", "script.py:2:9"),
            (b"# coding: foo\n", "unknown encoding: foo", "script.py"),
        ],
    )
    def test_an_encoding_that_python_refuses(
        self, adtool: Any, source: bytes, words: str, place: str
    ) -> None:
        path = adtool.script("")
        path.write_bytes(source)
        plain = subprocess.run([sys.executable, str(path)], capture_output=True, check=False)
        assert plain.returncode == 1 and b"SyntaxError" in plain.stderr
        done = adtool("check", "script.py")
        assert done.returncode == 2 and words in done.stderr and f"--> {place}\n" in done.stderr

    def test_an_encoding_that_is_declared(self, adtool: Any) -> None:
        adtool.script("").write_bytes(b"# coding: latin-1\nprint(ascii('caf\xe9'))\n")
        assert adtool("check", "script.py").stdout == "'caf\\xe9'\n"

    @pytest.mark.parametrize(
        ("end", "words"),
        [("3", "sys.exit(3)"), ("'no data'", "sys.exit('no data')"), ("True", "sys.exit(True)")],
    )
    def test_exit_with_a_status(self, fails: Fails, end: str, words: str) -> None:
        text = fails(f"import sys\nsys.exit({end})\n")
        assert words in text
        assert "script.py:2" in text

    def test_exit_by_argparse_is_placed_in_the_script(self, fails: Fails) -> None:
        text = fails("import argparse\nargparse.ArgumentParser().parse_args()\n", args=("--what",))
        assert "sys.exit(2)" in text
        assert "script.py:2" in text

    @pytest.mark.parametrize("end", ["", "sys.exit()", "sys.exit(0)", "raise SystemExit"])
    def test_a_normal_end(self, fails: Fails, end: str) -> None:
        assert "the script made no tape" in fails(f"import sys\n{end}\n")

    @pytest.mark.parametrize("end", ["os._exit(0)", "os.execv('/bin/sh', ['sh', '-c', ''])"])
    def test_an_end_without_goodbye(self, fails: Fails, end: str) -> None:
        text = fails(f"import os\n{end}\n").replace("\n  ", " ")
        assert "ended suddenly with status 0" in text
        assert "`os._exit`, `os.exec...` or `exit` in native code ended" in text

    def test_places_are_relative(self, fails: Fails) -> None:
        text = fails("def f():\n    raise ValueError('x')\nf()\n")
        assert "ValueError at script.py:2" in text and '  File "script.py", line 3' in text
        assert str(Path.cwd().anchor) + "tmp" not in text

    @pytest.mark.parametrize("name", ["SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
    def test_a_signal(self, fails: Fails, name: str) -> None:
        text = fails(f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
        assert f"killed by {name}" in text
        assert "no launch yet" in text.replace("\n  ", " ")
        if name != "SIGKILL":
            assert "script.py:2" in text

    def test_a_real_segmentation_fault(self, fails: Fails) -> None:
        assert "SIGSEGV" in fails("import ctypes\nctypes.string_at(0)\n")

    def test_for_ever(self, fails: Fails) -> None:
        text = fails("while True:\n    pass\n", "--timeout", "1.5")  # else this test has no end
        assert "time limit of 1.5 s" in text
        assert "--timeout" in text

    def test_an_engine_error_is_shown_as_its_diagnostics(self, fails: Fails) -> None:
        text = fails(
            "from engine.diagnostics import Diagnostic, KernelError, Span\n"
            "here = Span(__file__, 1, 6, 1, 12)\n"
            "raise KernelError(Diagnostic('E101', 'no lambda', here, 'use def'),\n"
            "                  Diagnostic('E102', 'unknown name'))\n"
        )
        assert "error[E101]: no lambda" in text
        assert "script.py:1:6" in text
        assert "  |      ^^^^^^" in text
        assert "help: use def" in text
        assert "error[E102]: unknown name" in text
        assert "Traceback" not in text

    def test_the_json_of_a_failure(self, adtool: Any) -> None:
        adtool.script("print('noise')\nraise ValueError('bad')\n")
        report = adtool.report("script.py")
        assert (report["exit_code"], report["error"]["kind"]) == (2, "raised")
        assert "ValueError: bad" in report["error"]["detail"]


class TestHostileTargets:
    """Nothing that a target does to its process may break the report."""

    def no_tape(self, fails: Fails, text: str, words: str = "the script made no tape") -> None:
        assert words in fails(text).replace("\n  ", " ")

    def test_closed_streams(self, fails: Fails) -> None:
        self.no_tape(
            fails, "import os, sys\nsys.stdout.close()\nos.close(1)\nos.closerange(3, 64)\n"
        )

    def test_changed_folder(self, fails: Fails) -> None:
        self.no_tape(fails, "import os\nos.chdir('/')\n")

    def test_subprocesses(self, fails: Fails) -> None:
        code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''], check=True)\n"
        self.no_tape(fails, code)

    def test_a_fork_that_runs_off_its_end(self, adtool: Any) -> None:
        adtool.script(
            "import os\npid = os.fork()\nif pid:\n    assert os.waitpid(pid, 0)[1] == 0\n"
        )
        done = adtool("check", "script.py")
        assert done.stderr.count("no tape") == 1

    def test_a_fork_that_raises(self, adtool: Any) -> None:
        adtool.script(
            "import os\npid = os.fork()\nif not pid:\n    raise ValueError('fork')\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1\n"
        )
        done = adtool("check", "script.py")
        assert "ValueError: fork" in done.stderr
        assert "no tape" in done.stderr

    def test_multiprocessing(self, fails: Fails) -> None:
        for method in ("spawn", "fork"):
            self.no_tape(
                fails,
                "import multiprocessing\n"
                "def f(x):\n    return x * x\n"
                "if __name__ == '__main__':\n"
                f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
                "        assert pool.map(f, [1, 2]) == [1, 4]\n",
                words="the script made no tape in its own process, and it started 2 others",
            )

    def test_threads_are_waited_for(self, adtool: Any) -> None:
        adtool.script(
            "import threading, time\nfrom concurrent.futures import ThreadPoolExecutor\n"
            "pool = ThreadPoolExecutor(2)\npool.submit(print, 'pool').result()\n"
            "threading.Thread(target=lambda: (time.sleep(0.5), print('late'))).start()\n"
        )
        done = adtool("check", "script.py")
        assert done.stdout == "pool\nlate\n"
        assert "no tape" in done.stderr

    def test_warnings_as_errors_and_settings(self, fails: Fails) -> None:
        self.no_tape(
            fails,
            "import warnings, numpy, signal, faulthandler\nwarnings.simplefilter('error')\n"
            "numpy.seterr(all='raise')\nfaulthandler.disable()\nsignal.alarm(1)\n",
        )

    def test_a_failing_exit_handler(self, adtool: Any) -> None:
        adtool.script("import atexit\natexit.register(lambda: 1 / 0)\n")
        done = adtool("check", "script.py")
        assert done.returncode == 2
        assert "no tape" in done.stderr

    def test_no_temporary_files_are_left(self, adtool: Any, tmp_path: Path) -> None:
        folder = tmp_path / "temporary"
        folder.mkdir()
        adtool.env["TMPDIR"] = str(folder)
        adtool.script("import os\nos.kill(os.getpid(), 11)\n")
        assert adtool("check", "script.py").returncode == 2
        assert list(folder.iterdir()) == []

    def test_the_limit_ends_all_processes(self, adtool: Any) -> None:
        adtool.script(
            "import subprocess, sys, os\n"
            "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'])\n"
            "print(p.pid, flush=True)\n" + adtool.without_waiting() + "while True:\n    pass\n"
        )
        done = adtool("check", "--timeout", "600", "script.py")
        assert done.returncode == 2
        assert gone(int(done.stdout))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupts_stop_the_target(adtool: Any, number: signal.Signals) -> None:
    adtool.script(
        "import os, time\n"
        "try:\n    print(os.getpid(), flush=True)\n    time.sleep(100)\n"
        "finally:\n    print('cleaned up', flush=True)\n"
    )
    # Tests run in the background inherit that interrupts are ignored; the tool respects that.
    process = adtool.start("check", "script.py", preexec_fn=_heed_interrupts)
    child = int(process.stdout.readline())
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert out == "cleaned up\n"
    assert f"interrupted by {number.name} while the script ran, no launch yet" in err
    assert "Traceback" not in err
    assert gone(child)


def test_a_background_job_stops_its_target(adtool: Any) -> None:
    adtool.script(
        "import time\n"
        "try:\n    print('up', flush=True)\n    time.sleep(100)\n"
        "finally:\n    print('cleaned up', flush=True)\n"
    )
    process = adtool.start("check", "script.py", preexec_fn=_ignore_interrupts)
    assert process.stdout.readline() == "up\n"
    process.terminate()
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "cleaned up\n")


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_a_killed_tool_leaves_no_target(adtool: Any) -> None:
    adtool.script("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(100)\n")
    process = adtool.start("check", "script.py")
    child = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=60)
    assert gone(child)


def gone(pid: int) -> bool:
    """Whether a process ends within ten seconds (a zombie has ended)."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
            stat = Path(f"/proc/{pid}/stat")
            if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.1)
    return False
