"""Programs with a fault that a user could make: each is found, with its code, at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.runner import BROKEN, cases, verify


@pytest.mark.parametrize("path", cases(BROKEN))
def test_broken_program_is_found_out(path: Path) -> None:
    verify(path)
