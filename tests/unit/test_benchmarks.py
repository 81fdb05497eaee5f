"""The benchmarks' cases run on `engine` at their small sizes, and their page can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def folder_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts of benchmarks/ import each other by plain names."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - before:
        if (
            getattr(sys.modules[name], "__file__", None)
            and FOLDER in Path(str(sys.modules[name].__file__)).parents
        ):
            del sys.modules[name]


def test_every_case_runs(folder_on_path: None) -> None:
    from cases import CASES

    commands: list[dict[str, object]] = []
    for case in CASES:
        commands.append({"make": case.name, "size": case.quick})
        commands.append({"time": "forward", "repeat": 1})
    done = subprocess.run(
        [sys.executable, str(FOLDER / "worker.py")],
        input="".join(json.dumps(c) + "\n" for c in commands),
        env={**os.environ, "BENCH_FRAMEWORK": "engine"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(commands)
    for made, times in zip(answers[::2], answers[1::2], strict=True):
        assert all(magnitude > 0.0 for _, magnitude in made["outputs"] + made["gradients"])
        assert len(times) == 1
        assert times[0] > 0.0


def test_the_page_shows_ratios(folder_on_path: None) -> None:
    from table import markdown

    row = {"name": "x", "title": "a row", "size": 1000, "note": "a note"}
    figures = {"engine": 0.002, "warp": 0.004, "gap": 0.0, "limit": 0.001}
    page = markdown({"machine": {"cpu": "c"}, "rows": [{**row, "passes": {"forward": figures}}]})
    assert "| a row | 1,000 | forward | 2 ms | 4 ms | 0.5 | 1 ms | 0 |" in page
    assert "- a row: a note." in page


def test_results_on_record_name_no_place() -> None:
    """RESULTS.md and its data hold no paths of the machine that they were measured on."""
    for path in (FOLDER / "RESULTS.md", FOLDER / "results" / "full.json"):
        text = path.read_text(encoding="utf-8")
        assert str(Path.home()) + "/" not in text
        assert "/tmp/" not in text


@pytest.mark.sweep  # it takes 40 seconds
def test_the_cost_of_watching_can_be_measured(folder_on_path: None) -> None:
    import tracking

    text = tracking.page(1, quick=True)
    assert text.count("\n| ") == 3 + len(tracking.programs()) + 2
    assert "roll-out, an array a step | 20 x 64 |" in text and "nan" not in text


def test_kernels_of_a_package_are_compiled_by_phases(
    folder_on_path: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import argparse

    import compile_real

    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "kernels.py").write_text(
        "import warp as wp\n\n\n@wp.kernel\ndef twice(x: wp.array(dtype=float)):\n"
        "    i = wp.tid()\n    x[i] = x[i] * x[i]\n"
    )
    monkeypatch.setitem(compile_real.PACKAGES, "some", [])
    rows: dict[str, dict[str, object]] = {}
    options = argparse.Namespace(
        peer=False, only=[], every=0, keep=None, seconds=60, results=tmp_path / "r.jsonl"
    )
    compile_real.measure("some", folder, options, rows)
    (row,) = rows.values()
    assert json.loads(options.results.read_text()) == row
    said = row["engine"]
    assert isinstance(said, dict) and said["ok"] and said["form"] == "recorded"
    assert set(said["phases"]) == set(compile_real.PHASES)
    assert compile_real.summary([row]).startswith("1 kernels: engine")
    assert compile_real.line(row).startswith("twice: ")
    assert compile_real.folder_of("no_such_package") is None
