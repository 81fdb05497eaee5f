"""Names in generated text."""

from __future__ import annotations

import re

from engine.codegen.facts import LINEAR
from engine.ir.nodes import Var


def identifier(name: str) -> str:
    """Letters, digits and underscores of a Python name; other characters by their code."""
    return re.sub(r"[^A-Za-z0-9_]", lambda m: f"_u{ord(m[0]):x}_", name)


def local(v: Var) -> str:
    # The prefix keeps clear of C++ keywords and of names that the emitter itself uses.
    return f"v_{identifier(v.name)}"


def index_name(part: int) -> str:
    """The parameter that holds a part of the thread's index (int64)."""
    return "k" if part == LINEAR else f"k{part}"
