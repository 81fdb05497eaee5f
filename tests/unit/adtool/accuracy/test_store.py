"""The file of a baseline: its text, what merges leave of it, and what is refused."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from adtool.accuracy.entries import Baseline, Entry, Known
from adtool.accuracy.store import read, text_of, write
from adtool.exits import ToolError
from tests.reports import HOSTILE

HEAD = '{"format": "adtool-baseline", "version": 1}\n'


def entry(kernel: str = "k", **given: object) -> Entry:
    values: dict[str, object] = {
        "script": "a.py", "kernel": kernel, "input": "x", "output": "y", "verdict": "pass",
        "error": 3.25e-5, "rounding": 0.0,
    }  # fmt: skip
    return Entry(**(values | given))  # type: ignore[arg-type]


def test_a_line_a_pair_sorted_with_kernels_apart(tmp_path: Path) -> None:
    tape = Entry("a.py", "j, k", "", "", "nan", float("nan"), None, True)
    known = Known("a.py", "G001", "0123", "error", "k", "src/k.py")
    unmeasured = entry("j", error=None, rounding=None, verdict="kink")
    some = Baseline((tape, entry("k", input="z"), entry(), unmeasured), (known,))
    write(some, tmp_path / "b.jsonl")
    text = (tmp_path / "b.jsonl").read_text()
    assert text == HEAD + (
        "\n"
        '{"script": "a.py", "kernel": "j", "input": "x", "output": "y", "verdict": "kink",'
        ' "error": null, "rounding": null}\n'
        "\n"
        '{"script": "a.py", "kernel": "k", "input": "x", "output": "y", "verdict": "pass",'
        ' "error": 3.2e-05, "rounding": "<1e-06"}\n'
        '{"script": "a.py", "kernel": "k", "input": "z", "output": "y", "verdict": "pass",'
        ' "error": 3.2e-05, "rounding": "<1e-06"}\n'
        "\n"
        '{"script": "a.py", "tape": "j, k", "verdict": "nan", "error": "nan", "rounding": null}\n'
        "\n"
        '{"script": "a.py", "finding": "G001", "severity": "error", "kernel": "k",'
        ' "file": "src/k.py", "fingerprint": "0123"}\n'
    )
    found = read(tmp_path / "b.jsonl")
    assert text_of(found) == text
    assert found.known == (known,)
    assert found.entries[1].error == 3.2e-05 and found.entries[1].rounding == 0.0


def test_hostile_names_stay_in_their_lines(tmp_path: Path) -> None:
    some = Baseline(tuple(entry(n, input=n) for n in HOSTILE))
    write(some, tmp_path / "b.jsonl")
    found = read(tmp_path / "b.jsonl")
    assert {e.kernel for e in found.entries} == set(HOSTILE)
    assert len((tmp_path / "b.jsonl").read_text().splitlines()) == 1 + 2 * len(HOSTILE)


LINE = '{"script": "a.py", "kernel": "k", "input": "x", "output": "y", "verdict": "pass", '


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("{}\n", "line 1: this is not a baseline"),
        ("\x00\xff\n", "line 1: this is not a baseline"),
        ('{"format": "adtool-baseline", "version": 2}\n', "line 1: version 2 is unknown"),
        ('{"format": "adtool-baseline", "version": true}\n', "line 1: version True"),
        (HEAD + "<<<<<<< ours\n", "line 2: an unresolved merge conflict"),
        (HEAD + "\nx\n", "line 3: it is not JSON"),
        (HEAD + "[" * 100_000 + "\n", "line 2: it is not JSON"),
        (HEAD + "[1]\n", "line 2: it is not an object"),
        (HEAD + LINE + '"error": 1e-5}\n', "line 2: `rounding` is missing"),
        (HEAD + LINE + '"error": -1, "rounding": 0}\n', "line 2: `error` is not an error"),
        (HEAD + LINE + '"error": true, "rounding": 0}\n', "line 2: `error` is not an error"),
        (HEAD + LINE + '"error": 1e999, "rounding": 0}\n', "line 2: `error` is not an error"),
        (HEAD + LINE + '"error": "<x", "rounding": 0}\n', "line 2: `error` is not an error"),
        (HEAD + LINE + '"error": [], "rounding": 0}\n', "line 2: `error` is not an error"),
        (HEAD + LINE + '"error": 1' + "0" * 400 + ', "rounding": 0}\n', "line 2: `error`"),
        (HEAD + LINE + '"error": 0, "rounding": 0, "more": 1}\n', "line 2: `more` is unknown"),
        (HEAD + LINE.replace("pass", "fine") + '"error": 0, "rounding": 0}\n', "the verdict is"),
        (HEAD + LINE.replace('"k"', "3") + '"error": 0, "rounding": 0}\n', "`kernel` is not a str"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "b.jsonl").write_text(text)
    with pytest.raises(ToolError) as refused:
        read(tmp_path / "b.jsonl")
    assert words in refused.value.message
    assert refused.value.help.startswith("fix the line, or delete the file")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"the baseline .* does not exist"):
        read(tmp_path / "b.jsonl")
    with pytest.raises(ToolError, match="cannot be read: Is a directory"):
        read(tmp_path)


def merged(tmp_path: Path, ours: Baseline, base: Baseline, theirs: Baseline, *words: str) -> int:
    for name, b in (("ours", ours), ("base", base), ("theirs", theirs)):
        write(b, tmp_path / name)
    return subprocess.run(
        ["git", "merge-file", "-q", *words, "ours", "base", "theirs"], cwd=tmp_path, check=False
    ).returncode


def test_branches_that_touch_different_kernels_merge(tmp_path: Path) -> None:
    base = [entry(k) for k in ("b", "d", "f")]
    ours = Baseline((*base, entry("a"), entry("b", input="z")))
    theirs = Baseline((*base[:1], entry("d", error=1e-3), base[2], entry("e")))
    assert merged(tmp_path, ours, Baseline(tuple(base)), theirs) == 0
    keys = {(e.kernel, e.input, e.error) for e in read(tmp_path / "ours").entries}
    old = 3.2e-5
    assert keys == {
        ("a", "x", old), ("b", "x", old), ("b", "z", old), ("d", "x", 1e-3), ("e", "x", old),
        ("f", "x", old),
    }  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (("pass", 2e-7, 0.0), ("pass", 0.0, 0.01), ("pass", 0.0, 0.0)),
        (("pass", 1e-3, 1e-4), ("pass", None, None), ("pass", 1e-3, 1e-4)),
        (("pass", None, None), ("pass", None, None), ("pass", None, None)),
        (("fail", 0.5, 1e-5), ("pass", 1e-6, 1e-4), ("pass", 1e-6, 1e-5)),
    ],
)
def test_the_stricter_of_two_lines(
    tmp_path: Path, one: Any, other: Any, expected: Any, turned: bool
) -> None:
    lines = [text_of(Baseline((entry("k", verdict=v, error=e, rounding=r),))).splitlines()
             for v, e, r in (one, other)]  # fmt: skip
    head, *rest = lines[turned]
    path = tmp_path / "merged"
    path.write_text("\n".join([head, *rest, *lines[not turned][1:]]) + "\n")
    (found,) = read(path).entries
    assert (found.verdict, found.error, found.rounding) == expected


def test_union_takes_both_and_the_stricter_of_two(tmp_path: Path) -> None:
    base = Baseline((entry("b"),))
    ours, theirs = Baseline((entry("b", error=1e-6),)), Baseline((entry("b", error=1e-3),))
    assert merged(tmp_path, ours, base, theirs) == 1
    with pytest.raises(ToolError, match="an unresolved merge conflict"):
        read(tmp_path / "ours")
    assert merged(tmp_path, ours, base, theirs, "--union") == 0
    (found,) = read(tmp_path / "ours").entries
    assert found.error == 1e-6
