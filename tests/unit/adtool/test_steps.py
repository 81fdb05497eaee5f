"""Forks of one process, each of which moves the inputs by another step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from adtool import codec, files
from adtool.job import Moving
from adtool.outcome import Outcome, Settled
from adtool.program_modules import Restart
from adtool.steps import next_step
from engine.autograd import Moved, Mover, Sought


def run(
    folder: Path, fork: Callable[[], object], value: float = 1.0, seconds: float = 20.0
) -> Settled:
    """What the runs say, each of which does this."""
    sought = Sought(0, value, 0.5)
    here = os.getpid()
    try:
        found = next_step(Moving(codec.dumps(sought), seconds), folder)
        if isinstance(found, Mover):
            fork()
    finally:
        if os.getpid() != here:
            os._exit(0)
    assert isinstance(found, Settled)
    return found


def test_a_fork_that_is_to_be_run_otherwise_starts_all_anew(tmp_path: Path) -> None:
    with pytest.raises(Restart) as restart:
        run(tmp_path, lambda: (tmp_path / files.AGAIN).write_text("own:engine"))
    assert restart.value.choice == "own:engine"


def test_what_gives_nothing_says_nothing(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    assert run(tmp_path, lambda: seen.open("a").write("x")) == Settled()
    assert seen.read_text() == "x"


def test_a_fork_that_hangs_is_ended(tmp_path: Path) -> None:
    seen = tmp_path / "seen"

    def hang() -> None:
        seen.write_text(str(os.getpid()))
        time.sleep(600)

    assert run(tmp_path, hang, seconds=5.0) == Settled()
    with pytest.raises(ProcessLookupError):
        os.kill(int(seen.read_text()), 0)


def test_runs_end_where_the_program_does_something_else(tmp_path: Path) -> None:
    moved = Moved(0.0, 2.0, (), "", False)
    outcome = codec.brief(Outcome("done", moved=moved))
    found = run(tmp_path, lambda: (tmp_path / files.RESULT).write_text(outcome), value=1.0)
    assert found == Settled(other=True)
    assert not (tmp_path / files.RESULT).exists()
