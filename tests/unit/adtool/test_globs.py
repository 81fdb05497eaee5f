"""Patterns of paths."""

from __future__ import annotations

import glob
import itertools
from pathlib import Path
from typing import Any

import pytest

from adtool import globs
from adtool.globs import fits


@pytest.mark.parametrize(
    ("path", "pattern", "yes"),
    [
        ("/p/a/b.py", "a/*.py", True),
        ("/p/a/c/b.py", "a/*.py", False),
        ("/p/a/c/b.py", "a/**/*.py", True),
        ("/p/a/b.py", "a/**/*.py", True),
        ("/p/a/c/b.py", "a/**", True),
        ("/p/ab/c.py", "a/**", False),
        ("/p/a/c/b.py", "a/", True),
        ("/p/a/b.py", "**/b.py", True),
        ("/p/b.py", "**/b.py", True),
        ("/p/a/b.py", "./a/b.py", True),
        ("/p/a/b.py", "b.py", True),
        ("/p/a/b.py", "a", True),
        ("/p/a/b.py", "p", False),  # the folder itself and those above have no say
        ("/q/p/b.py", "q", False),
        ("/q/b.py", "b.*", True),
        ("/p/a1.py", "a[0-3].py", True),
        ("/p/a1.py", "a[!0-3].py", False),
        ("/p/a[.py", "a[.py", True),
        ("/p/a/b.py", "/p/a/*", True),
        ("/p/a.py", "a[z-a].py", False),
        ("/p/axpy", "a.py", False),
    ],
)
def test_fits(path: str, pattern: str, yes: bool) -> None:
    assert fits(path, pattern, "/p") is yes


@pytest.mark.parametrize(
    ("path", "pattern", "yes"),
    [
        ("/p/a/", "a/**", False),
        ("/p/a", "a/**", False),
        ("/p/a/b", "**", True),
        ("/p/a/b/c", "**/**/c", True),
        ("/p/a/b/c", "a/**/b/**/c", True),
        ("/p/a/b/c", "a/**/c/**", False),
        ("/p/a/b", "a/[!c/]b", False),
        ("/p/a/x]", "a/x[]]", True),
        ("/p/a/^", "a/[^]", True),
        ("/p/a/b", "a/[^b]", True),
        ("/p/a/aab", "a/*a?", True),
        ("/p/a/abab", "a/*ab", True),
        ("/p/a/ab", "a/**b", True),
        ("/p/a/[z-a]", "a/[z-a]", True),
    ],
)
def test_fits_by_segment(path: str, pattern: str, yes: bool) -> None:
    assert fits(path, pattern, "/p") is yes


def slow(path: str, pattern: str) -> bool:
    """What patterns mean, tried in all ways."""
    if not pattern:
        return not path
    first = path[:1]
    if pattern[0] == "*":
        return slow(path, pattern[1:]) or (first not in ("", "/") and slow(path[1:], pattern))
    return first == pattern[0] and slow(path[1:], pattern[1:])


def test_stars_are_tried_in_all_ways() -> None:
    words = ["".join(w) for n in range(1, 6) for w in itertools.product("a*b", repeat=n)]
    names = ["".join(w) for n in range(1, 6) for w in itertools.product("ab", repeat=n)]
    for word in words:
        for name in names:
            wanted = slow(name, word)
            assert fits(f"/p/{name}", f"./{word}", "/p") is wanted, (name, word)


def test_many_stars_and_folders_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each single comparison is counted."""
    steps = 0
    real = globs._is

    def counted(character: str, part: Any) -> bool:
        nonlocal steps
        steps += 1
        return real(character, part)

    monkeypatch.setattr(globs, "_is", counted)
    assert not fits("/p/" + "a" * 200, "*a" * 100 + "b", "/p")
    assert fits("/p/" + "a" * 200 + "b", "*a" * 100 + "b", "/p")
    deep = "/p/" + "a/" * 60 + "c.py"
    for pattern, yes in (
        ("**/" * 60 + "b.py", False),
        ("**/" * 60 + "c.py", True),
        ("**/a/" * 30 + "b.py", False),
        ("**/*a*/" * 30 + "c.py", True),
    ):
        assert fits(deep, pattern, "/p") is yes
    assert steps < 200_000


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("**/**/**/*.py", "**/*.py"), ("a/**/**/b", "a/**/b"), ("a**/**/b", "a**/**/b"),
        ("**/a/**/b", "**/a/**/b"), ("**//**/a", "**/a"), ("**/**", "**/**"),
    ],
)  # fmt: skip
def test_folders_in_a_row_are_one(pattern: str, wanted: str, tmp_path: Path) -> None:
    assert globs.plain(pattern) == wanted
    (tmp_path / "a/b/c").mkdir(parents=True)
    (tmp_path / "a/b/c/x.py").touch()
    found, same = (sorted(set(glob.glob(p, root_dir=tmp_path, recursive=True)))
                   for p in (pattern, wanted))  # fmt: skip
    assert [f.replace("//", "/") for f in found] == same
