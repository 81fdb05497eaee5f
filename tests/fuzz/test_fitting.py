"""Large texts that do not fit are refused before any of them is built."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings

from adtool import codec, fitting
from adtool.codec import CodecError
from adtool.report import Report
from engine.archive import Archive
from tests.fuzz.mutations import changed_bytes, changed_json
from tests.fuzz.samples import members
from tests.sweeps import reduced

_LARGE = 3 << 20  # characters; what is shorter may take 32 MiB all the same
_CHECKS = [HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large]


def _agrees(text: str) -> None:
    """Whatever can be decoded fits; what does not fit cannot be."""
    try:
        codec.decode(Archive, codec.parse(text))
    except CodecError:
        return
    fitting.fit(Archive, text)


def test_what_is_good_fits() -> None:
    for program in ("of_structs", "that_overwrites"):
        fitting.fit(Archive, members(program)["tapes.json"].decode())


@pytest.mark.parametrize("count", reduced([30, 4000], lambda n: n == 30))
def test_what_can_be_read_fits(count: int) -> None:
    good = members("of_structs")["tapes.json"].decode()
    few = settings(deadline=None, database=None, derandomize=True, max_examples=count,
                   suppress_health_check=_CHECKS)  # fmt: skip

    @few
    @given(changed_json(good))
    def values(text: str) -> None:
        _agrees(text)

    @few
    @given(changed_bytes(good.encode()))
    def characters(data: bytes) -> None:
        _agrees(data.decode("utf-8", "replace"))

    values()
    characters()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"schema": []}, "$.schema: expected int, got '[]"),
        ({"schema": 1.5}, "$.schema: expected int"),
        ({"schema": 1, "tool": None}, "$.tool: expected str, got 'null"),
        ({"ok": 1}, "$.ok: expected bool"),
        ({"findings": {}}, "$.findings: expected a list"),
        ({"findings": [1]}, "$.findings[0]: expected an object"),
        ({"seconds": True}, "$.seconds: expected a number"),
        ({"schema": 1}, "`tool` is missing"),
        ([], "$: expected an object, got '[]'"),
    ],
)
def test_what_does_not_fit(value: object, said: str) -> None:
    with pytest.raises(fitting.Unfit) as found:
        fitting.fit(Report, json.dumps(value))
    place = "$" + "".join(reversed(found.value.path))
    assert said in f"{place}: {found.value.what}"


def _filled(item: str) -> str:
    return ",".join([item] * (_LARGE // (len(item) + 1)))


_BAD = {
    "numbers": f"[{_filled('12345')}]",
    "lists": f"[{_filled('[]')}]",
    "objects": '{"x": [' + _filled("{}") + "]}",
    "launches, the last bad": '{"launches": [' + _filled("[[]]") + "]}",
    "cut off": '{"x": [' + _filled("1"),
    "a bad word": '{"x": [' + _filled("1") + ", nope]}",
    "strings": '{"notes": [' + _filled('"abcdef"') + ", 1]}",
    "one string": '{"tool": "' + "\\u0041" * (_LARGE // 6),
    "deep": '{"x": ' + "[" * _LARGE,
    "spaces": " " * _LARGE + "]",
}


# Those that take longest to read; one that is cut off is read as far.
_LONG = ("objects", "a bad word")


@pytest.mark.parametrize("kind", reduced(list(_BAD), lambda kind: kind not in _LONG))
def test_malformed_texts_take_no_memory(kind: str) -> None:
    """The text itself aside, less than it once more."""
    text = _BAD[kind]
    codec.parse("{}", Report)
    tracemalloc.start()
    try:
        with pytest.raises(CodecError):
            codec.loads(Report, text)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(text)
