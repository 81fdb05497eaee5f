"""Messages of a kernel: their text and values, for the interpreter and the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.ir import nodes as n
from engine.lang.types import ArrayType, ScalarType, Type, scalar_of

# Called with each message, the index of its thread (None where it has none) and its values.
Listener = Callable[[n.Message, int | None, Sequence[Any]], None]


def messages_of(fn: n.Function) -> tuple[n.Message, ...]:
    """The messages of a function and what it calls, in the order in which code is generated."""
    every = (s for f in (*n.callees(fn), fn) for s in n.walk(f.body))
    return tuple(s for s in every if isinstance(s, n.Message))


def text_of(message: n.Message, values: Sequence[Any]) -> str:
    """The whole text. values: of `message.args`, as NumPy holds them."""
    out = [message.pieces[0]]
    for piece, form, value, a in zip(
        message.pieces[1:], message.formats, values, message.args, strict=True
    ):
        out += [_shown(form, value, a.type), piece]
    return "".join(out)


def _shown(form: str, value: Any, t: Type) -> str:
    if form.startswith("%"):
        return str(form % _number(value, t))
    if form.startswith(":"):
        data = np.asarray(value)
        parts = [format(_number(x, scalar_of(t)), form[1:]) for x in data.ravel()]
        return _rows(parts, data.shape)
    data = np.asarray(value)
    return _rows([plain(_number(x, scalar_of(t))) for x in data.ravel()], data.shape)


def plain(value: Any) -> str:
    """A number as `print` shows it: up to six digits of a float."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rows(parts: Sequence[str], shape: tuple[int, ...]) -> str:
    """Components beside each other, rows of a matrix below each other."""
    if len(shape) < 2:
        return " ".join(parts)
    rows = [" ".join(parts[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])]
    return "\n".join(rows)


def _number(value: Any, t: Type) -> Any:
    """A Python number of the kind that the type has."""
    assert not isinstance(t, ArrayType)
    kind = t.kind if isinstance(t, ScalarType) else "f"
    return bool(value) if kind == "b" else float(value) if kind == "f" else int(value)
