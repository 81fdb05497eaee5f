"""Patterns of paths: `*` and `?` within a name, `[...]`, and `**` for any number of folders.

What a pattern costs is bounded by its length times that of the path, whatever stars it has.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache

_ANY = "**"
_DEEP = re.compile(r"(?:(?<=/)|^)(?:\*\*/+)+(?=\*\*/)")


def fits(path: str, pattern: str, folder: str) -> bool:
    """Whether a file's path fits a pattern that is written as seen from a folder.

    A pattern without a `/` fits the name of the file, or of a folder that it is in, at or below
    `folder`. Any other one fits the path as a whole; one that ends with `/` all in that folder.
    """
    absolute = os.path.abspath(path)
    below = os.path.relpath(absolute, folder).replace(os.sep, "/")
    if "/" not in pattern:
        inside = not below.startswith("../")
        names = below.split("/") if inside else [os.path.basename(absolute)]
        return any(_name_fits(n, _parts(pattern)) for n in names)
    if pattern.startswith("./"):
        pattern = pattern[2:]
    if pattern.endswith("/"):
        pattern += _ANY
    whole = absolute.replace(os.sep, "/") if os.path.isabs(pattern) else below
    return _path_fits(whole.split("/"), pattern.split("/"))


def plain(pattern: str) -> str:
    """The same pattern for `glob.glob`, which takes each `**/` of a row for a search of its own."""
    return _DEEP.sub("", pattern)


def _path_fits(names: list[str], pattern: list[str]) -> bool:
    """Whether names one after another fit the words of a pattern, the last one too.

    `**` stands for any number of names; at the end, for one at least.
    """
    reached = {0}  # how many names what was looked at so far can stand for
    for number, word in enumerate(pattern, 1):
        if word == _ANY:
            least = min(reached)
            reached = set(range(least + (number == len(pattern)), len(names) + 1))
        else:
            parts = _parts(word)
            reached = {n + 1 for n in reached if n < len(names) and _name_fits(names[n], parts)}
        if not reached:
            return False
    return len(names) in reached


# One sign of a pattern: a star, or what a single character has to be.
_Part = re.Pattern[str] | str | None
_STAR = None
_ONE = ""


def _name_fits(name: str, parts: tuple[_Part, ...]) -> bool:
    """Whether a name fits. What comes after a star is tried further on, and no star before it is
    looked at again: if a later start of that one helped, this one would have found it.
    """
    at = here = 0
    star, begun = -1, 0
    while at < len(name):
        if here < len(parts) and parts[here] is _STAR:
            star, begun = here, at
            here += 1
        elif here < len(parts) and _is(name[at], parts[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            begun += 1
            at, here = begun, star + 1
        else:
            return False
    return all(part is _STAR for part in parts[here:])


def _is(character: str, part: _Part) -> bool:
    if isinstance(part, re.Pattern):
        return part.fullmatch(character) is not None
    return part in (_ONE, character)


@lru_cache(maxsize=256)
def _parts(word: str) -> tuple[_Part, ...]:
    """What a pattern of one name consists of."""
    out: list[_Part] = []
    at = 0
    while at < len(word):
        sign, at = word[at], at + 1
        if sign == "*":
            if not out or out[-1] is not _STAR:
                out.append(_STAR)
        elif sign == "?":
            out.append(_ONE)
        elif sign == "[" and (end := word.find("]", at + 1)) > 0:
            inner, at = word[at:end], end + 1
            no = inner.startswith("!")
            inner = re.sub(r"([\\^\[&~|])", r"\\\1", inner[no:])
            try:
                out.append(re.compile(f"[{'^' * no}{inner}]", re.DOTALL))
            except re.error:  # a range that goes backwards: the pattern means itself
                return tuple(word)
        else:
            out.append(sign)
    return tuple(out)
