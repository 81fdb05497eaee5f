"""Threads of launches run on other processors than the launching thread."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.host("launches in parts are the CPU's"),
    pytest.mark.skipif(
        not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
        reason="Linux with two processors or more",
    ),
]

SCRIPT = """
    import os
    import time
    import numpy as np
    import engine as wp

    @wp.kernel
    def waves(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        v = x[i]
        for _ in range(30):
            v = wp.sin(v) + 0.5 * x[i]
        y[i] = v

    x, y = (wp.array(np.linspace(0, 1, 100_000), dtype=float) for _ in range(2))
    wp.config.num_threads = 3
    before = {int(t) for t in os.listdir("/proc/self/task")}

    def go():
        wp.launch(waves, len(x), [x, y])
        return y.numpy().tobytes()

    def workers():
        return [t for t in map(int, os.listdir("/proc/self/task")) if t not in before]

    def where():
        # As soon as all sleep again.
        for _ in range(10_000):
            found = [os.sched_getaffinity(t) for t in workers()]
            if found == told:
                break
            time.sleep(0.001)
        return found

    def processors():
        # Where they ran last: field 39.
        stats = [open(f"/proc/self/task/{t}/stat").read() for t in workers()]
        return [int(s.rpartition(")")[2].split()[36]) for s in stats]

    allowed = os.sched_getaffinity(0)
    here, there = sorted(allowed)[:2]
    """


def run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT) + textwrap.dedent(text))
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr


def test_workers_wake_up_elsewhere(tmp_path: Path) -> None:
    run(tmp_path, """
        first, told = go(), [allowed] * 2
        for mine in (there, here, there):
            os.sched_setaffinity(0, {mine})
            elsewhere = 0
            for _ in range(20):
                time.sleep(0.005)  # they sleep
                assert go() == first
                elsewhere += mine not in processors()
            assert where() == told
            assert elsewhere > 10, elsewhere  # others may need a processor, too
    """)  # fmt: skip


def test_where_they_may_run_stays_as_it_was(tmp_path: Path) -> None:
    run(tmp_path, """
        first, told = go(), [allowed] * 2
        assert where() == told  # the workers sleep: what they are told now is not undone
        everybody = list(map(int, os.listdir("/proc/self/task")))
        for told in ([{there}] * 2, [{here}] * 2, [allowed, {here}], [allowed] * 2):
            for t, processors in zip(workers(), told):
                os.sched_setaffinity(t, processors)
            for mine in ({here}, {there}, allowed, {here}):
                os.sched_setaffinity(0, mine)
                time.sleep(0.005)
                assert go() == first and where() == told
        for mine in ({there}, {here}, allowed, {there}, allowed):  # as `taskset --all-tasks` does
            for t in everybody:
                os.sched_setaffinity(t, mine)
            told = [mine] * 2
            for _ in range(3):
                time.sleep(0.005)
                assert go() == first and where() == told
    """)  # fmt: skip


def test_many_that_launch_at_once(tmp_path: Path) -> None:
    run(tmp_path, """
        import threading
        first, found = go(), []
        def again(mine):
            os.sched_setaffinity(0, {mine})
            for _ in range(30):
                go()
            found.append(True)
        threads = [threading.Thread(target=again, args=[m]) for m in (here, there, here)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert len(found) == 3 and y.numpy().tobytes() == first
    """)  # fmt: skip
