from __future__ import annotations

import sys
from pathlib import Path

import pytest

from adtool import memory

GIB = 1 << 30


def test_the_limit_is_the_users_or_a_share_of_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "_available", lambda: [64 * GIB])
    assert memory.limit(None, 4 * GIB) == 4 * GIB
    monkeypatch.setattr(memory, "_available", lambda: [64 * GIB, 2 * GIB])
    assert memory.limit(None, 4 * GIB) == GIB // 2
    assert memory.limit(8.0, 4 * GIB) == 8 * GIB
    assert memory.limit(0.0, 4 * GIB) == 0
    monkeypatch.setattr(memory, "_available", list)
    assert memory.limit(None, 4 * GIB) == 4 * GIB


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [("memory.max", "1000\n", 1), ("memory.max", "max\n", 0),
     ("memory/memory.limit_in_bytes", "1000", 1)],
)  # fmt: skip
def test_limits_of_control_groups(tmp_path: Path, name: str, text: str, count: int) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert memory._available(tmp_path).count(1000) == count


@pytest.mark.parametrize("given", [1e300, 1e308, 2.0**40])
def test_no_wish_is_too_large(given: float) -> None:
    assert memory.limit(given, 1) == min(int(given) << 30, sys.maxsize)
