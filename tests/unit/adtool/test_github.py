"""Workflow commands, read back by the rules of GitHub's runner; the step's summary as Markdown."""

from __future__ import annotations

import re
from typing import Any

from adtool.render import markdown
from adtool.render.formats import Setting
from adtool.render.github import SHOWN, render
from adtool.report import Failure, Problem
from tests.reports import HOSTILE, finding, hostile, launch, pair, report

HERE = Setting("/w", "/w")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Level, properties and message of each line, as the runner reads them."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
        assert match is not None, line
        given = dict(p.split("=", 1) for p in match[2].split(","))
        found.append((match[1], {k: back(v) for k, v in given.items()}, back(match[3])))
    return found


def back(text: str) -> str:
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, char)
    return text


def test_commands() -> None:
    given = (
        finding(message="a: 50%,\nb", file="/w/a, b:c.py"),
        finding("G006", severity="warning", end_line=5, end_column=2),
        finding("G005", severity="note", file="/else/x.py", help=""),
        finding("G003", file=None, line=None, suppressed=True, suppressed_by="--ignore"),
    )
    text = render([report(findings=given)], HERE)
    assert text.splitlines()[0] == (
        "::error file=a%2C b%3Ac.py,line=3,endLine=3,col=5,endColumn=9,"
        "title=adtool G001 wrong-gradient::a: 50%25,%0Ab%0Amend it"
    )
    first, second, third = commands(text)
    assert first[1]["file"] == "a, b:c.py" and first[2] == "a: 50%,\nb\nmend it"
    assert second[0] == "warning" and (second[1]["line"], second[1]["endLine"]) == ("3", "5")
    assert "col" not in second[1] and "endColumn" not in second[1]  # of one line only
    assert third[0] == "notice" and "file" not in third[1]
    assert third[2] == "it is `wrong`\nat /else/x.py:3"


def test_no_more_than_are_shown() -> None:
    errors = [finding(message=f"e{i}") for i in range(SHOWN + 4)]
    notes = [finding("G005", severity="note") for _ in range(SHOWN)]
    found = commands(render([report(findings=(*errors, *notes))], HERE))
    levels = [level for level, _, _ in found]
    assert (levels.count("error"), levels.count("notice")) == (SHOWN, SHOWN)
    assert [m.split("\n")[0] for _, _, m in found[: SHOWN - 1]] == [f"e{i}" for i in range(9)]
    assert found[SHOWN - 1][2] == "5 more errors of adtool without annotation: see the report"


def test_what_stopped_the_run() -> None:
    error = Failure("raised", "it raised", "see", problems=(Problem("E305", "no", file="/w/x.py",
                                                                    line=4),))  # fmt: skip
    found = commands(render([report(), report(error=error)], Setting("/w", "/w", 2)))
    assert found[0] == ("error", {"title": "adtool: not checked"}, "springs.py: it raised\nsee")
    assert (found[1][1]["file"], found[1][1]["line"]) == ("x.py", "4")
    assert render([report()], HERE) == ""


def test_hostile_names() -> None:
    given = hostile(HOSTILE[:SHOWN])
    found = commands(render([report(findings=given)], HERE))
    assert [c[0] for c in found] == ["error"] * len(given)
    for f, (_, values, message) in zip(given, found, strict=True):
        assert set(values) == {"file", "line", "endLine", "col", "endColumn", "title"}
        printable = all(c.isprintable() for c in f.kernel)
        assert not printable or values["file"] == f"{f.kernel}.py" and f.kernel in message


def document(*findings: Any, **given: Any) -> str:
    return markdown.render([report(findings=findings, **given)], HERE)


def test_markdown() -> None:
    text = document(finding(), launches=(launch(0, pair("fail")),))
    lines = text.split("\n")
    assert lines[0] == "## `springs.py`: failed"
    assert "Gate: error. The script did not pass." in text
    assert "| error | G001 wrong-gradient | `/w/springs.py:3` | it is `wrong` |" in lines
    assert "```python\n3      𝑦[i] = x[i]\n```" in text and "**help**: mend it" in lines
    assert "| 0 | `springs` | `x` | `y` | 9 | 0.5 | 0.5 | 1.5 | 1 | fail |" in lines
    assert "- tape 0 as a whole, end to end: pass, relative error 1e-09" in lines


def test_markdown_of_several_and_of_failures() -> None:
    error = Failure("raised", "it <b>raised</b>", "see", "Traceback\n```")
    text = markdown.render([report(), report(error=error)], Setting("/w", "/w", 2))
    assert text.startswith("## adtool: 2 scripts: 1 passed, 1 not checked\n")
    assert "**error**: it &lt;b\\>raised&lt;/b\\>" in text
    assert "````text\nTraceback\n```\n````" in text


def test_markdown_of_hostile_names() -> None:
    text = document(*hostile(HOSTILE))
    inside, fence = False, ""
    rows = 0
    for line in text.split("\n"):
        if re.match("`{3,}", line):
            if not inside:
                inside, fence = True, re.match("`+", line)[0]  # type: ignore[index]
            elif line == fence:
                inside = False
            continue
        if inside:
            continue
        bare = re.sub(r"(?<![\\`])(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", line)
        assert "<script" not in bare and "@everyone" not in bare
        if line.startswith("| error"):
            rows += 1
            assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 5, line
    assert not inside and rows == len(HOSTILE)


def test_markdown_is_bounded() -> None:
    long = [finding(message="x" * 10_000, kernel=f"k{i}", source=("y" * 9999,)) for i in range(300)]
    text = markdown.render([report(findings=tuple(long))] * 20, Setting("/w", "/w", 20))
    assert len(text.encode()) <= markdown.LIMIT < 2**20 / 2
    assert text.endswith("*The rest is left out because the summary is too long.*\n")
