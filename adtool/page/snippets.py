"""The source lines of a finding, highlighted, with carets, as safe HTML."""

from __future__ import annotations

from adtool.page.words import visible
from adtool.report import Finding, Problem
from engine.classes import dataclass
from engine.reading import getline

_AROUND = 2  # lines before and after
_COLUMNS = 400  # of a line that is shown


@dataclass(frozen=True, slots=True)
class Line:
    """One line. number: from 1. code: HTML. marked: whether the finding is about it.

    before, under: the text up to the carets, and the carets; under is "" for no carets.
    """

    number: int
    code: str
    marked: bool = False
    before: str = ""
    under: str = ""


def snippet(found: Finding | Problem, local: bool) -> tuple[Line, ...]:
    """The lines of a finding's place; none where they are not known.

    local: lines around them are read from the file, where it is still what it was.
    """
    if found.file is None or not found.line:
        return ()
    kept = list(getattr(found, "source", ()))
    if not kept and local:
        kept = [getline(found.file, found.line).rstrip("\r\n")]
    if not kept or not any(kept):
        return ()
    first = found.line
    ahead: list[str] = []
    after: list[str] = []
    if local and getline(found.file, first).rstrip("\r\n") == kept[0]:
        begin, last = max(1, first - _AROUND), first + len(kept)
        ahead = [getline(found.file, n).rstrip("\r\n") for n in range(begin, first)]
        rest = [getline(found.file, n) for n in range(last, last + _AROUND)]
        after = [x.rstrip("\r\n") for x in rest if x]
    texts = [*ahead, *kept, *after]
    coloured = highlighted([_shown(t) for t in texts])
    out = []
    for i, (text, code) in enumerate(zip(texts, coloured, strict=True)):
        number = first - len(ahead) + i
        marked = len(ahead) <= i < len(ahead) + len(kept)
        before, under = _carets(found, text, number) if marked else ("", "")
        out.append(Line(number, code, marked, before, under))
    return tuple(out)


def _shown(text: str) -> str:
    return visible(text.expandtabs(4).replace("\n", " "), _COLUMNS)


def _carets(found: Finding | Problem, text: str, number: int) -> tuple[str, str]:
    """What stands before the carets of a line, and the carets; for lines of its span."""
    assert found.line
    last = found.end_line or found.line
    if not found.column or not found.line <= number <= last:
        return "", ""
    begin = found.column - 1 if number == found.line else len(text) - len(text.lstrip())
    end = (found.end_column or found.column + 1) - 1 if number == last else len(text.rstrip())
    begin = min(begin, len(text))
    before = _shown(text[:begin])
    width = len(_shown(text[:end])) - len(before)
    return before, "^" * max(1, min(width, _COLUMNS - len(before)))


def highlighted(lines: list[str]) -> list[str]:
    """HTML for each line of a piece of Python: escaped, with classes of colours."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    text = "\n".join(lines)
    made = highlight(text, PythonLexer(stripnl=False, ensurenl=False), HtmlFormatter(nowrap=True))
    out = str(made).split("\n")
    out += [""] * (len(lines) - len(out))
    return out[: len(lines)]
