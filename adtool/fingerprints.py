"""What tells a finding of one run from those of another, whatever lines have moved meanwhile."""

from __future__ import annotations

import hashlib
import linecache
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from adtool.places import short
from adtool.report import Finding

_LINES = 5  # of a finding's source, that are kept
_DIGITS = 16


def marked(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The findings with their fingerprints, and with the lines that they are about.

    A fingerprint depends on the code, the kernel, the file relative to the current folder, the
    text of the line and the arrays' names; of those that are alike in all, it counts.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for f in findings:
        source = _source(f)
        file = "" if f.file is None else short(f.file).replace("\\", "/")
        key = (f.code, f.kernel, file, source[0].strip() if source else "", *f.arrays)
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        yield replace(f, fingerprint=digest[:_DIGITS], source=source)


def _source(f: Finding) -> tuple[str, ...]:
    if f.file is None or not f.line:
        return ()
    last = min(max(f.line, f.end_line or f.line), f.line + _LINES - 1)
    lines = [linecache.getline(f.file, n) for n in range(f.line, last + 1)]
    return tuple(x.rstrip("\r\n") for x in lines) if lines[0] else ()
