"""The option that writes snapshots anew: `pytest tests/snapshots --update-snapshots`."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-snapshots",
        action="store_true",
        help="write tests/snapshots/data from the present output; look at the diff afterwards",
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to write snapshots; the option is known where pytest is pointed at this folder."""
    return bool(request.config.getoption("--update-snapshots", default=False))
