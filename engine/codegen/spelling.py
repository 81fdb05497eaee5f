"""Names in generated text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from engine.codegen.facts import LINEAR
from engine.ir.nodes import Var
from engine.lang.types import ArrayType


def identifier(name: str) -> str:
    """Letters, digits and underscores of a Python name; other characters by their code."""
    return re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):x}_", name)


def name_of(word: str) -> str:
    """The name that an identifier stands for."""
    return re.sub(r"_u([0-9a-f]+)_", lambda m: chr(int(m[1], 16)), word)


def local(v: Var) -> str:
    # The prefix keeps clear of C++ keywords and of names that the emitter itself uses.
    return f"v_{identifier(v.name)}"


def array_type(v: Var) -> str:
    """The template parameter that stands for the C++ type of an array parameter."""
    return f"A_{identifier(v.name)}"


def template(params: Iterable[Var]) -> list[str]:
    """The line before a function with some parameters: arrays may be of any kind of view."""
    names = [f"class {array_type(p)}" for p in params if isinstance(p.type, ArrayType)]
    return [f"template <{', '.join(names)}>"] if names else []


def index_name(part: int) -> str:
    """The parameter that holds a part of the thread's index (int64)."""
    return "k" if part == LINEAR else f"k{part}"


def flag(value: bool) -> str:
    """A truth value."""
    return "true" if value else "false"
