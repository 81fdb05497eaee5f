"""Compiler errors of native snippets, reported at their `@func_native`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from engine.codegen.snippets import BEGIN, END
from engine.diagnostics import Diagnostic
from engine.ir import nodes as n


def snippet_errors(
    said: str, source: str, text: str, kernels: Iterable[n.Function], log: str
) -> list[Diagnostic]:
    """One E304 for each snippet that the compiler found an error in, in order.

    said: its words. source: the name of the file that it compiled, and text its content.
    log: where both are kept.
    """
    functions = {
        f.name: f for k in kernels for f in n.callees(k) if f.native is not None
    }  # fmt: skip
    lines = text.splitlines()
    out: dict[str, Diagnostic] = {}
    for at, message in _compiler_errors(said, source):
        found = _snippet_at(lines, at)
        if found is None or found[0] in out or found[0] not in functions:
            continue
        name, line = found
        out[name] = Diagnostic(
            "E304",
            f"the C++ compiler refuses the snippet of `{name}`: {message}",
            functions[name].span,
            f"correct line {line} of the snippet: `{lines[at - 1].strip()}`",
            (f"its output, the command and the source are in {log}",),
        )
    return list(out.values())


def _compiler_errors(said: str, source: str) -> Iterator[tuple[int, str]]:
    """Line in the compiled file, and message, of each error."""
    # `FILE:LINE:COLUMN: error: ...` as GCC and clang write, `FILE(LINE): error: ...` as NVRTC.
    place = r"(?::(\d+):(?:\d+:)?|\((\d+)\):)"
    where = re.compile(rf"^{re.escape(source)}{place} (?:fatal )?error: (.*)$", re.M)
    for match in where.finditer(said):
        yield int(match[1] or match[2]), match[3].strip()
    # What goes wrong inside of a header's template is told with the line that led there.
    required = re.compile(rf"^{re.escape(source)}:(\d+):(?:\d+:)?\s+required from here$", re.M)
    first = re.search(r"error: (.*)$", said, re.M)
    for match in required.finditer(said):
        yield int(match[1]), first[1].strip() if first else "it does not compile"


def _snippet_at(lines: list[str], at: int) -> tuple[str, int] | None:
    """The snippet around a line (counted from 1), and the line's number in it."""
    for k in range(min(at, len(lines)) - 1, -1, -1):
        if lines[k] == END and k != at - 1:
            return None
        if lines[k].startswith(BEGIN):
            return lines[k][len(BEGIN) :], max(1, at - 1 - k)
    return None
