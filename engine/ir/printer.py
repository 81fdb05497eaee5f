"""Prints IR as text: deterministic, one statement a line, for snapshots and reports."""

from __future__ import annotations

from engine.ir import nodes as n


def _block(block: n.Block, depth: int, out: list[str]) -> None:
    pad = "  " * depth
    for s in block:
        head, *rest = s.text()
        out.append(pad + head)
        for inner, line in zip(n.blocks_of(s), rest, strict=True):
            _block(inner, depth + 1, out)
            if line:
                out.append(pad + line)


def statement(s: n.Stmt) -> str:
    """The first line of a statement, without nested blocks."""
    return s.text()[0]


def to_text(fn: n.Function) -> str:
    """The function's text, without its callees."""
    params = ", ".join(f"{p}: {p.type}" for p in fn.params)
    results = f" -> {', '.join(map(str, fn.results))}" if fn.results else ""
    out = [f"{'kernel' if fn.is_kernel else 'func'} {fn.name}({params}){results} {{"]
    if fn.native is not None:
        out += [f"  native {line}".rstrip() for line in fn.native.text.strip().splitlines()]
    if fn.derivative_of is not None:
        out.append(f"  derivative of {fn.derivative_of.name}")
    _block(fn.body, 1, out)
    out.append("}")
    return "\n".join(out) + "\n"
