"""Messages of kernels, printed after the launch; failed tests are raised."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from engine import config
from engine.classes import dataclass
from engine.codegen.layout import arg_bytes
from engine.compile.backend import Entry
from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.ir.messages import text_of
from engine.ir.nodes import Message
from engine.lang.types import INT32, Type, scalar_of, shape_of


@dataclass(frozen=True, slots=True)
class Failure:
    """A test in a kernel that failed: its message, the thread's linear index, the text."""

    message: Message
    thread: int
    text: str


def tell(entry: Entry, output: bytes) -> list[Failure]:
    """Prints the messages of a launch to Python's standard output; gives the failed tests."""
    failures = []
    for message, thread, values in _decoded(entry, output):
        text = text_of(message, values)
        if message.kind != "print":
            failures.append(Failure(message, thread, text))
        sys.stdout.write(text)
    return failures


def _decoded(entry: Entry, data: bytes) -> Iterator[tuple[Message, int, list[Any]]]:
    at = 0

    def take(t: Type) -> Any:
        nonlocal at
        shape = shape_of(t)  # type: ignore[arg-type]
        value = np.frombuffer(data, scalar_of(t).numpy, math.prod(shape), at).reshape(shape)
        at += arg_bytes(t)
        return value

    while at < len(data):
        number = int.from_bytes(data[at : at + 8], sys.byteorder)
        at += 8
        message = entry.messages[number]
        thread = -1 if message.thread is None else int(take(INT32))
        yield message, thread, [take(a.type) for a in message.args]


def raise_failures(entry: Entry, dim: tuple[int, ...], failures: list[Failure]) -> None:
    """Raises LaunchError (E210) for a failed assertion, or expectation if so configured."""
    # On a GPU, others go on: several threads may end so.
    ends = [f for f in failures if f.message.kind == "assert"]
    if not failures or (not ends and config.expect == "print"):
        return
    asserted = bool(ends)
    first = ends[0] if asserted else failures[0]
    name = entry.symbol.rpartition("_")[0]  # the rest is a hash
    what = "an assertion failed" if asserted else "an expectation failed"
    more = len(ends if asserted else failures) - 1
    words = [line.strip() for line in first.text.splitlines() if line.strip()]
    words[0] = words[0].removeprefix("Error, ").rstrip(":")
    notes = [
        f"thread {_place(first.thread, dim)} of a grid of {dim if len(dim) > 1 else dim[0]}",
        "; ".join(words),
        *([f"{more} more failed in the same launch"] if more else []),
    ]
    site = call_span()
    if site is not None:
        notes.append(f"launched at {site}")
    help_text = (
        "threads after this one may not have run"
        if asserted
        else 'the launch ran to its end; set `config.expect = "print"` to print instead of raising'
    )
    raise LaunchError(
        Diagnostic("E210", f"kernel {name!r}: {what}", first.message.span, help_text, tuple(notes))
    )


def _place(thread: int, dim: tuple[int, ...]) -> str:
    at = tuple(int(i) for i in np.unravel_index(thread, dim))
    return str(at if len(at) > 1 else thread)
