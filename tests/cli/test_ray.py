"""The same promises, kept by a Ray cluster of several processes on this machine."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adtool.executors import executor
from tests import executing

ray: Any = pytest.importorskip("ray", reason="needs the extra `ray`")

# Ray's own sockets and files, collected late.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """One cluster for the module."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, address="local")
        yield
        ray.shutdown()


def test_ray_gives_what_serial_gives(tmp_path: Path) -> None:
    executing.same_as_serial(executor("ray"), executor("serial"), tmp_path)


def test_a_lost_worker_is_replaced(tmp_path: Path) -> None:
    executing.retries(executor("ray"), tmp_path)


def test_nothing_counts_after_the_first_failure(tmp_path: Path) -> None:
    executing.ends_early(executor("ray", 2), tmp_path)


def test_columns_of_jacobians(tmp_path: Path) -> None:
    executing.shares_columns(executor("ray"), tmp_path)
