"""Puts templates, style and script of a page together in one file."""

from __future__ import annotations

import base64
import hashlib
import html
import math
from collections.abc import Sequence
from importlib import resources
from typing import Any

from adtool.consequences import arranged
from adtool.counts import counted, more
from adtool.matrices import LaunchPictures, MatrixPicture
from adtool.page import images
from adtool.page.data import PageData, PageRun
from adtool.page.rows import as_json, launch_table
from adtool.page.snippets import Line, snippet
from adtool.page.summary import Left, Summary, left_out, summary
from adtool.page.tapes import TapePart, tape_parts
from adtool.page.words import name, number, visible
from adtool.places import short, shortened
from adtool.report import Finding, Problem
from engine.classes import dataclass

_FINDINGS = 500  # of a run that are shown


@dataclass(frozen=True, slots=True)
class FindingPart:
    """A finding with its lines. number: for its anchor, `#finding-3`, over all runs.

    follows: it stands below the one that is its cause.
    """

    number: int
    finding: Finding
    place: str
    lines: tuple[Line, ...]
    follows: bool = False


@dataclass(frozen=True, slots=True)
class MatrixPart:
    """A Jacobian's images, as `data:` addresses, and numbers beside them."""

    picture: MatrixPicture
    values: str
    errors: str
    largest: str
    worst: str


@dataclass(frozen=True, slots=True)
class RunPart:
    """All that the templates show of a run. key: for anchors, as `run-1`."""

    key: str
    run: PageRun
    summary: Summary
    findings: tuple[FindingPart, ...]
    more_findings: int
    problems: tuple[tuple[Problem, str, tuple[Line, ...]], ...]
    tapes: tuple[TapePart, ...]
    more_tapes: int
    matrices: tuple[tuple[LaunchPictures, tuple[MatrixPart, ...]], ...]
    left: tuple[Left, ...]
    launches: int
    table: str
    operations: str


def render_html(data: PageData) -> str:
    """The page as one HTML text."""
    template = _template()
    parts = []
    count = 0
    for k, run in enumerate(data.runs, 1):
        part = _part(f"run-{k}", run, count)
        count += len(part.findings)
        parts.append(part)
    style, script = _style(), _file("page.js")
    worst = _worst([p.summary for p in parts])
    text: str = template.render(
        data=data, runs=parts, several=len(parts) > 1, style=_Safe(style), script=_Safe(script),
        style_hash=_hash(style), script_hash=_hash(script),
        verdict=worst.verdict, word=worst.word,
    )  # fmt: skip
    return text.encode("utf-8", "replace").decode("utf-8")


def _worst(found: Sequence[Summary]) -> Summary:
    """The summary of the run that came to least, which a page of several runs is headed by."""
    order = ("failed", "not checked", "passed with warnings", "passed")
    return min(found, key=lambda s: order.index(s.verdict))


class _Safe(str):
    """Text of the tool's own, which is HTML already."""

    def __html__(self) -> str:
        return str(self)


def _template() -> Any:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("adtool.page", "templates"), autoescape=True,
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_final,
    )  # fmt: skip
    made.filters |= {
        "counted": counted,
        "more": more,
        "name": name,
        "number": number,
        "safe_html": _Safe,
        "short": _short,
        "prose": _prose,
    }
    return made.get_template("page.html")


def _final(value: Any) -> Any:
    """What every `{{ }}` writes: text of the user's has nothing in it that cannot be seen."""
    return visible(value) if type(value) is str else value


def _short(text: str) -> str:
    return visible(shortened(text))


def _prose(text: str) -> _Safe:
    """A sentence as HTML: escaped, and what stands in backquotes as code."""
    pieces = _short(text).split("`")
    if len(pieces) % 2 == 0:  # one of them is a backquote of the user's
        return _Safe(html.escape("`".join(pieces)))
    return _Safe("".join(
        f"<code>{html.escape(p)}</code>" if k % 2 else html.escape(p) for k, p in enumerate(pieces)
    ))  # fmt: skip


def _file(which: str) -> str:
    return (resources.files("adtool.page") / "templates" / which).read_text(encoding="utf-8")


def _style() -> str:
    return _file("page.css") + _file("print.css")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode("ascii")


def _part(key: str, run: PageRun, before: int) -> RunPart:
    whole, idle = arranged(run.report.findings)
    found = [f for told in whole for f in (told.finding, *told.consequences)] + idle
    found += [f for f in run.report.findings if f.suppressed]
    under = {id(f) for told in whole for f in told.consequences}
    shown = tuple(
        FindingPart(before + k, f, _place(f), snippet(f, run.local), id(f) in under)
        for k, f in enumerate(found[:_FINDINGS], 1)
    )
    problems: tuple[tuple[Problem, str, tuple[Line, ...]], ...] = ()
    if run.report.error is not None:
        problems = tuple(
            (p, _place(p), snippet(p, run.local)) for p in run.report.error.problems[:_FINDINGS]
        )
    tapes = tape_parts(run)
    recorded = 0 if run.traces is None else run.traces.recorded
    table = launch_table(run)
    pictures = tuple((p, tuple(map(_matrix, p.pairs))) for p in run.pictures)
    return RunPart(
        key, run, summary(run), shown, len(found) - len(shown), problems, tapes,
        max(0, recorded - len(tapes)), pictures,
        left_out(run), len(table["rows"]), _Safe(as_json(table)),
        _Safe(as_json([t.data for t in tapes])),
    )  # fmt: skip


def _place(found: Finding | Problem) -> str:
    if not found.file:
        return ""
    place = short(found.file)
    return f"{place}:{found.line}:{found.column or 1}" if found.line else place


def _matrix(p: MatrixPicture) -> MatrixPart:
    def top(values: tuple[float, ...]) -> str:
        odd = any(not math.isfinite(v) for v in values)
        return number(images.largest(values)) + (" (and entries that are not finite)" * odd)

    scale = images.largest(p.values)
    errors = images.errors(p.rows, p.cols, p.errors, scale) if p.errors else ""
    return MatrixPart(
        p, images.signed(p.rows, p.cols, p.values), errors, top(p.values), top(p.errors)
    )
