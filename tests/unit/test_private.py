"""`engine.private` with system folders that belong to an unknown user."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.private import Untrusted, private_folder
from tests.planted import OTHER

_NEW_USERS = 0x10000000  # CLONE_NEWUSER
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there are namespaces on Linux alone"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can map users"),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of another user, where that user can reach it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        os.chown(made, OTHER, -1)
        yield Path(made)


def in_namespace(folder: Path, outside: int) -> str:
    """What a process says of a folder whose user is root in a namespace: `outside` beyond it."""
    ready, go, said = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        found = "no namespace"
        try:
            if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USERS) == 0:
                os.write(ready[1], b"1")
                os.read(go[0], 1)
                os.setuid(0)
                found = private_folder(str(folder))
        except Untrusted as e:
            found = f"{e.path} {e.why}"
        except OSError as e:
            found = f"no namespace: {e}"
        finally:
            os.write(ready[1], b"0")
            os.write(said[1], found.encode())
            os._exit(0)
    os.close(said[1])
    try:
        if os.read(ready[0], 1) == b"1":
            Path(f"/proc/{child}/uid_map").write_text(f"0 {outside} 1")
        os.write(go[1], b"1")
        found = os.read(said[0], 1000).decode()
    finally:
        os.waitpid(child, 0)
        for file in (*ready, *go, said[0]):
            os.close(file)
    if found.startswith("no namespace"):
        pytest.skip(found)
    return found


def test_folders_of_root_outside_of_a_namespace_are_trusted(folder: Path) -> None:
    """As in containers without root, and in sandboxes: `/` seems to belong to nobody there."""
    assert in_namespace(folder, OTHER) == str(folder)


def test_but_not_where_root_is_inside(folder: Path) -> None:
    """Then who is unknown is another user."""
    assert "belongs to another user" in in_namespace(folder, 0)
