"""Files that other users may have written are not loaded: every kind, in every place of a cache.

docs/cache.md makes the promises, `engine/private.py` keeps them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import engine as wp
from engine import config
from engine.compile import cache as cache_module
from engine.compile.cache import Cache, open_cache
from engine.compile.cpu import precompiled, toolchain
from engine.diagnostics import CompilerError
from engine.hashing import hashed
from engine.private import read_own
from tests.planted import FOLDERS, KINDS, OTHER

HEADER = "headers/{0}.h"


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    """Nothing may wait, and files are made as users have them; what was told is told again."""

    def late(*_: object) -> None:
        raise AssertionError("this takes too long")

    before, mask = signal.signal(signal.SIGALRM, late), os.umask(0o022)
    signal.alarm(60)
    cache_module._told.clear()
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    os.umask(mask)


@contextlib.contextmanager
def told(words: str | None, count: int = 1) -> Iterator[None]:
    """Something that is said once, in these words, with what to do; nothing where words is None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    said = [str(w.message) for w in caught]
    assert len(said) == (0 if words is None else count), said
    for text in said:
        assert words is not None and words in text
        assert "rm -rf" in text and "chmod" not in text


# ---- each place that is read, by itself


def _object(cache: Cache) -> Path:
    return Path(cache.find("k").path)  # type: ignore[union-attr]


def _header(cache: Cache) -> Path:
    return precompiled._header(cache, toolchain.find_toolchain())


def _gch(cache: Cache) -> Path:
    return Path(f"{_header(cache)}.gch")


def _parsed(cache: Cache) -> object:
    precompiled._parsed.whole.clear()
    return precompiled.find(cache, toolchain.find_toolchain())


def _locked(cache: Cache) -> object:
    with cache.lock("k", 30):
        return None


# By folder of the cache: which file of it, and what reads it (None: it was not taken).
PLACES: dict[str, tuple[Callable[[Cache], Path], Callable[[Cache], object]]] = {
    "index": (lambda cache: cache.root / "index" / "k.json", lambda cache: cache.find("k")),
    "objects": (_object, lambda cache: cache.find("k")),
    "kernels": (lambda cache: cache.root / "kernels" / "k.json", lambda c: c.remembered("k")),
    "notes": (lambda cache: cache.root / "notes" / "k.json", lambda cache: cache.noted("k")),
    "headers": (_gch, _parsed),
    "headers' text": (_header, _parsed),
    "locks": (lambda cache: cache.root / "locks" / "k", _locked),
}
# What is in no place above: the compiler's words, which only users read; builds under way, whose
# folders are made anew.
_UNREAD = {"failed", "tmp"}


def test_all_folders_are_in_the_table() -> None:
    assert {place.split("'")[0] for place in PLACES} | _UNREAD == set(cache_module._FOLDERS)


def _filled() -> Cache:
    cache = open_cache()
    with cache.workspace() as folder:
        (folder / "k.so").write_bytes(b"an object")
        cache.add(folder / "k.so", {"k": "entry_k"})
    cache.remember("k", "a kernel")
    cache.note("k", "some words")
    with cache.lock("k", 1):
        pass
    header = _header(cache)
    for path, data in ((header, precompiled._text().encode()), (_gch(cache), b"parsed")):
        path.write_bytes(data)
    cache.note(header.stem, hashed(b"parsed").hexdigest())
    return cache


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_others_may_have_written_is_not_read(place: str, kind: str) -> None:
    cache = _filled()
    if place.startswith("headers") and not toolchain.find_toolchain().precompiles:
        pytest.skip("this compiler keeps no headers")
    where, reads = PLACES[place]
    path = where(cache)
    assert place == "locks" or reads(cache) is not None  # as it is without
    plant, words = KINDS[kind]
    if place == "locks" and kind in ("empty", "cut short"):
        pytest.skip("a lock is empty")
    plant(path)
    with told(words):
        assert reads(cache) is None
        assert reads(cache) is None  # said once
    with told(None):
        cache.trim()  # reads, too


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_compiled_anew(
    fresh: Path, forget: Callable[[], None], counted: Callable[[], int], kind: str
) -> None:
    _run()
    before = counted()
    plant, words = KINDS[kind]
    for place in ("index", "objects", "kernels", "notes", "locks"):
        for path in (fresh / place).iterdir():
            if path.is_file() and not path.name.endswith(".moved"):
                plant(path)
    forget()
    with told(words):
        _run()
    assert counted() > before
    before = counted()
    forget()
    with told(None):  # what was not trusted was replaced
        _run()
    assert counted() == before


def _run() -> None:
    @wp.kernel
    def tripled(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        i = wp.tid()
        y[i] = 3.0 * x[i]

    y = wp.zeros(2, dtype=float)
    wp.launch(tripled, 2, [wp.array([1.0, 2.0], dtype=float), y])
    np.testing.assert_array_equal(y.numpy(), [3.0, 6.0])


# ---- an object that says so when it is loaded


@pytest.fixture
def planted(fresh: Path, tmp_path: Path) -> Path:
    """A cache whose kernel is an object that makes a file when it is loaded. Gives that file."""
    _run()
    mark, source, made = (tmp_path / name for name in ("ran", "evil.cpp", "evil.so"))
    source.write_text(
        "#include <fcntl.h>\n__attribute__((constructor)) static void f() "
        f'{{ open("{mark}", O_CREAT | O_WRONLY, 0600); }}'
    )
    command = toolchain.find_toolchain().command
    subprocess.run([*command, "-shared", "-fPIC", "-o", made, source], check=True)
    cache = open_cache()
    symbols = {p.stem: json.loads(p.read_text())["symbol"] for p in (fresh / "index").iterdir()}
    for path in (fresh / "objects").iterdir():
        path.unlink()
    cache.add(made, symbols)
    return mark


def test_the_object_is_run_where_all_is_trusted(planted: Path, forget: Callable[[], None]) -> None:
    forget()
    _run()
    assert planted.exists()


def test_so_it_is_below_a_sticky_folder(
    planted: Path, fresh: Path, forget: Callable[[], None]
) -> None:
    fresh.parent.chmod(0o1777)
    forget()
    _run()
    assert planted.exists()


def _objects_not_its_name(plant: Callable[[Path], None]) -> Callable[[Path], None]:
    def to_all(fresh: Path) -> None:
        for path in list((fresh / "objects").iterdir()):
            plant(path)

    return to_all


def _above(plant: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda fresh: plant(fresh.parent)


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {}
for _kind in ("of another user", "its group may write", "all may write", "a link"):
    _plant, _words = KINDS[_kind]
    WAYS[f"the object: {_kind}"] = (_objects_not_its_name(_plant), _words)
for _kind, (_plant, _words) in FOLDERS.items():
    for _place in ("objects", "index", "kernels", "tmp"):
        WAYS[f"{_place}: {_kind}"] = (lambda f, n=_place, p=_plant: p(f / n), _words)  # type: ignore[misc]
    if not _kind.startswith("a "):  # which is made a folder, or no cache
        WAYS[f"the cache: {_kind}"] = (_plant, _words)
for _kind in ("of another user", "all may write"):
    WAYS[f"above it: {_kind}"] = (_above(FOLDERS[_kind][0]), FOLDERS[_kind][1])


@pytest.mark.parametrize("way", WAYS)
def test_the_object_is_not_run(
    planted: Path, fresh: Path, forget: Callable[[], None], way: str
) -> None:
    plant, words = WAYS[way]
    plant(fresh)
    forget()
    with told(words):
        _run()
    assert not planted.exists()
    with told(None):
        forget()
        _run()
    assert not planted.exists()


def test_links_on_the_way_are_followed_where_they_are_the_users_own(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir(0o755)
    (tmp_path / "way").symlink_to("elsewhere")
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "way" / ".." / "way" / "kernels"))
    assert open_cache().root == tmp_path / "elsewhere" / "kernels"
    if os.geteuid() == 0:
        os.chown(tmp_path / "way", OTHER, -1, follow_symlinks=False)
        cache_module._open.cache_clear()
        with told("is a link of another user"):
            assert open_cache().root != tmp_path / "elsewhere" / "kernels"


def test_links_in_a_circle_are_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "way").symlink_to("way")
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(tmp_path / "way"))
    assert tmp_path not in open_cache().root.parents


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give groups away")
def test_a_group_of_ones_own_is_nobody_else(fresh: Path) -> None:
    """Many systems give each user a group, which may write to what the user makes."""
    above = fresh.parent
    above.chmod(0o775)
    assert open_cache().root == fresh
    os.chown(above, -1, OTHER)
    cache_module._open.cache_clear()
    with told("can be written by other users"):
        assert open_cache().root != fresh


def test_what_is_made_is_private_whatever_the_umask(fresh: Path, tmp_path: Path) -> None:
    os.umask(0)
    chosen = tmp_path / "some" / "where" / "kernels"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ENGINE_CACHE_DIR", str(chosen))
        _filled()
    paths = [tmp_path / "some", tmp_path / "some" / "where", chosen, *chosen.iterdir()]
    assert [p for p in paths if p.stat().st_mode & 0o077] == []


def test_parsed_headers_are_private_whatever_the_umask(
    fresh: Path, forget: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not toolchain.find_toolchain().precompiles:
        pytest.skip("this compiler keeps no headers")
    os.umask(0)
    monkeypatch.setattr(precompiled, "_WORTH", 0)
    precompiled._parsed.given_up.clear()
    _run()
    found = [*(fresh / "headers").iterdir()]
    assert len(found) == 2 and [p for p in found if p.stat().st_mode & 0o077] == []
    forget()
    precompiled._parsed.whole.clear()
    assert precompiled.find(open_cache(), toolchain.find_toolchain()) is not None


def test_where_no_folder_is_private_nothing_is_compiled(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o777)
    monkeypatch.setenv("ENGINE_CACHE_DIR", str(public / "kernels"))
    monkeypatch.setattr("tempfile.tempdir", str(public))
    with told("can be written by other users"), pytest.raises(CompilerError) as caught:
        open_cache()
    (d,) = caught.value.diagnostics
    assert d.code == "E303" and str(public) in d.message and "TMPDIR" in d.help


def test_what_is_not_used_is_not_cleared(fresh: Path) -> None:
    add = _filled().root / "index" / "k.json"
    fresh.chmod(0o777)
    cache_module._open.cache_clear()
    with told("can be written by other users"):
        wp.clear_kernel_cache()
    assert add.exists()


def test_what_would_be_too_large_to_be_read_is_not_kept(fresh: Path) -> None:
    with pytest.raises(OSError, match="too large"):
        open_cache().note("k", "x" * (cache_module.LIMITS["notes"] + 1))
    assert [*(fresh / "notes").iterdir()] == []


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "grows"
    path.write_bytes(b"x" * 100)
    sizes = iter([100, 50, 0])
    with pytest.MonkeyPatch.context() as patch:
        read = os.read
        patch.setattr(os, "read", lambda file, n: read(file, min(n, next(sizes) or n)))
        assert read_own(str(path), 100) == b"x" * 100
    assert config.cache_limit_bytes > 0
