"""Prints IR as text: deterministic, one statement a line, for snapshots and reports."""

from __future__ import annotations

from engine.ir import nodes as n


def _at(array: n.Var, index: tuple[n.Atom, ...], path: tuple[n.Atom, ...]) -> str:
    text = f"{array}[{', '.join(map(str, index))}]"
    return text + (f".({', '.join(map(str, path))})" if path else "")


def _line(s: n.Stmt) -> str:
    if isinstance(s, n.Let):
        return f"{s.dst}: {s.dst.type} = {s.op}({', '.join(map(str, s.args))})"
    if isinstance(s, n.Set):
        return f"{s.dst}: {s.dst.type} := {s.value}"
    if isinstance(s, n.Load):
        site = f"  #{s.site}" if s.site >= 0 else ""
        return f"{s.dst}: {s.dst.type} = load {_at(s.array, s.index, s.path)}{site}"
    if isinstance(s, n.Store):
        return f"store {_at(s.array, s.index, s.path)} <- {s.value}"
    if isinstance(s, n.Atomic):
        dst = f"{s.dst}: {s.dst.type} = " if s.dst is not None else ""
        compare = "" if s.compare is None else f" if {s.compare}"
        return f"{dst}atomic_{s.kind} {_at(s.array, s.index, s.path)} <- {s.value}{compare}"
    if isinstance(s, n.Call):
        dsts = ", ".join(f"{d}: {d.type}" for d in s.dsts)
        return f"{dsts + ' = ' if dsts else ''}call {s.func.name}({', '.join(map(str, s.args))})"
    if isinstance(s, n.Message):
        thread = "" if s.thread is None else f" in {s.thread}"
        return f"{s.kind} {s.text!r} {', '.join(map(str, s.args))}{thread}".replace("  ", " ")
    if isinstance(s, n.Break):
        return "break"
    if isinstance(s, n.Continue):
        return "continue"
    if isinstance(s, n.Return):
        return f"return {', '.join(map(str, s.values))}".rstrip()
    if isinstance(s, n.Push):
        return f"push s{s.stack} <- {s.value}"
    if isinstance(s, n.Pop):
        return f"{s.dst}: {s.dst.type} {':=' if s.dst.mutable else '='} pop s{s.stack}"
    if isinstance(s, n.Reserve):
        return f"reserve {s.size}"
    if isinstance(s, n.JournalWrite):
        return f"journal #{s.site} <- {s.value}"
    if isinstance(s, n.JournalRead):
        return f"{s.dst}: {s.dst.type} = journal #{s.site} at {s.pos}"
    raise TypeError(s)


def _block(block: n.Block, depth: int, out: list[str]) -> None:
    pad = "  " * depth
    for s in block:
        if isinstance(s, n.If):
            out.append(f"{pad}if {s.cond} {{")
            _block(s.then, depth + 1, out)
            if s.orelse:
                out.append(f"{pad}}} else {{")
                _block(s.orelse, depth + 1, out)
            out.append(f"{pad}}}")
        elif isinstance(s, n.For):
            out.append(f"{pad}for {s.var} = {s.start} to {s.stop} by {s.step} {{")
            _block(s.body, depth + 1, out)
            out.append(f"{pad}}}")
        elif isinstance(s, n.While):
            out.append(f"{pad}while {{")
            _block(s.test, depth + 1, out)
            out.append(f"{pad}}} {s.cond} {{")
            _block(s.body, depth + 1, out)
            out.append(f"{pad}}}")
        else:
            out.append(pad + _line(s))


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
