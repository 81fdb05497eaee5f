"""Prints IR as text: deterministic, one statement a line."""

from __future__ import annotations

from engine.diagnostics import UNKNOWN, Span
from engine.ir import nodes as n

Located = list[tuple[str, Span]]  # lines of text, each with the place that it comes from


def _block(block: n.Block, depth: int, out: Located) -> None:
    pad = "  " * depth
    for s in block:
        head, *rest = s.text()
        out.append((pad + head, s.span))
        for inner, line in zip(n.blocks_of(s), rest, strict=True):
            _block(inner, depth + 1, out)
            if line:
                out.append((pad + line, s.span))


def statement(s: n.Stmt) -> str:
    """The first line of a statement, without nested blocks."""
    return s.text()[0]


def to_text(fn: n.Function) -> str:
    """The function's text, without its callees."""
    return "\n".join(text for text, _ in located(fn)) + "\n"


def located(fn: n.Function) -> Located:
    """The lines of the function's text, each with its place in the Python source."""
    params = ", ".join(f"{p}: {p.type}" for p in fn.params)
    results = f" -> {', '.join(map(str, fn.results))}" if fn.results else ""
    head = [f"{'kernel' if fn.is_kernel else 'func'} {fn.name}({params}){results} {{"]
    if fn.native is not None:
        head += [f"  native {line}".rstrip() for line in fn.native.text.strip().splitlines()]
    if fn.derivative_of is not None:
        head.append(f"  derivative of {fn.derivative_of.name}")
    out = [(line, fn.span) for line in head]
    _block(fn.body, 1, out)
    return [*out, ("}", UNKNOWN)]
