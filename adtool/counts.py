"""Numbers with their nouns, for sentences: the one place where plurals are made."""

from __future__ import annotations

_SIBILANTS = ("s", "x", "z", "ch", "sh")


def plural(word: str) -> str:
    """The plural of an English noun, by the rules of spelling: `launch` to `launches`."""
    if word.endswith(_SIBILANTS):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}s"


def counted(number: int, word: str, words: str = "") -> str:
    """`1 launch`, `2 launches`, `12,000 launches`. words: the plural where it has no rule."""
    return f"{number:,} {word if number == 1 else words or plural(word)}"


def more(number: int, word: str, words: str = "") -> str:
    """`1 more row`, `2 more rows`."""
    return f"{number:,} more {word if number == 1 else words or plural(word)}"


def was(number: int) -> str:
    """The verb after a number with its noun: `1 launch was`, `2 launches were`."""
    return "was" if number == 1 else "were"
