"""Scripts for executors, and what all executors must make of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from adtool import last
from adtool.codec import dumps
from adtool.executors.base import Executor, Finished
from adtool.job import CheckOptions, Columns, JacobianOptions, Job, Keep, Target
from adtool.report import Failure
from adtool.session import run_session
from adtool.tasks.check_script import Checked, CheckScript
from adtool.tasks.jacobian_columns import ColumnsFound, JacobianColumns

GOOD = """
import sys
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

print("to out")
print("to err", file=sys.stderr)
x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
"""

# Ends the worker that runs it, the first times: {count} of them.
KILLER = """
import os, pathlib, signal, time
seen = pathlib.Path(__file__ + ".seen")
count = len(seen.read_text()) if seen.exists() else 0
if count < {count}:
    seen.write_text("x" * (count + 1))
    # The parent of the server that has started this run.
    about = open(f"/proc/{{os.getppid()}}/stat").read()
    os.kill(int(about.rpartition(")")[2].split()[1]), signal.SIGKILL)
    time.sleep(30)
"""


def task(folder: Path, name: str, text: str | None, timeout: float = 60.0) -> CheckScript:
    """Writes a script, unless there is to be none, and gives the task to check it."""
    if text is not None:
        (folder / name).write_text(text)
    return CheckScript(Job(Target(str(folder / name)), CheckOptions()), timeout)


def mixed(folder: Path) -> list[CheckScript]:
    """Tasks that pass, that fail in several ways, and that take different times."""
    return [
        task(folder, "one.py", "import time; time.sleep(0.5)\n" + GOOD),
        task(folder, "raises.py", "print('before')\nraise ValueError('why')\n"),
        task(folder, "two.py", GOOD),
        task(folder, "missing.py", None),
        task(folder, "endless.py", "while True: pass\n", timeout=0.5),
    ]


def plain(finished: Finished) -> dict[str, Any]:
    """A report as JSON without the time that it took."""
    result: Checked = finished.result
    data: dict[str, Any] = json.loads(dumps(replace(result.report, seconds=0.0)))
    return data


def same_as_serial(executor: Executor, serial: Executor, folder: Path) -> None:
    """The same reports in the same order, and what each script printed."""
    tasks = mixed(folder)
    expected = [plain(f) for f in serial.run(tasks)]
    assert [r["ok"] for r in expected] == [True, False, True, False, False]
    found, printed = [], []
    for finished in executor.run(tasks):
        found.append(plain(finished))
        assert finished.printed is not None
        out, err = finished.printed.out, finished.printed.err
        printed.append((out.read_text() if out.exists() else "", err.exists() and err.read_text()))
    assert found == expected
    assert printed[0] == printed[2] == ("to out\n", "to err\n")
    assert printed[1] == ("before\n", "")


def retries(executor: Executor, folder: Path) -> None:
    """A task whose worker is lost is begun again, some times; the others go on."""
    tasks = [
        task(folder, "once.py", KILLER.format(count=1) + GOOD),
        task(folder, "always.py", KILLER.format(count=9) + GOOD),
        task(folder, "after.py", GOOD),
    ]
    once, always, after = (f.result.report for f in executor.run(tasks))
    assert once.ok and after.ok
    assert (folder / "once.py.seen").read_text() == "x"
    assert always.error is not None and always.error.kind == "worker-lost"
    assert (always.exit_code, always.error.message[:25]) == (2, "the worker was lost 3 tim")
    assert (folder / "always.py.seen").read_text() == "xxx"


def ends_early(executor: Executor, folder: Path) -> None:
    """Nothing counts after the first failure, whatever was done by then."""
    tasks = [
        task(folder, "slow.py", "import time; time.sleep(1)\n" + GOOD),
        task(folder, "bad.py", "raise ValueError\n"),
        task(folder, "quick.py", GOOD),
        task(folder, "last.py", "open(__file__ + '.ran', 'w')\n"),
    ]
    why = Failure("not-run", "because")
    finished = list(executor.run(tasks, ends=lambda r: None if r.report.ok else why))
    assert [f.begun for f in finished] == [True, True, False, False]
    assert finished[0].result.report.ok
    assert [f.result.report.error for f in finished[2:]] == [why, why]
    assert not (folder / "last.py.ran").exists()


def shares_columns(executor: Executor, folder: Path) -> None:
    """Shares of a Jacobian's derivatives, each evaluated once, together all."""
    (folder / "script.py").write_text(GOOD)
    keep = Keep(str(folder / "run.adt"), 1 << 20, 100)
    session = run_session(
        Job(Target(str(folder / "script.py")), CheckOptions(), check=False, keep=keep), silent=True
    )
    last.capture(session, None, Path(keep.path))
    target = Target(keep.path, capture=True)
    job = Job(target, CheckOptions(), JacobianOptions("square"))
    tasks = [JacobianColumns(replace(job, columns=Columns(n, 2)), 60.0) for n in range(2)]
    results: list[ColumnsFound] = [f.result for f in executor.run(tasks)]
    assert [r.failure for r in results] == [None, None]
    found = [d for r in results for d in json.loads(r.derivatives)]
    assert [d["of"] for d in found] == ["adjoint"] and [d["number"] for d in found] == [0]
    whole = run_session(replace(job, derivatives=json.dumps(found)))
    assert whole.jacobian == run_session(job).jacobian is not None
