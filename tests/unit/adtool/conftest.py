"""Hand-made results, as the engine would return them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adtool.job import CheckOptions, Target
from adtool.session import Session
from engine.autograd import Entry, LaunchResult, PairResult, TapeResult
from engine.diagnostics import Span

Make = Callable[..., Any]

SOURCE = """import engine


@engine.kernel
def spring_forces(pos: engine.array(dtype=float), force: engine.array(dtype=float)):
    i = engine.tid()
    force[i] = -2.0 * engine.sqrt(pos[i])
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script with a kernel on line 5, named relative to the current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "springs.py"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def pair() -> Make:
    """Makes a pair; by default one that passes."""

    def make(verdict: str = "pass", **given: Any) -> PairResult:
        wrong = verdict in ("fail", "kink", "inconclusive")
        values: dict[str, Any] = {
            "input": "pos",
            "output": "force",
            "verdict": verdict,
            "checked": 0 if verdict == "skipped" else 64,
            "max_abs_error": 0.5 if wrong else 1.25e-9,
            "max_rel_error": 0.25 if wrong else 1.5e-8,
            "worst": Entry(3, 2, -1.5, -2.0, 0.25, 2e-5)
            if wrong
            else (Entry(0, 0, 0.12345678, 0.12345679, 8.1e-8, 1.2e-6)),
        }
        return PairResult(**(values | given))

    return make


@pytest.fixture
def launch(source: Path) -> Make:
    """Makes a launch of `spring_forces`."""

    def make(index: int, *pairs: PairResult, **given: Any) -> LaunchResult:
        values: dict[str, Any] = {
            "index": index,
            "kernel": "spring_forces",
            "dim": (64,),
            "pairs": pairs,
            "span": Span(str(source), 5, 1, 5, 18),
        }
        return LaunchResult(**(values | given))

    return make


@pytest.fixture
def session() -> Make:
    """Makes a session of tapes, each given as a list of launches or as a TapeResult."""

    def make(*tapes: list[LaunchResult] | TapeResult, **given: Any) -> Session:
        results = tuple(
            t if isinstance(t, TapeResult) else TapeResult(i, tuple(t)) for i, t in enumerate(tapes)
        )
        values: dict[str, Any] = {
            "target": Target("springs.py"),
            "options": CheckOptions(),
            "tapes": results,
            "kernels": tuple(dict.fromkeys(x.kernel for t in results for x in t.launches)),
            "seconds": 1.25,
        }
        return Session(**(values | given))

    return make
