"""Fingerprints of findings, which stay the same when lines move."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from adtool.places import short
from adtool.report import Finding
from adtool.rules.base import mark_of
from adtool.sources import tree_of
from engine.reading import getline

_LINES = 5  # of a finding's source, that are kept
_DIGITS = 16


def marked(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings with their fingerprints, and with the lines that they are about.

    A fingerprint depends on the code, the kernel, the file relative to the current folder, the
    text of the line, the function or class that the line stands in, and the arrays' names; of those
    that are alike in all, it counts.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for f in findings:
        source = _source(f)
        file = "" if f.file is None else short(f.file).replace("\\", "/")
        line = source[0].strip() if source else ""
        key = (f.code, f.kernel, file, line, _scope(f), *f.arrays)
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        yield replace(f, fingerprint=digest[:_DIGITS], source=source)


def linked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings with the fingerprints of their causes in place of their marks.

    See `rules.base.mark_of`. Where the cause is not among them, or it is suppressed, a finding
    stands for itself.
    """
    known = {mark_of(f.code, f.tape, f.launch): f for f in reversed(findings)}
    causes = {mark: f.fingerprint for mark, f in known.items() if not f.suppressed}
    return tuple(replace(f, follows=causes.get(f.follows, "")) for f in findings)


def _scope(f: Finding) -> str:
    """The function or class that a finding's line stands in, with those around it."""
    if f.file is None or not f.line:
        return ""
    names = []
    nodes: list[ast.AST] = [tree_of(f.file)]
    while nodes:
        node = nodes.pop()
        for child in ast.iter_child_nodes(node):
            first, last = getattr(child, "lineno", 0), getattr(child, "end_lineno", 0) or 0
            if first <= f.line <= last or not last:
                nodes.append(child)
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    names.append(child.name)
    return ".".join(names)


def _source(f: Finding) -> tuple[str, ...]:
    if f.file is None or not f.line:
        return ()
    last = min(max(f.line, f.end_line or f.line), f.line + _LINES - 1)
    lines = [getline(f.file, n) for n in range(f.line, last + 1)]
    return tuple(x.rstrip("\r\n") for x in lines) if lines[0] else ()
