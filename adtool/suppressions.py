"""Findings that the user suppresses, by option or by a comment on the line."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adtool import overlay
from adtool.captures.texts import told
from adtool.exits import ToolError
from adtool.fixes.comments import removed
from adtool.report import Finding, Fix
from adtool.rules import load_rules
from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.session import Session

UNUSED = "unused-ignore"  # stands for a code: it is no finding about the program's gradients

_COMMENT = re.compile(r"#\s*adtool:\s*ignore\b\s*(?:\[([^\]]*)\])?")


@dataclass(frozen=True, slots=True)
class Choice:
    """Codes of findings: those that alone are wanted (all where empty), and those that are not.

    known: those that are reckoned with, so that they hide no other ones.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Comment:
    """An `# adtool: ignore[...]` comment. column: of its first character, from 1."""

    file: str
    line: int
    column: int
    end_column: int
    codes: tuple[str, ...]


def codes(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Codes from an option's words, which may hold several with commas, or names of findings.

    Raises ToolError for a word that is neither.
    """
    words = [w.strip() for text in given for w in text.split(",")]
    known = _known() if words else {}
    out = []
    for word in words:
        code = known.get(word.upper())
        if code is None:
            raise ToolError(
                f"{option}: unknown code {word!r}", "the codes are "
                + ", ".join(dict.fromkeys(known.values())) + "; `adtool explain` lists them",
            )  # fmt: skip
        out.append(code)
    return tuple(dict.fromkeys(out))


def suppressed(found: Sequence[Finding], session: Session, choice: Choice) -> list[Finding]:
    """The findings, marked where they are suppressed, and notes on comments that are unused."""
    comments = [c for file in _files(found, session) for c in comments_of(file)]
    used: set[tuple[Comment, str]] = set()
    out = []
    for f in found:
        on_line = [c for c in comments if f.code in c.codes and _stands_on(c, f)]
        used |= {(c, f.code) for c in on_line}
        by = "comment" if on_line else None
        if choice.select and f.code not in choice.select:
            by = "--select"
        if f.code in choice.ignore:
            by = "--ignore"
        out.append(replace(f, suppressed=by is not None, suppressed_by=by) if by else f)  # type: ignore[arg-type]
    return out + list(_unused(comments, used, session))


def comments_of(file: str) -> Iterator[Comment]:
    """The comments of a Python file; none where it cannot be read."""
    try:
        lines = told(file)
        text = "".join(overlay.lines(file) if lines is None else lines)
        if "adtool" not in text:  # most programs, in which nothing need be looked for
            return
        known = _known()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.COMMENT:
                continue
            for match in _COMMENT.finditer(token.string):
                words = [w.strip() for w in (match[1] or "").split(",")]
                line, at = token.start
                first, last = at + match.start() + 1, at + match.end() + 1
                names = tuple(known.get(w.upper(), w) for w in words if w)
                yield Comment(file, line, first, last, names)
    except (OSError, SyntaxError, ValueError, tokenize.TokenError):
        return


def _known() -> dict[str, str]:
    """Codes by code and by name, in capitals."""
    rules = load_rules()
    return {r.code: r.code for r in rules} | {r.name.upper(): r.code for r in rules}


def _files(found: Sequence[Finding], session: Session) -> list[str]:
    files = [f.file for f in found]
    for tape in session.tapes:
        for launch in tape.launches:
            files += [launch.span.file, launch.site.file if launch.site else None]
    return sorted({f for f in files if f})


def _stands_on(comment: Comment, f: Finding) -> bool:
    if f.line is None or comment.file != f.file:
        return False
    return f.line <= comment.line <= max(f.line, f.end_line or f.line)


def _unused(
    comments: Sequence[Comment], used: set[tuple[Comment, str]], session: Session
) -> Iterator[Finding]:
    known = set(_known().values())
    # What was not looked at may have what the comment is for.
    whole = session.failure is None and not session.options.partial and not session.part
    for c in comments:
        if not c.codes:
            yield _note(c, "this comment names no code, so it suppresses nothing",
                        "name a code, like `# adtool: ignore[G001]`")  # fmt: skip
        for code in c.codes:
            if code not in known:
                yield _note(c, f"no finding has the code {code!r}",
                            "`adtool explain` lists the codes")  # fmt: skip
            elif whole and (c, code) not in used:
                yield _note(c, f"`ignore[{code}]` suppresses nothing here",
                            "remove the comment, or move it to the line of the finding",
                            removed(c))  # fmt: skip


def _note(c: Comment, message: str, help: str, fix: Fix | None = None) -> Finding:
    return Finding(
        UNUSED, UNUSED, "note", message, help, "", -1, -1,
        c.file, c.line, c.column, c.line, c.end_column, fix=fix,
    )  # fmt: skip
