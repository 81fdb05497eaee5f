"""Projects of users, in folders of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.project import Project


@pytest.fixture
def project(tmp_path: Path, root: Path, kernels: Path) -> Project:
    """An empty project with some kernels."""
    return Project(tmp_path, root, kernels)
