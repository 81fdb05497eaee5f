"""Fixtures for tests of cotangents and of private captured sequences."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches and cotangents that are small are taken to be large."""
    from tests.unit.tape.seeded import take_small  # late: most tests need none of it

    take_small(monkeypatch)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the gradient was known to be zero, of each pass that went the short way."""
    from tests.unit.tape.seeded import note_taken

    return note_taken(monkeypatch)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A program that has the launcher, and in which no other test has left anything."""
    from tests.unit.tape.unseen_sequences import quiet

    with quiet(monkeypatch):
        yield
