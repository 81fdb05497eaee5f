"""Executors give the same results; workers that are lost are replaced; runs end as asked."""

from __future__ import annotations

import json
import os
import signal
import time
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adtool.executors import executor, names
from adtool.report import Failure, Report, failed_report, runs_exit_code
from tests import executing
from tests.executing import GOOD

SLEEPS = "import os, time\nopen(__file__ + '.pid', 'w').write(str(os.getpid()))\ntime.sleep(60)\n"


def test_every_file_is_an_executor() -> None:
    assert names() == ("processes", "ray", "serial")


def test_processes_give_what_serial_gives(tmp_path: Path) -> None:
    executing.same_as_serial(executor("processes", 2), executor("serial"), tmp_path)


def test_a_lost_process_is_replaced(tmp_path: Path) -> None:
    executing.retries(executor("processes", 2), tmp_path)


def test_columns_of_jacobians(tmp_path: Path) -> None:
    executing.shares_columns(executor("processes", 2), tmp_path)


@pytest.mark.parametrize("name", ["serial", "processes"])
def test_nothing_counts_after_the_first_failure(tmp_path: Path, name: str) -> None:
    executing.ends_early(executor(name, 2), tmp_path)


def test_cores_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from adtool.executors.processes import environment

    monkeypatch.delenv("ENGINE_NUM_THREADS", raising=False)
    assert [environment(j, 8)["ENGINE_NUM_THREADS"] for j in (1, 3, 8, 20)] == ["8", "2", "1", "1"]
    monkeypatch.setenv("ENGINE_NUM_THREADS", "5")
    assert environment(4, 8)["ENGINE_NUM_THREADS"] == "5"


def test_output_of_scripts_does_not_mix(adtool: Any) -> None:
    for name in "abc":
        text = f"import time\nfor _ in range(20):\n    print('{name}' * 50, flush=True)\n"
        adtool.script(text + "    time.sleep(0.01)\n" + GOOD, f"{name}.py")
    done = adtool("check", "-q", "--jobs", "3", "a.py", "b.py", "c.py")
    lines = [x[0] for x in done.stdout.splitlines() if x in ("a" * 50, "b" * 50, "c" * 50)]
    assert "".join(lines) == "a" * 20 + "b" * 20 + "c" * 20
    assert done.returncode == 0 and done.stdout.endswith("3 scripts: 3 passed\n")
    assert done.stderr == "to err\n" * 3
    # .adtool/last is of the last script, as if they ran one after the other.
    with zipfile.ZipFile(adtool.folder / ".adtool" / "last") as last:
        assert json.loads(last.read("run.json"))["script"] == "c.py"


def test_fail_fast(adtool: Any) -> None:
    adtool.script(GOOD, "a.py")
    adtool.script("raise ValueError\n", "b.py")
    adtool.script(GOOD, "c.py")
    done = adtool("check", "-x", "--jobs", "2", "--format", "json", "a.py", "b.py", "c.py")
    data = json.loads(done.stdout)
    assert [r["ok"] for r in data["runs"]] == [True, False, False]
    assert data["runs"][2]["error"]["kind"] == "not-run"
    assert (data["exit_code"], done.returncode) == (2, 2)
    assert done.stderr.count("error: ") == 1


def test_what_was_not_to_be_run_makes_no_exit_code() -> None:
    def report(code: int, kind: str | None) -> Report:
        failure = None if kind is None else Failure(kind, "why")
        return replace(failed_report(Failure("", ""), "adtool"), exit_code=code, error=failure)

    assert runs_exit_code([report(0, None), report(1, None), report(2, "not-run")]) == 1
    assert runs_exit_code([report(1, None), report(2, "interrupted")]) == 2
    assert runs_exit_code([]) == 0


@pytest.mark.parametrize(("number", "jobs"), [("SIGINT", "2"), ("SIGTERM", "2"), ("SIGINT", "1")])
def test_an_interrupt_ends_all(adtool: Any, number: str, jobs: str) -> None:
    adtool.script(GOOD, "a.py")
    for name in ("b.py", "c.py", "d.py"):
        adtool.script(SLEEPS, name)
    process = adtool.start(
        "check", "--format", "json", "--jobs", jobs, "a.py", "b.py", "c.py", "d.py",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wanted = [adtool.folder / f"{n}.py.pid" for n in ("b", "c")[: int(jobs)]]
    deadline = time.monotonic() + 60
    while not all(p.exists() and p.read_text() for p in wanted) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(getattr(signal, number))
    out, _ = process.communicate(timeout=60)
    runs = json.loads(out)["runs"]
    assert process.returncode == 2 and [r["ok"] for r in runs] == [True, False, False, False]
    messages = [r["error"]["message"] for r in runs[1:]]
    begun = int(jobs)
    assert all(f"interrupted by {number} while the script ran" in m for m in messages[:begun])
    assert messages[begun:] == ["not run: interrupted before"] * (3 - begun)
    for path in wanted:
        assert _gone(int(path.read_text()))


def _gone(pid: int) -> bool:
    for _ in range(100):
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            time.sleep(0.05)
            continue
        return True
    return False
