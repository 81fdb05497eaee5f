"""The cache's folder: where it is, who may use it, and how it is kept small."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import config
from engine.compile import cache as cache_module
from engine.compile.cache import Cache, open_cache


def add(cache: Cache, key: str, data: bytes) -> Path:
    with cache.workspace() as folder:
        built = folder / "built.so"
        built.write_bytes(data)
        cache.add(built, {key: f"entry_{key}"})
    found = cache.find(key)
    assert found is not None
    return Path(found.path)


def test_found_as_added(fresh: Path) -> None:
    cache = open_cache()
    assert cache.find("a") is None
    path = add(cache, "a", b"data")
    assert path.read_bytes() == b"data"
    assert path.parent == fresh / "objects"
    assert cache.find("a").symbol == "entry_a"  # type: ignore[union-attr]


def test_folders_are_private(fresh: Path) -> None:
    previous = os.umask(0)
    try:
        path = add(open_cache(), "a", b"data")
    finally:
        os.umask(previous)
    for place in (fresh, fresh / "objects", fresh / "index", path):
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0, place


def test_a_folder_that_others_can_read_is_fine(fresh: Path) -> None:
    fresh.mkdir()
    fresh.chmod(0o755)
    assert open_cache().root == fresh


def test_a_folder_that_cannot_be_made_is_replaced_by_a_private_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "file" / "below"))
    cache = open_cache()
    assert tmp_path not in cache.root.parents
    assert stat.S_IMODE(cache.root.stat().st_mode) == 0o700
    add(cache, "a", b"data")
    assert open_cache() is cache


def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forget: Callable[[], None]
) -> None:
    one, two, three = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    monkeypatch.setenv("XDG_CACHE_HOME", str(three))
    monkeypatch.setattr(config, "cache_dir", str(two))
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(one))
    assert open_cache().root == one
    monkeypatch.delenv("ENGINE_CACHE_DIR")
    assert open_cache().root == two
    monkeypatch.setattr(config, "cache_dir", None)
    assert open_cache().root == three / "adtool" / "kernels"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_cache().root == tmp_path / ".cache" / "adtool" / "kernels"


def test_leftovers_are_removed_when_they_are_old() -> None:
    cache = open_cache()
    old, new, file = (cache.root / "tmp" / name for name in ("old", "new", "file"))
    for folder in (old, new):
        folder.mkdir()
        (folder / "kernels0.cpp").write_text("x")
    file.write_text("x")
    then = time.time() - 7200
    for path in (old, file):
        os.utime(path, (then, then))
    cache.trim()
    assert [p.name for p in (cache.root / "tmp").iterdir()] == ["new"]


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = open_cache()
    paths = {k: add(cache, k, k.encode() * 1000) for k in "abcde"}
    for age, k in enumerate("abcde"):
        then = time.time() - 1000 + age
        os.utime(paths[k], (then, then))
    cache.find("a")  # used now
    monkeypatch.setattr(config, "cache_limit_bytes", 4000)
    cache.trim()
    assert [k for k in "abcde" if cache.find(k)] == ["a", "d", "e"]
    assert len(list((cache.root / "index").iterdir())) == 3
    monkeypatch.setattr(config, "cache_limit_bytes", 0)
    add(cache, "f", b"f" * 9000)
    cache.trim()
    assert cache.find("f") is not None


def test_what_is_remembered_goes_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    cache = open_cache()
    for k in "abc":
        add(cache, k, k.encode() * 1000)
        cache.remember(f"of {k}", json.dumps({"form": {"code": k}}))
        assert cache.remembered(f"of {k}") == json.dumps({"form": {"code": k}})
    for age, k in enumerate("abc"):
        then = time.time() - 1000 + age
        os.utime(cache.root / "kernels" / f"of {k}.json", (then, then))
    (cache.root / "kernels" / "damaged.json").write_text("x")
    cache.remembered("of a")  # used now
    monkeypatch.setattr(cache_module, "_KERNELS", 3)
    cache.trim()
    assert [k for k in "abc" if cache.remembered(f"of {k}")] == ["a", "c"]
    cache.find("a")  # so is its code
    monkeypatch.setattr(config, "cache_limit_bytes", 2500)
    cache.trim()
    assert [k for k in "abc" if cache.remembered(f"of {k}")] == ["a"]
    assert cache.remembered("damaged") is None
    cache.clear()
    assert cache.remembered("of a") is None


def test_a_lock_is_not_waited_for_longer_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    naps: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 1000.0 + sum(naps), sleep=naps.append)
    monkeypatch.setattr(cache_module, "time", clock)
    cache = open_cache()
    with cache.lock("k", 10), cache.lock("other", 10):
        assert not naps
        with cache.lock("k", 0.2):
            assert sum(naps) == pytest.approx(0.2, abs=1.5 * max(naps))
            assert len(naps) > 5
    del naps[:]
    with cache.lock("k", 10):
        assert not naps
