"""Fixtures for tests of private captured sequences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that has the launcher, and in which no other test has left anything."""
    from tests.unit.tape.unseen_sequences import quiet

    with quiet(monkeypatch):
        yield
