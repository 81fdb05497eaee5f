"""What a native snippet does to its array parameters, as far as its text tells for sure.

The text is C++, so this errs on one side: an array counts as only read, only stored to or
only updated where every mention of it has a form that can mean nothing else, and as read
and written otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"
    r"|[A-Za-z_]\w*|\.?\d[\w.]*|->|\+\+|--|<<=|>>=|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\S",
    re.DOTALL,
)
_UPDATES = frozenset(
    f"{name}{kind}"
    for name, kinds in (("atomic_", ("add", "sub")), ("atomic", ("Add", "Sub")))
    for kind in kinds
)
_OPEN = {"[": "]", "(": ")"}


@dataclass(frozen=True, slots=True)
class Access:
    """Names of array parameters by what happens to their elements."""

    reads: frozenset[str]
    writes: frozenset[str]
    updates: frozenset[str]


def access(text: str, arrays: Iterable[str]) -> Access:
    """The accesses of a snippet to its array parameters."""
    tokens = [t for t in _TOKEN.findall(text) if not t.startswith(("//", "/*", '"', "'"))]
    reads: set[str] = set()
    writes: set[str] = set()
    updates: set[str] = set()
    # A function inside the snippet may take elements by reference.
    opaque = any(a == "]" and b in ("(", "{") for a, b in pairwise(tokens)) or ("#" in tokens)
    for name in arrays:
        kinds = {_kind(tokens, k) for k, t in enumerate(tokens) if t == name}
        if opaque and kinds:
            kinds = {"any"}
        if kinds & {"read", "any"}:
            reads.add(name)
        if kinds & {"store", "any"}:
            writes.add(name)
        if kinds & {"update"}:
            updates.add(name)
    return Access(frozenset(reads), frozenset(writes), frozenset(updates))


def _at(tokens: Sequence[str], k: int) -> str:
    return tokens[k] if 0 <= k < len(tokens) else ""


def _kind(tokens: Sequence[str], k: int) -> str:
    """What one mention of an array is: `read`, `store`, `update`, `none` or `any`."""
    before, after = _at(tokens, k - 1), _at(tokens, k + 1)
    if before in (".", "->", "::"):
        return "none"  # the name of something else
    if after == "." and _at(tokens, k + 2) == "shape":
        return "none"
    if before == "(" and _at(tokens, k - 2) in _UPDATES:
        return "update"
    if before == "(" and _at(tokens, k - 2) == "load" and after == ",":
        return "read"
    if after not in _OPEN:
        return "any"
    end = _skipped(tokens, k + 1)
    if end is None or before in ("&", "++", "--") or _binds(tokens, k):
        return "any"
    follows = _at(tokens, end)
    if follows == "=":
        return "store"
    if follows in ("+=", "-="):
        return "update"
    if follows in ("++", "--", ".", "->") or (len(follows) > 1 and follows.endswith("=")):
        return "read" if follows in ("==", "!=", "<=", ">=") else "any"
    return "read"


def _skipped(tokens: Sequence[str], k: int) -> int | None:
    """The token after subscripts, index lists and components: `[i][j]`, `(i, j)`, `.c[0]`."""
    while _at(tokens, k) in _OPEN or (_at(tokens, k) == "." and _at(tokens, k + 1) == "c"):
        if tokens[k] == ".":
            k += 2
            continue
        depth = 0
        while k < len(tokens):
            depth += (tokens[k] in "[(") - (tokens[k] in "])")
            k += 1
            if depth == 0:
                break
        else:
            return None
    return k


def _binds(tokens: Sequence[str], k: int) -> bool:
    """Whether the mention is what a reference or pointer is bound to: `float& r = a[i];`."""
    return _at(tokens, k - 1) in ("=", "{", "(") and _at(tokens, k - 3) in ("&", "&&")
