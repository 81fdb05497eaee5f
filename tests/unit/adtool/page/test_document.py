"""The page as text: what is in it, and that nothing of the user's is more than text."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from adtool.figures import graphs
from adtool.page.document import render_html
from adtool.page.words import visible
from tests.unit.adtool.page.parsed import Parsed
from tests.unit.adtool.page.sample import HOSTILE, failed_run, page, run


def test_it_has_every_section() -> None:
    parsed = Parsed(render_html(page(run())))
    for words in (
        "Failed", "At the gate (error): G001 wrong-gradient.", "message 0 of x", "mend it",
        "Tape 0 6 operations, 7 arrays", "Norm of the gradient", "Memory", "Launches",
        "Jacobians and their errors", "no array requires a gradient", "too little memory",
        "a pattern fits nothing", "Environment", "a test",
    ):  # fmt: skip
        assert words in parsed.words, words
    assert parsed.tags["details"] == 3
    assert parsed.tags["main"] == parsed.tags["h1"] == parsed.tags["header"] == 1
    assert parsed.tags["img"] == 2


def test_rows_of_launches_are_data() -> None:
    parsed = Parsed(render_html(page(run(6))))
    table = parsed.json("run-1-rows")
    assert len(table["rows"]) == 6
    first, skipped = table["rows"][1], table["rows"][4]
    words = table["words"]
    assert words[first[2]] == "kernel1"
    assert first[8] == "NaN"
    assert words[first[11]] == "pass"
    assert words[skipped[11]] == "skipped"
    assert words[skipped[12]] == "no array requires a gradient"
    assert skipped[7] is None


def test_boxes_of_the_graph_know_their_operations() -> None:
    parsed = Parsed(render_html(page(run(12))))
    (tape,) = parsed.json("run-1-operations")
    members = sorted({m for _, ms in tape["boxes"].values() for m in ms})
    assert members == list(range(12))
    assert "data-node" in parsed.attributes


def test_the_policy_lets_in_what_the_page_itself_brings_and_nothing_else() -> None:
    text = render_html(page(run()))
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert found
    policy = dict(p.strip().split(" ", 1) for p in found[1].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["img-src"] == "data:"
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        inner = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert len(inner) == 1
        digest = base64.b64encode(hashlib.sha256(inner[0].encode()).digest()).decode()
        assert policy[rule] == f"'sha256-{digest}'"
    assert " style=" not in text
    assert not re.search(r'(?:src|href)="(?!#|data:image/png)', text)


def test_hostile_names_are_text() -> None:
    bad = replace(page(run(hostile=True), failed_run()), source=HOSTILE[0])
    text = render_html(bad)
    found, usual = Parsed(text), Parsed(render_html(page(run(), failed_run())))
    assert set(found.tags) <= set(usual.tags) | {"code", "tspan"}
    for tag in ("script", "style", "img", "input", "select", "details", "h1"):
        assert found.tags[tag] == usual.tags[tag], tag
    assert found.attributes - usual.attributes <= {"title"}
    assert not [a for a in found.attributes if a.startswith("on")]
    assert all(x.startswith(("#", "data:image/png;base64,")) for x in found.links)
    assert HOSTILE[1] in found.words
    assert not set(text) & set("\u202e\u2066\u200f\x1b\x00")
    assert "b\\u{2066}c" in found.words
    assert "49" not in found.json("run-1-rows")["words"]


def test_text_that_cannot_be_seen_is_spelt_out() -> None:
    assert visible("a\u202eb\x00\tc\nd\u00e9\u4e2d") == "a\\u{202e}b\\u{0}\tc\nd\u00e9\u4e2d"
    assert len(visible("n" * 10_000)) == 4000
    assert visible("\ud800x") == "\\u{d800}x"


def test_a_picture_that_would_be_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Parsed(render_html(page(run()))).tags["ellipse"] >= 4
    monkeypatch.setattr(graphs, "_BOXES", 3)
    parsed = Parsed(render_html(page(run())))
    assert "not drawn: too many boxes" in parsed.words
    assert "data-node" not in parsed.attributes


def test_several_runs_have_findings_of_one_count_and_a_table() -> None:
    text = render_html(page(run(), run(traces=False), run(fails=False)))
    assert re.findall(r'id="(finding-\d+)"', text) == [f"finding-{k}" for k in range(1, 7)]
    parsed = Parsed(text)
    assert "3 scripts" in parsed.words
    assert len(re.findall(r' id="([^"]*)"', text)) == len(set(re.findall(r' id="([^"]*)"', text)))
    assert "No tape to show" in parsed.words


def test_ten_thousand_launches_stay_small() -> None:
    size = len(render_html(page(run(10_000))).encode())
    assert size < 20e6


def test_a_run_that_failed_says_why() -> None:
    words = Parsed(render_html(page(failed_run()))).words
    assert "Not checked" in words
    assert HOSTILE[2] in words
