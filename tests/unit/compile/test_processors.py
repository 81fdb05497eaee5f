"""Where the threads of launches run: not on the processor that a launch is made on."""

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
        return [os.sched_getaffinity(t) for t in workers()]

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


def test_workers_keep_off_who_waits_for_them(tmp_path: Path) -> None:
    run(tmp_path, """
        os.sched_setaffinity(0, {here})
        first = go()
        # The threads' own set is that of who made them, so nothing else is left for them here.
        assert len(where()) == 2 and where() == [{here}] * 2
        for t in workers():
            os.sched_setaffinity(t, allowed)
        for mine in (there, here, there):
            os.sched_setaffinity(0, {mine})
            assert go() == first
            assert where() == [allowed - {mine}] * 2
        os.sched_setaffinity(0, allowed)
        assert go() == first
        assert all(len(allowed - w) == 1 for w in where())
    """)  # fmt: skip


def test_where_they_were_told_to_run_they_stay(tmp_path: Path) -> None:
    run(tmp_path, """
        first = go()
        for told in (there, here):
            for t in workers():
                os.sched_setaffinity(t, {told})
            for mine in (here, there, here):
                os.sched_setaffinity(0, {mine})
                assert go() == first
                assert where() == [{told}] * 2
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
