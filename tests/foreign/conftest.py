"""Programs that are watched here set what they like of their framework: it is put back."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _precision_of_jax() -> Iterator[None]:
    jax = sys.modules.get("jax")
    before = jax is not None and jax.config.jax_enable_x64
    yield
    if (jax := sys.modules.get("jax")) is not None:
        jax.config.update("jax_enable_x64", before)
