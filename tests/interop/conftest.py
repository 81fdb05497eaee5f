"""Fixtures for the tests of all adapters."""

from __future__ import annotations

import pytest

from tests.interop.drivers import lib


@pytest.fixture(autouse=True)
def _installed(request: pytest.FixtureRequest) -> None:
    """Skips where the framework of a test is missing: that of its driver, the parameter `d`."""
    driver = request.node.callspec.params.get("d") if hasattr(request.node, "callspec") else None
    if driver is not None and driver.package:
        lib(driver.package)
