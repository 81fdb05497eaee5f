"""Files that the user asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from adtool.exits import ToolError
from adtool.writing import spare_sources


def test_no_report_takes_the_place_of_a_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    spare_sources(script)  # nothing is lost
    spare_sources(tmp_path / "report.txt")
    script.write_text("print()")
    with pytest.raises(ToolError, match="an existing Python file"):
        spare_sources(script)
