"""Right programs that come near a fault: none of them gets an error or a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.runner import RIGHT, cases, verify


@pytest.mark.parametrize("path", cases(RIGHT))
def test_right_program_is_not_accused(path: Path) -> None:
    verify(path)
