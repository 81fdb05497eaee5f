"""Tables of tests that run reduced, and whole by `pytest -m "sweep or not sweep"`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def reduced(cases: Sequence[T], usual: Callable[[T], bool]) -> list[Any]:
    """Parameters of a test: those that are not usual are marked `sweep`, and left out as a rule."""
    return [c if usual(c) else pytest.param(c, marks=pytest.mark.sweep) for c in cases]


def selected(request: pytest.FixtureRequest, cases: Sequence[T]) -> list[T]:
    """Those of the cases that tests of this run have as a parameter."""
    found = {
        id(value)
        for item in request.session.items
        if hasattr(item, "callspec")
        for value in item.callspec.params.values()
    }
    return [c for c in cases if id(c) in found]
