"""Rows of a page's large tables, as compact data for its script."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from adtool.folds import folds, items_of, measures
from adtool.page.data import PageRun
from adtool.page.words import name
from adtool.places import short
from adtool.render.rows import SHORT, word_for
from adtool.report import Launch, Pair

# What a row of the table of launches holds, in order; `page.js` has the same list.
COLUMNS = (
    "tape", "launch", "kernel", "input", "output", "checked", "directions", "abs", "rel", "ad",
    "reference", "verdict", "reason", "place", "call", "dim", "entry", "norm", "digits",
)  # fmt: skip


class Words:
    """Strings, each kept once, by number."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        """The number of a text."""
        shown = name(text)
        return self._known.setdefault(shown, len(self._known))

    @property
    def all(self) -> list[str]:
        """The texts in order."""
        return list(self._known)


def launch_table(run: PageRun) -> dict[str, Any]:
    """The table of launches: a row for each pair, or for a launch without one."""
    words = Words()
    norms = _norms(run)
    rows = list(_rows(run, words, norms))  # which fills `words`
    return {"words": words.all, "rows": rows, "folds": _folds(run)}


def _folds(run: PageRun) -> list[list[Any]]:
    """What is shown of the rows at first: the number of the worst row of each fold.

    And how many launches it stands for, what of these was checked (a number, or the word of a
    table), and along how many directions.
    Empty where each row is one of its own, or there are few, of which none is a call of a function
    of another framework.
    """
    items = items_of(run.report.launches)
    numbers = {id(i): n for n, i in enumerate(items)}
    found = folds(items)
    few = len(items) <= SHORT and not any(x.framework for x in run.report.launches)
    if few or not any(f.share for f in found):
        return []
    return [
        [numbers[id(f.worst)], f.share, word_for(f.pairs) or sum(p.checked for p in f.pairs),
         sum(p.directional for p in f.pairs)]
        for f in found
    ]  # fmt: skip


def _rows(run: PageRun, words: Words, norms: dict[tuple[int, int], Any]) -> Iterator[list[Any]]:
    for x in run.report.launches:
        norm = norms.get((x.tape, x.index))
        for p in x.pairs:
            yield _pair_row(x, p, words, norm)
        if not x.pairs:
            empty = Pair("", "", "skipped", 0, None, None, None, reason=x.skipped)
            yield _pair_row(x, empty, words, norm)


def _pair_row(x: Launch, p: Pair, words: Words, norm: Any) -> list[Any]:
    w, m = p.worst, measures(p)
    entry = f"d {w.row_name} / d {w.col_name}" if w is not None and w.row_name else ""
    if p.by_whole:
        entry = "none: compared as a part of its whole tape"
    if p.joint:
        entry = "none: a random direction through several inputs at once"
    if m.direction:
        entry = "none: a random direction over the whole pair"
    return [
        x.tape, x.index, words.of(x.kernel), words.of(p.input), words.of(p.output),
        word_for([p]) or p.checked, p.directional,
        digits(m.error), digits(m.relative), digits(m.adjoint, 8), digits(m.reference, 8),
        words.of(p.verdict), words.of(p.reason or x.skipped), words.of(place(x.file, x.line)),
        words.of(place(x.call_file, x.call_line)), words.of(" x ".join(map(str, x.dim))),
        words.of(entry), norm, digits(p.digits_lost or None),
    ]  # fmt: skip


def _norms(run: PageRun) -> dict[tuple[int, int], Any]:
    from adtool.gradients import incoming

    return {
        (t.tape, o.launch): digits(incoming(t, i))
        for t in (() if run.traces is None else run.traces.tapes)
        for i, o in enumerate(t.listing.operations)
        if o.launch >= 0
    }


def digits(value: float | None, count: int = 4) -> Any:
    """A number as JSON has it: NaN and infinities as words, and no digit too many."""
    if value is None:
        return None
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"
    found = float(f"{value:.{count}g}")
    return int(found) if found.is_integer() and abs(found) < 1e15 else found


def place(file: str | None, line: int | None) -> str:
    """A line of a file as people name it, "" for none."""
    return f"{short(file)}:{line}" if file else ""


def as_json(data: Any) -> str:
    """JSON for a <script> element: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
