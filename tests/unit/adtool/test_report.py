from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import pytest

from adtool.assemble import build_report
from adtool.report import ReportError, exit_code, from_json, to_json
from engine.autograd import Entry, Unchecked
from engine.autograd import TapeResult as Tape

Make = Callable[..., Any]

CONTRACT = {
    "schema", "tool", "script", "device", "ok", "exit_code", "launches", "end_to_end", "findings",
}  # fmt: skip
LAUNCH = {"tape", "index", "kernel", "file", "line", "dim", "pairs"}
WORST = {"row", "col", "ad", "oracle", "row_name", "col_name", "rel_error", "allowed"}
PAIR = {"input", "output", "verdict", "checked", "max_abs_error", "max_rel_error", "worst"}
FINDING = {
    "code", "name", "severity", "message", "help", "kernel", "tape", "launch", "file", "line",
    "column",
}  # fmt: skip


@pytest.fixture
def mixed(session: Make, launch: Make, pair: Make) -> Any:
    nan = pair("nan", worst=Entry(0, 0, math.nan, 1.0), max_abs_error=math.inf)
    return session([launch(0, pair(), pair("fail")), launch(1, nan)])


def test_json_has_every_field_of_the_contract(mixed: Any) -> None:
    data = json.loads(to_json(build_report(mixed, "error")))
    assert set(data) >= CONTRACT
    assert set(data["launches"][0]) >= LAUNCH
    assert set(data["launches"][0]["pairs"][0]) >= PAIR
    assert set(data["launches"][0]["pairs"][0]["worst"]) == WORST
    assert set(data["findings"][0]) >= FINDING
    assert (data["schema"], data["ok"], data["exit_code"]) == (1, False, 1)
    assert data["launches"][1]["pairs"][0]["worst"]["ad"] == "nan"
    assert data["launches"][1]["pairs"][0]["max_abs_error"] == "inf"


def test_json_round_trip(mixed: Any) -> None:
    report = build_report(mixed, "error")
    assert to_json(from_json(to_json(report))) == to_json(report)


def test_json_without_added_fields_can_be_read(mixed: Any) -> None:
    data = json.loads(to_json(build_report(mixed, "error")))
    data = {k: v for k, v in data.items() if k in CONTRACT}
    data["launches"] = [{k: v for k, v in x.items() if k in LAUNCH} for x in data["launches"]]
    data["findings"] = [{k: v for k, v in x.items() if k in FINDING} for x in data["findings"]]
    assert from_json(json.dumps(data)).findings[0].code == "G001"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": 2}, "schema 2 is unknown"),
        ({"schema": "1"}, "$.schema"),
        ({"launches": 3}, "$.launches"),
        ({"findings": [{"code": "G001"}]}, "`name` is missing"),
    ],
)
def test_reading_validates(mixed: Any, change: dict[str, Any], words: str) -> None:
    data = json.loads(to_json(build_report(mixed, "error"))) | change
    with pytest.raises(ReportError) as caught:
        from_json(json.dumps(data))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("verdict", "gate", "code"),
    [
        ("pass", "note", 0),
        ("fail", "error", 1),
        ("nan", "error", 1),
        ("kink", "error", 0),
        ("kink", "warning", 0),
        ("kink", "note", 1),
    ],
)
def test_exit_code_by_gate(
    session: Make, launch: Make, pair: Make, verdict: str, gate: Any, code: int
) -> None:
    report = build_report(session([launch(0, pair(), pair(verdict))]), gate)
    assert (report.exit_code, report.ok) == (code, code == 0)


def test_inconclusive_beside_a_pass(session: Make, launch: Make, pair: Make) -> None:
    checked = session([launch(0, pair(), pair("inconclusive"))])
    assert build_report(checked, "error").exit_code == 0
    assert build_report(checked, "warning").exit_code == 1


def test_a_failure_outweighs_findings() -> None:
    assert exit_code((), "error", True) == 2


class TestNothingChecked:
    def test_no_tape(self, session: Make) -> None:
        report = build_report(session(), "error")
        assert report.exit_code == 2
        assert "no tape" in report.error.message  # type: ignore[union-attr]

    def test_empty_tape(self, session: Make) -> None:
        report = build_report(session([]), "error")
        assert report.exit_code == 2
        assert "no kernel was launched" in report.error.message  # type: ignore[union-attr]

    def test_all_left_out(self, session: Make) -> None:
        from adtool.job import CheckOptions

        options = CheckOptions(kernels=("sprung*",))
        report = build_report(session([], options=options, kernels=("spring_forces",)), "error")
        assert report.exit_code == 2
        assert "select no kernel" in report.error.message  # type: ignore[union-attr]
        assert "`spring_forces`" in report.error.help  # type: ignore[union-attr]
        assert "'sprung*' matches no kernel" in report.notes[0]

    def test_all_skipped(self, session: Make, launch: Make) -> None:
        why = "the launch has no floating-point input array with requires_grad=True"
        report = build_report(session([launch(0, skipped=why)]), "error")
        assert report.exit_code == 2
        assert "requires_grad" in report.error.help  # type: ignore[union-attr]
        assert [f.code for f in report.findings] == ["G012"]

    def test_the_real_reasons_are_named(self, session: Make, launch: Make, pair: Make) -> None:
        skipped = [
            launch(0, skipped="arguments 'x' and 'y' overlap in memory"),
            launch(1, skipped="the launch has no threads"),
            launch(2, skipped="the launch has no threads"),
            launch(3, pair("skipped", reason="the array is empty")),
        ]
        error = build_report(session(skipped), "error").error
        assert error is not None
        assert error.message == (
            "nothing was checked: arguments 'x' and 'y' overlap in memory (1 launch); "
            "the launch has no threads (2 launches); the array is empty (1 launch)"
        )
        assert "requires_grad" not in error.help
        many = [launch(i, skipped=f"reason {i}") for i in range(5)]
        error = build_report(session(many), "error").error
        assert error is not None and error.message.endswith("; and 2 more reasons")

    def test_a_pass_without_a_comparison(self, session: Make, launch: Make, pair: Make) -> None:
        empty = pair(checked=0, worst=None)
        assert build_report(session([launch(0, empty)]), "error").exit_code == 2
        some = pair(checked=0, directional=2)
        assert build_report(session([launch(0, some)]), "error").exit_code == 0

    def test_nothing_but_inconclusive(self, session: Make, launch: Make, pair: Make) -> None:
        unsure = pair("inconclusive", reason="argument 'x' holds NaN or Inf at launch")
        report = build_report(session([launch(0, unsure)]), "error")
        assert report.exit_code == 2
        assert "argument 'x' holds NaN" in report.error.message  # type: ignore[union-attr]
        assert "trustworthy" in report.error.message  # type: ignore[union-attr]

    def test_only_a_recorded_function(self, session: Make) -> None:
        tape = Tape(0, (), (Unchecked(0, "a recorded function", "unknown"),))
        report = build_report(session(tape), "error")
        assert report.exit_code == 2
        assert [f.code for f in report.findings] == ["G012"]
