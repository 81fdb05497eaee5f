"""Files that the user asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from adtool.exits import ToolError
from adtool.figures import graphs
from adtool.writing import spare_sources


def test_no_report_takes_the_place_of_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    spare_sources(script)  # nothing is lost
    spare_sources(tmp_path / "report.txt")
    script.write_text("print()")
    with pytest.raises(ToolError, match="an existing Python file"):
        spare_sources(script)


def test_a_picture_that_is_too_large_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(*args: Any, **more: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(args, 0, b"PNG", b"dot: graph is too large for bitmaps")

    monkeypatch.setattr(graphs.shutil, "which", lambda _: "dot")
    monkeypatch.setattr(graphs.subprocess, "run", small)
    with pytest.raises(ToolError, match="too large") as caught:
        graphs.drawn("digraph {}", "png")
    assert ".svg" in caught.value.help
