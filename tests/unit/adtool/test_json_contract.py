"""The JSON of `adtool check`: its exact keys; what is not known is null or NaN, never 0."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from adtool.assemble import build_report
from adtool.report import Duration, Failure, failed_report, from_json, to_json
from engine.autograd import Entry, TapeResult, Unchecked, WholeResult

Make = Callable[..., Any]

REPORT = {
    "schema", "tool", "script", "device", "ok", "exit_code", "launches", "end_to_end", "findings",
    "error", "gate", "tapes", "seconds", "notes", "durations",
    "taylor", "gate_accuracy", "partial", "recorded", "sampled",
}  # fmt: skip
LAUNCH = {
    "tape", "index", "kernel", "file", "line", "dim", "pairs", "call_file", "call_line", "skipped",
    "framework",
}  # fmt: skip
PAIR = {
    "input", "output", "verdict", "checked", "max_abs_error", "max_rel_error", "worst",
    "directional", "reason", "digits_lost", "scale", "off", "forward_error", "by_whole", "joint",
    "tolerance",
}  # fmt: skip
WORST = {"row", "col", "ad", "oracle", "row_name", "col_name", "rel_error", "allowed"}
WHOLE = {"tape", "verdict", "rel_error", "reason", "rounding", "tolerance"}
FINDING = {
    "code", "name", "severity", "message", "help", "kernel", "tape", "launch", "file", "line",
    "column", "end_line", "end_column", "count", "notes", "suppressed", "suppressed_by",
    "arrays", "near", "fingerprint", "source", "fix", "follows", "idle",
}  # fmt: skip
FAILURE = {"kind", "message", "help", "detail", "problems"}


def data(session: Any, **given: Any) -> dict[str, Any]:
    text = to_json(build_report(session, "error", **given))
    assert to_json(from_json(text)) == text
    found: dict[str, Any] = json.loads(text)
    return found


def test_keys(session: Make, launch: Make, pair: Make) -> None:
    tape = TapeResult(
        0, (launch(0, pair(), pair("fail")),), whole=WholeResult("pass", 2, 1.0, 1.0, 1e-9)
    )
    found = data(session(tape, durations=(Duration(0, 0, "k", 1.0),)))
    assert set(found) == REPORT
    assert set(found["launches"][0]) == LAUNCH
    assert all(set(p) == PAIR and set(p["worst"]) == WORST for p in found["launches"][0]["pairs"])
    assert [set(e) for e in found["end_to_end"]] == [WHOLE]
    assert [set(f) for f in found["findings"]] == [FINDING]
    assert set(found["durations"][0]) == {"tape", "launch", "kernel", "seconds"}
    assert found["error"] is None and found["findings"][0]["suppressed"] is False


def test_what_was_not_compared_has_no_errors(session: Make, launch: Make, pair: Make) -> None:
    skipped = pair("skipped", worst=None, max_abs_error=0.0, max_rel_error=0.0)
    one = data(session([launch(0, pair(), skipped)]))["launches"][0]["pairs"][1]
    assert one["max_abs_error"] is one["max_rel_error"] is one["worst"] is None


def test_an_error_that_is_relative_to_nothing(session: Make, launch: Make, pair: Make) -> None:
    wrong = pair("fail", max_abs_error=0.5, max_rel_error=0.0, worst=Entry(0, 0, 0.5, 0.0))
    exact = pair(max_abs_error=0.0, max_rel_error=0.0)
    first, second = data(session([launch(0, wrong, exact)]))["launches"][0]["pairs"]
    assert (first["max_abs_error"], first["max_rel_error"]) == (0.5, None)
    assert (second["max_abs_error"], second["max_rel_error"]) == (0.0, 0.0)


def test_what_is_not_finite(session: Make, launch: Make, pair: Make) -> None:
    bad = pair("nan", max_abs_error=0.0, max_rel_error=math.inf, worst=Entry(0, 0, math.nan, 1.0))
    one = data(session([launch(0, bad)]))["launches"][0]["pairs"][0]
    assert (one["max_abs_error"], one["max_rel_error"]) == ("nan", "inf")
    assert one["worst"]["ad"] == "nan"


def test_errors_of_whole_tapes(session: Make, launch: Make, pair: Make) -> None:
    wholes = [
        (WholeResult("pass", 2, 1.0, 1.0, 0.0), 0.0),
        (WholeResult("pass", 2, 1.0, 1.5, 0.5), 0.5),
        (WholeResult("skipped", reason="a host step"), None),
        (WholeResult("inconclusive", reason="not finite"), None),
        (WholeResult("inconclusive", 1, 1.0, 2.0), None),
        (WholeResult("nan", 1, math.nan), "nan"),
    ]
    tapes = [TapeResult(i, (launch(0, pair()),), whole=w) for i, (w, _) in enumerate(wholes)]
    found = data(session(*tapes))["end_to_end"]
    assert [e["rel_error"] for e in found] == [size for _, size in wholes]


def test_no_place_is_null(session: Make, launch: Make, pair: Make) -> None:
    host = Unchecked(1, "a function recorded with Tape.record_func", "no check covers it")
    found = data(session(TapeResult(0, (launch(0, pair()),), (host,))))
    (finding,) = found["findings"]
    for key in ("file", "line", "column", "end_line", "end_column", "suppressed_by"):
        assert finding[key] is None
    assert found["launches"][0]["call_file"] is found["launches"][0]["call_line"] is None


def test_the_report_of_wrong_usage_has_the_same_keys() -> None:
    found = json.loads(to_json(failed_report(Failure("usage", "no"), "adtool 1")))
    assert set(found) == REPORT and set(found["error"]) == FAILURE
    assert found["script"] is found["device"] is None
    assert (found["ok"], found["exit_code"], found["error"]["kind"]) == (False, 2, "usage")
