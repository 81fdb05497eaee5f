"""Pieces of a page: SVG of others, lines of code, images, curves, words."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from adtool.memory import in_words
from adtool.page import charts, images, snippets
from adtool.page.words import number, seconds
from adtool.report import Finding


def finding(path: Path, line: int, column: int, end: int, source: str) -> Finding:
    return Finding(
        "G001", "x", "error", "m", "", "k", 0, 0, str(path), line, column, line, end,
        source=(source,),
    )  # fmt: skip


def test_lines_around_a_finding_are_shown_where_the_file_is_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("# one\n\tif a < b:  # two\n# three\n")
    found = finding(path, 2, 5, 10, "\tif a < b:  # two")
    lines = snippets.snippet(found, True)
    assert [x.number for x in lines] == [1, 2, 3]
    assert "&lt;" in lines[1].code
    assert "<b" not in lines[1].code
    assert (lines[1].before, lines[1].under) == ("    if ", "^" * 5)
    assert [x.number for x in snippets.snippet(found, False)] == [2]
    other = finding(path, 3, 1, 2, "something else")
    assert [x.number for x in snippets.snippet(other, True)] == [3]


def test_a_finding_without_a_place_has_no_lines() -> None:
    bare = Finding("G001", "x", "error", "m", "", "", 0, 0, None, None, None)
    assert snippets.snippet(bare, True) == ()


def test_carets_of_odd_columns_stay_in_the_line(tmp_path: Path) -> None:
    for column, end in ((1, 1), (50, 60), (2, 900)):
        (line,) = snippets.snippet(finding(tmp_path / "no", 7, column, end, "abcdef"), True)
        assert 1 <= len(line.under) <= 6
        assert len(line.before) <= 6


def pixels(address: str) -> tuple[int, int, bytes]:
    data = base64.b64decode(address.removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", data[16:24])
    begin = data.index(b"IDAT")
    length = struct.unpack(">I", data[begin - 4 : begin])[0]
    return width, height, zlib.decompress(data[begin + 4 : begin + 4 + length])


def test_images_of_values() -> None:
    width, height, raw = pixels(images.signed(1, 4, [-1.0, 0.0, 1.0, math.nan]))
    assert (width, height) == (4, 1)
    below, zero, above, odd = (raw[1 + 3 * k : 4 + 3 * k] for k in range(4))
    assert below[2] > below[0]
    assert zero == b"\xff\xff\xff"
    assert above[0] > above[2]
    assert odd == bytes((160, 32, 200))
    assert images.signed(2, 2, [1.0]) == ""


def test_images_of_errors_are_measured_by_the_scale() -> None:
    small = pixels(images.errors(1, 2, [1e-10, 0.0], 1.0))[2]
    assert small[1:] == b"\xff" * 6
    large = pixels(images.errors(1, 1, [5.0], 1.0))[2]
    assert large[1:] == bytes((140, 22, 8))


def test_curves_of_nothing_of_one_point_and_of_what_has_no_logarithm() -> None:
    assert "<svg" in charts.chart([], "none", "x", "y", log=True)
    text = charts.chart(
        [charts.Curve("<k>", ((0.0, 0.0), (1.0, math.nan), (2.0, 3.0)))], "a", "x", "y", log=True
    )
    assert "&lt;k&gt;" in text
    assert text.count('class="zero"') == text.count('class="nonfinite"') == 1


def test_ticks_have_room_and_cover_the_axis() -> None:
    """Whatever the range is: few decades, many, or one value; also off the scale of the points."""
    dice = np.random.default_rng(8)
    for _ in range(200):
        low = dice.uniform(-12.0, 6.0)
        wide = dice.choice([0.0, 0.1, 0.7, 1.3, 3.0, 9.0, 20.0]) * dice.uniform(0.5, 1.0)
        values = 10.0 ** dice.uniform(low, low + wide, size=12)
        curve = charts.Curve("k", tuple((float(i), float(v)) for i, v in enumerate(values)))
        root = ElementTree.fromstring(charts.chart([curve], "a", "x", "y", log=True))
        lines = [float(x.get("y1", "")) for x in root.iter("line") if x.get("class") == "grid"]
        labels = [x.text for x in root.iter("text") if x.get("text-anchor") == "end"]
        assert len(lines) == len(labels) == len(set(labels)) >= 2
        assert all(a - b >= 14.0 for a, b in pairwise(lines)), lines  # the height of a label
        assert lines[0] - lines[-1] >= 202.0 / 3  # of the height of the plot


def test_long_curves_keep_their_extremes() -> None:
    points = tuple((float(k), 1.0 if k != 7777 else 1e6) for k in range(20_000))
    text = charts.chart([charts.Curve("k", points)], "a", "x", "y", log=True)
    assert len(text) < 40_000
    top = min(float(p.split()[1]) for p in text.split('d="M')[1].split('"')[0].split("L"))
    assert top < 40


def test_numbers_for_people() -> None:
    assert [number(None), number(math.nan), number(-math.inf), number(0.5)] == [
        "\u2013", "NaN", "-inf", "0.5",
    ]  # fmt: skip
    assert [in_words(3), in_words(2048), in_words(3 << 30)] == ["3 bytes", "2.0 KiB", "3.0 GiB"]
    assert [seconds(None), seconds(2e-5), seconds(0.25)] == ["\u2013", "20 \u00b5s", "250.0 ms"]
