"""Patterns of paths."""

from __future__ import annotations

import pytest

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
