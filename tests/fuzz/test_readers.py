"""Readers of files give one clear error for malformed files, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adtool import codec
from adtool.report import Report
from tests.fuzz.mutations import changed_bytes, changed_json, odd_arrays
from tests.fuzz.readers import READERS, REFUSED, Reader
from tests.fuzz.samples import (
    arrays,
    document,
    draw_capture,
    members,
    read_capture,
    with_array,
    with_tapes,
    with_traces,
)
from tests.sweeps import reduced

_FEW = {"derandomize": True, "deadline": None, "database": None}
_SOME = [40, 3000]
_CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


def attempt(reader: Reader, path: Path) -> str:
    """Reads a file. Gives the words of its error: they are few, and on one line."""
    try:
        reader.read(path)
    except REFUSED as error:
        words = str(getattr(error, "message", error))
        assert words and len(words) < 1000, words[:200]
        assert reader.name == "configuration" or "\n" not in words
        return words
    return ""


@pytest.mark.parametrize("reader", READERS, ids=str)
def test_right_files_are_read(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / reader.file
    path.write_bytes(reader.good())
    if reader.name != "task":  # of a task there is only the frame
        assert attempt(reader, path) == ""


@pytest.mark.parametrize("count", reduced(_SOME, lambda n: n == 40))
@pytest.mark.parametrize("reader", READERS, ids=str)
def test_changed_bytes(reader: Reader, count: int, tmp_path: Path) -> None:
    path = tmp_path / reader.file

    @settings(max_examples=count, suppress_health_check=_CHECKS, **_FEW)  # type: ignore[arg-type]
    @given(st.one_of(changed_bytes(reader.good()), st.binary(max_size=200)))
    def holds(data: bytes) -> None:
        path.write_bytes(data)
        attempt(reader, path)

    holds()


@pytest.mark.parametrize("count", reduced(_SOME, lambda n: n == 40))
@pytest.mark.parametrize("reader", [r for r in READERS if r.text], ids=str)
def test_changed_values(reader: Reader, count: int, tmp_path: Path) -> None:
    path = tmp_path / reader.file

    @settings(max_examples=count, suppress_health_check=_CHECKS, **_FEW)  # type: ignore[arg-type]
    @given(changed_json(reader.good().decode()))
    def holds(text: str) -> None:
        path.write_text(text)
        attempt(reader, path)

    holds()


@pytest.mark.parametrize("reader", READERS, ids=str)
def test_files_that_end_too_early(reader: Reader, tmp_path: Path) -> None:
    good, path = reader.good(), tmp_path / reader.file
    refused = 0
    for part in range(20):
        path.write_bytes(good[: len(good) * part // 20])
        refused += bool(attempt(reader, path))
    if reader.name not in ("status", "cache entry", "configuration"):  # these need not say so
        assert refused == 20


_TEXTS = {
    "digits": '{"schema": ' + "9" * 5000 + "}",
    "lists": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "closed": "[" * 900 + "]" * 900,
    "constant": '{"schema": NaN}',
    "large": '{"schema": 1e999}',
    "surrogate": '{"schema": "\\ud800"}',
    "mark": "\ufeff{}",
    "nothing": "",
    "brackets": '{"x": [' + "[[[[]]]]," * 90_000 + "0]}",
    "empties": '{"x": [' + "{}," * 400_000 + "0]}",
}


@pytest.mark.parametrize("reader", [r for r in READERS if r.text], ids=str)
@pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
def test_texts_that_are_no_data(reader: Reader, text: str, tmp_path: Path) -> None:
    path = tmp_path / reader.file
    path.write_text(text, encoding="utf-8")
    if attempt(reader, path) == "":
        assert reader.name == "cache entry"  # which is built again


@pytest.mark.parametrize("program", ["of_structs", "that_overwrites"])
@pytest.mark.parametrize("count", reduced([120, 5000], lambda n: n == 120))
def test_tapes_with_changed_values(program: str, count: int, tmp_path: Path) -> None:
    good = members(program)["tapes.json"].decode()
    reader = Reader("tapes", "run.adt", bytes, read_capture)

    @settings(max_examples=count, suppress_health_check=_CHECKS, **_FEW)  # type: ignore[arg-type]
    @given(changed_json(good))
    def holds(text: str) -> None:
        attempt(reader, with_tapes(tmp_path / "run.adt", program, text))

    holds()


@pytest.mark.parametrize("program", ["of_structs", "that_overwrites"])
@pytest.mark.parametrize("count", reduced([150, 5000], lambda n: n == 150))
def test_traces_with_changed_values(program: str, count: int, tmp_path: Path) -> None:
    """What is read is drawn in every way: picture, table and page. Else the member is named."""
    good, seen = members(program)["traces.json"].decode(), Counter[bool]()
    reader = Reader("traces", "run.adt", bytes, draw_capture)

    @settings(max_examples=count, suppress_health_check=_CHECKS, **_FEW)  # type: ignore[arg-type]
    @given(changed_json(good))
    def holds(text: str) -> None:
        words = attempt(reader, with_traces(tmp_path / "run.adt", program, text))
        assert not words or "its traces.json is damaged" in words
        seen[not words] += 1

    holds()
    assert min(seen[True], seen[False]) > count // 10, seen


@pytest.mark.filterwarnings("error")  # a header is not to be heard of otherwise, either
@pytest.mark.parametrize("count", reduced([150, 5000], lambda n: n == 150))
def test_odd_arrays(count: int, tmp_path: Path) -> None:
    """Under their right digests, so that they are looked at. The error names the member."""
    reader = Reader("arrays", "run.adt", bytes, read_capture)
    good, seen = arrays("of_views"), Counter[str]()

    @settings(max_examples=count, suppress_health_check=_CHECKS, **_FEW)  # type: ignore[arg-type]
    @given(st.sampled_from(good).flatmap(lambda a: st.tuples(st.just(a), odd_arrays(a))))
    def holds(arrays: tuple[bytes, bytes]) -> None:
        words = attempt(reader, with_array(tmp_path / "run.adt", "of_views", *arrays))
        name = f"arrays/{hashlib.sha256(arrays[1]).hexdigest()}.npy"
        assert not words or name in words
        seen[words.replace(name, "MEMBER").partition(" (")[0]] += 1

    holds()
    # Each is met: arrays that are read, of another size, and odd ones.
    assert len(seen) == 3 and seen["its MEMBER does not have the shape"] > count // 2, seen


def test_an_error_does_not_repeat_what_it_is_about() -> None:
    with pytest.raises(codec.CodecError, match=r"\$\.schema: expected int, got a list of 100000"):
        codec.loads(Report, json.dumps({"schema": [0] * 100_000}))


def _nested(depth: int) -> str:
    head = '[{"kind": "If", "span": [-1, 0, 0, 0, 0], "atoms": [[0]], "blocks": ['
    return head * depth + "[]" + ", []]}]" * depth


@pytest.mark.parametrize(("depth", "why"), [(250, "nested more than 200"), (900, "too deeply")])
def test_blocks_in_blocks(depth: int, why: str, tmp_path: Path) -> None:
    data = document("of_loops")
    data["functions"][0]["body"] = "HERE"
    reader = Reader("tapes", "run.adt", bytes, read_capture)
    text = json.dumps(data).replace('"HERE"', _nested(depth))
    path = with_tapes(tmp_path / "run.adt", "of_loops", text)
    assert why in attempt(reader, path)


def test_fields_that_are_not_what_the_parameters_come_from(tmp_path: Path) -> None:
    data = document("of_structs")
    for s in data["structs"]:
        for f in s["fields"]:
            if f["type"].startswith("array<"):
                f["type"] = "indexed<struct<0>,1>"
    data["structs"][0]["fields"][0]["type"] = "array<float32,1>"
    reader = Reader("tapes", "run.adt", bytes, read_capture)
    path = with_tapes(tmp_path / "run.adt", "of_structs", json.dumps(data))
    assert "its arguments do not match its parameters" in attempt(reader, path)


@pytest.mark.parametrize("axes", ["0", "-1", "5"])
def test_axes_of_a_launch_that_there_are_not(axes: str, tmp_path: Path) -> None:
    data = document("of_loops")
    (first, *_) = [f for f in data["functions"] if f["is_kernel"]]
    tid = next(s for s in first["body"] if s["word"] == "tid")
    first["atoms"][tid["atoms"][1][1]]["numbers"] = [axes]
    reader = Reader("tapes", "run.adt", bytes, read_capture)
    path = with_tapes(tmp_path / "run.adt", "of_loops", json.dumps(data))
    assert f"tid gives 1 to 4 coordinates, not {axes}" in attempt(reader, path)
