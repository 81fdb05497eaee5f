"""Faults of the target are blamed on the target."""

from __future__ import annotations

import numpy as np
import pytest

from adtool.surroundings import Surroundings


def test_nobody_is_blamed_where_no_target_has_run() -> None:
    """As in the check of a capture: a fault there is not that of a script."""
    assert Surroundings().blame() is None


def test_a_target_that_changed_nothing_is_not_blamed() -> None:
    with Surroundings() as around:
        pass
    assert around.blame() is None


def test_what_the_target_changed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Surroundings() as around:
        monkeypatch.setattr(np, "hypot", None)
    blame = around.blame()
    assert blame is not None and "`numpy.hypot`" in blame.message
