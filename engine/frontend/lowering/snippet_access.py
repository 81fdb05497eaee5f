"""Accesses of a native snippet to its array parameters, as far as its text is certain.

The text is C++, so this errs on one side: an array counts as only read, only stored to or
only updated where every mention of it has a form that can mean nothing else, and as read
and written otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from engine.classes import dataclass

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
# With one of these, a name may stand for a reference, or an element be changed by name.
_OPAQUE = frozenset(("#", "class", "decltype", "struct", "template", "typedef", "union", "using"))
_BINARY = frozenset(
    ["+", "-", "*", "/", "%", "|", "^", "<", ">", "<=", ">=", "==", "!=", "&&", "||", "<<",
     ">>", "!", "~"]
)  # fmt: skip
_COMPOUND = frozenset(["+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="])
_TYPES = frozenset(
    ["auto", "bool", "char", "double", "float", "half", "int", "int16_t", "int32_t",
     "int64_t", "int8_t", "long", "short", "signed", "size_t", "uint16_t", "uint32_t",
     "uint64_t", "uint8_t", "unsigned"]
)  # fmt: skip
# Functions (and words like them) that take values, or leave what they are given as it is.
_CALLS = frozenset(
    ["abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "atomicMax",
     "atomicMin", "atomic_max", "atomic_min", "cbrt", "ceil", "clamp", "copysign", "cos",
     "cosh", "cross", "dot", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fma",
     "fmax", "fmin", "fmod", "for", "hypot", "if", "isfinite", "isinf", "isnan", "length",
     "load", "log", "log10", "log1p", "log2", "max", "min", "normalize", "outer", "pow",
     "printf", "return", "rint", "round", "rsqrt", "sign", "sin", "sinh", "sizeof", "sqrt",
     "switch", "tan", "tanh", "transpose", "trunc", "while"]
)  # fmt: skip
_VALUES = _CALLS | _TYPES | _UPDATES


_STATE = frozenset(("static", "extern", "thread_local", "asm", "__asm__", "volatile", "new"))


@dataclass(frozen=True, slots=True)
class Access:
    """Names of array parameters by what happens to their elements.

    pure: the text keeps no state, and calls nothing that may.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    updates: frozenset[str]
    pure: bool


def access(text: str, arrays: Iterable[str]) -> Access:
    """The accesses of a snippet to its array parameters."""
    tokens = [t for t in _TOKEN.findall(text) if not t.startswith(("//", "/*", '"', "'"))]
    arrays = tuple(arrays)
    tokens, loose = _fields_joined(tokens, arrays)
    known = {*arrays, "else", "auto", "shape"}
    reads: set[str] = set()
    writes: set[str] = set()
    updates: set[str] = set()
    # A function inside the snippet may take elements by reference.
    opaque = any(a == "]" and b in ("(", "{") for a, b in pairwise(tokens))
    opaque = opaque or not _OPAQUE.isdisjoint(tokens)
    for name in arrays:
        kinds = {_kind(tokens, k) for k, t in enumerate(tokens) if t == name}
        if (opaque and kinds) or name.partition(".")[0] in loose:
            kinds = {"any"}
        if kinds & {"read", "any"}:
            reads.add(name)
        if kinds & {"store", "any"}:
            writes.add(name)
        if kinds & {"update"}:
            updates.add(name)
    pure = (
        not opaque
        and _STATE.isdisjoint(tokens)
        and all(
            b != "(" or not a.isidentifier() or a in _VALUES or a in known
            for a, b in pairwise(tokens)
        )
    )
    return Access(frozenset(reads), frozenset(writes), frozenset(updates), pure)


def _fields_joined(tokens: Sequence[str], arrays: Sequence[str]) -> tuple[list[str], set[str]]:
    """The tokens with fields of structs as one each: `s.a`; and structs named by themselves.

    arrays: those that are fields have such names.
    """
    roots = {a.partition(".")[0] for a in arrays if "." in a}
    out: list[str] = []
    loose: set[str] = set()
    k = 0
    while k < len(tokens):
        name = tokens[k]
        k += 1
        if name in roots and _at(out, len(out) - 1) not in (".", "->", "::"):
            root = name
            while name not in arrays and _at(tokens, k) == "." and k + 1 < len(tokens):
                name += f".{tokens[k + 1]}"
                k += 2
            if name == root or any(a.startswith(f"{name}.") for a in arrays):
                loose.add(root)
        out.append(name)
    return out, loose


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
    if follows in (".", "->"):
        return "any"
    return "read" if _is_value(tokens, k, end) else "any"


def _is_value(tokens: Sequence[str], k: int, end: int) -> bool:
    """Whether the tokens from k to `end` can only be read: no name is bound to them."""
    while True:
        before, follows = _at(tokens, k - 1), _at(tokens, end)
        if before in ("&", "++", "--") or follows in ("=", "++", "--", ".", "->") or (
            follows in _COMPOUND
        ):  # fmt: skip
            return False
        if follows in _BINARY or follows in ("&", "?") or before in _BINARY or before in _COMPOUND:
            return True
        if before == "=":
            return _at(tokens, k - 3) not in ("&", "&&")
        if before == "return" or (before in (";", "{", "}", "") and follows == ";"):
            return True
        if before == ")":  # a cast
            return _at(tokens, k - 2) in _TYPES and _at(tokens, k - 3) == "("
        opening = _enclosing(tokens, k)
        if opening is None:  # of a whole statement: what it is bound to stands at its begin
            return not _declares_reference(tokens, k)
        if tokens[opening] == "[":
            return True
        name = _at(tokens, opening - 1)
        if tokens[opening] == "{":
            return False
        if name.isidentifier():
            return name in _VALUES
        closing = _skipped(tokens, opening)
        if closing is None:
            return False
        k, end = opening, closing


def _enclosing(tokens: Sequence[str], k: int) -> int | None:
    """The bracket that is open at a token, in its statement."""
    depth = 0
    for at in range(k - 1, -1, -1):
        t = tokens[at]
        if t in (")", "]", "}"):
            depth += 1
        elif t in ("(", "[", "{"):
            if depth == 0:
                return (
                    None
                    if t == "{" and _at(tokens, at - 1) in (")", ";", "{", "}", "else", "")
                    else at
                )
            depth -= 1
        elif t == ";" and depth == 0 and not _in_parentheses(tokens, at):
            return None
    return None


def _in_parentheses(tokens: Sequence[str], k: int) -> bool:
    """Whether a semicolon is one of a `for`."""
    return sum((t == "(") - (t == ")") for t in tokens[:k]) > 0


def _declares_reference(tokens: Sequence[str], k: int) -> bool:
    """Whether the statement of a token begins with the declaration of a reference."""
    begin = max((at for at in range(k) if tokens[at] in (";", "{", "}")), default=-1) + 1
    words = list(tokens[begin:k])
    return any(a in ("&", "&&") and b.isidentifier() and c in ("=", "(", "{")
               for a, b, c in zip(words, words[1:], words[2:], strict=False))  # fmt: skip


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
