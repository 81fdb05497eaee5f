"""Shared parts of all formats: names, escapes, URIs, links; and reports with hostile names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adtool.commands.check_output import Output, outputs_of
from adtool.commands.options import CheckFormat
from adtool.exits import ToolError
from adtool.render import links, uris
from adtool.render.escapes import code, escaped, fenced, prose
from adtool.render.formats import FORMATS, Setting, render
from tests.reports import HOSTILE, hostile, report


def test_every_format_can_be_asked_for_and_is_there() -> None:
    assert [f.value for f in CheckFormat] == list(FORMATS)
    for name in FORMATS:
        assert "springs" in render(name, [report(findings=hostile(["springs"]))], Setting())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("several", [False, True])
def test_hostile_names_are_bytes_without_control_characters(name: str, several: bool) -> None:
    reports = [report(findings=hostile(HOSTILE), script="a\udc80<b>|.py")]
    text = render(name, reports * (2 if several else 1), Setting("/w", "/w", 1 + several))
    assert text.endswith("\n")
    text.encode("utf-8")  # no half characters
    assert not {c for c in text if ord(c) < 32} - {"\n"}


def test_words_of_output() -> None:
    files, stdout = outputs_of(["sarif=x.sarif", "junit=a=b.xml"], "text")
    assert files == (Output("sarif", "x.sarif"), Output("junit", "a=b.xml")) and stdout
    files, stdout = outputs_of(["x-1=y.txt", "json=r.json"], "markdown")
    assert files == (Output("markdown", "x-1=y.txt"), Output("json", "r.json")) and not stdout
    assert outputs_of(["./json=x"], "json")[0] == (Output("json", "./json=x"),)
    with pytest.raises(ToolError, match="names no file"):
        outputs_of(["sarif="], "text")
    with pytest.raises(ToolError, match="two reports go to"):
        outputs_of(["sarif=x", "./x"], "text")


def test_a_file_that_two_names_lead_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reports" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to("reports")
    (tmp_path / "into").symlink_to("reports/deep")
    (tmp_path / "reports" / "to_a").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    for other in ("link/a", "into/../a", f"{tmp_path}/link/a", "./link/../reports/a"):
        with pytest.raises(ToolError, match="two reports go to"):
            outputs_of(["json=reports/a", f"sarif={other}"], "text")
    # What is a link itself is replaced by a file; and `into/..` is no detour.
    for other in ("reports/to_a", "into/a", "into/../../a"):
        assert len(outputs_of(["json=reports/a", f"sarif={other}"], "text")[0]) == 2
    with pytest.raises(ToolError, match="two reports go to `link/a`"):
        outputs_of(["json=link/a"], "text", others=["reports/a"])  # a plot, or a baseline
    with pytest.raises(ToolError, match="the folder `nowhere` does not exist"):
        outputs_of(["json=reports/a", "sarif=nowhere/a"], "text")


def test_uris() -> None:
    assert uris.relative("/w/a b/c.py", "/w") == "a b/c.py"
    assert uris.relative("c.py", "/w") == "c.py"
    assert uris.relative("/wide/c.py", "/w") is None
    assert uris.relative("/w/../etc/x", "/w") is None
    assert uris.relative("/etc/x", "/") == "etc/x"
    assert uris.relative("/w/c.py", "") is None
    assert uris.encoded("a b/ü#%?:.py") == "a%20b/%C3%BC%23%25%3F%3A.py"
    assert uris.encoded("\udcff.py") == "%FF.py"  # the bytes that the name has on disk
    assert uris.encoded("\ud800") == "%5Cud800"  # no name of a file
    assert uris.file_uri("/a b") == "file:///a%20b"


def test_markdown_escapes() -> None:
    assert escaped("a|b\n<script>*_`[x](y)") == "a\\|b &lt;script\\>\\*\\_\\`\\[x\\](y)"
    assert "@everyone" not in escaped("hi @everyone") and "#12" not in escaped("see #12")
    assert "https://" not in escaped("https://e.org") and "www." not in escaped("www.e.org")
    assert [escaped(x) for x in ("1. x", "- x", "# x", "+x", "=", "1.5")] == [
        "1\\. x", "\\- x", "\\# x", "\\+x", "\\=", "1\\.5",
    ]  # fmt: skip
    assert code("a`b") == "``a`b``" and code("`") == "`` ` ``" and code("x\ny") == "`x y`"
    assert code("a|b") == "`a|b`" and code("a\\|b", True) == "<code>a\\\\\\|b</code>"
    assert prose("of `x[1]` <b>") == "of `x[1]` &lt;b\\>"
    assert prose("an odd ` one `") == "an odd `  one  `"  # readers take one space from each side
    assert prose("an odd ` one") == "an odd \\` one"
    assert fenced(["````", "x"], "python") == "`````python\n````\nx\n`````"


@pytest.mark.parametrize(
    ("environ", "terminal", "plain", "links_are"),
    [
        ({"TERM": "xterm-kitty"}, True, False, True),
        ({"TERM": "xterm-kitty"}, False, False, False),
        ({"TERM": "xterm-kitty"}, True, True, False),
        ({"TERM": "xterm-256color"}, True, False, False),  # it is not known whether it can
        ({"TERM": "xterm-256color", "VTE_VERSION": "7200"}, True, False, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "4800"}, True, False, False),
        ({"TERM": "xterm", "TERM_PROGRAM": "vscode", "TERM_PROGRAM_VERSION": "1.90.2"}, True, False,
         True),
        ({"TERM": "xterm", "TERM_PROGRAM": "iTerm.app", "TERM_PROGRAM_VERSION": "3.0"}, True, False,
         False),
        ({"TERM": "dumb", "WT_SESSION": "x"}, True, False, False),
        ({"TERM": "xterm-kitty", "CI": "1"}, True, False, False),
        ({"FORCE_HYPERLINK": "1"}, False, False, True),
        ({"FORCE_HYPERLINK": "0", "TERM": "xterm-kitty"}, True, False, False),
        ({"FORCE_HYPERLINK": "1"}, True, True, False),
    ],
)  # fmt: skip
def test_links(environ: dict[str, str], terminal: bool, plain: bool, links_are: bool) -> None:
    assert links.wanted(environ, terminal, plain) is links_are


def test_a_link_holds_no_escape_of_its_file() -> None:
    link = links.linked("x.py:1", "/a/\x1b]8;;evil\x07 b.py")
    assert link == "\x1b]8;;file:///a/%1B%5D8%3B%3Bevil%07%20b.py\x1b\\x.py:1\x1b]8;;\x1b\\"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("", "")])
def test_places_are_links_where_they_are_wanted(
    monkeypatch: Any, capsys: Any, variable: str, value: str
) -> None:
    import sys

    from adtool.render.text import make_console, print_report

    for name in ("NO_COLOR", "TERM", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    if variable:
        monkeypatch.setenv(variable, value)
    given = report(findings=hostile(["k"]))
    print_report(given, make_console(sys.stdout))
    out = capsys.readouterr().out
    assert ("\x1b]8;;file:///w/k.py\x1b\\/w/k.py:3:5\x1b]8;;\x1b\\\n" in out) is not variable
    assert ("\x1b" in out) is not variable
    print_report(given, make_console(sys.stdout, no_color=True))
    assert "\x1b" not in capsys.readouterr().out


def test_colours_that_are_forced(monkeypatch: Any, capsys: Any) -> None:
    import sys

    from adtool.render.text import make_console, print_report

    for name in ("NO_COLOR", "FORCE_HYPERLINK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for value, there in (("1", True), ("0", False)):
        monkeypatch.setenv("FORCE_COLOR", value)
        print_report(report(findings=hostile(["k"])), make_console(sys.stdout))
        out = capsys.readouterr().out
        assert ("\x1b[" in out) is there and "\x1b]8" not in out
