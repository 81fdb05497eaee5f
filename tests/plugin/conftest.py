"""Projects of users, in folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.project import Project


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One kernel cache for the run."""
    path = tmp_path_factory.mktemp("kernels")
    path.chmod(0o700)
    return path


@pytest.fixture
def project(tmp_path: Path, root: Path, kernels: Path) -> Project:
    """An empty project with some kernels."""
    return Project(tmp_path, root, kernels)
