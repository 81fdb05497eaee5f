"""There are enough programs, and their expectations are read and compared as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import invariants
from tests.programs import expectations
from tests.programs.runner import BROKEN, RIGHT


def test_there_are_enough_programs() -> None:
    assert len(BROKEN) >= 36 and len(RIGHT) >= 34
    assert all(25 <= len(p.read_text().splitlines()) <= 90 for p in [*BROKEN, *RIGHT])


def test_every_expectation_can_be_read() -> None:
    for path in BROKEN:
        assert expectations.read(path).findings, path.name
    for path in RIGHT:
        expected = expectations.read(path)
        assert (expected.exit_code, expected.plain, expected.findings) == (0, 0, []), path.name


PROGRAM = """\
# expect: exit=1
# expect: allow=G012 the host step cannot be replayed
def step(
    a,
):  # expect: G001 x
    a = 1
    call(
        a,
    )  # expect: G003; G004
    b = a  # expect: warning[G006|G011]; note[G005]
    return a  # expect: G001 x
"""


def finding(code: str, line: int | None, severity: str = "error") -> dict[str, Any]:
    file = None if line is None else "elsewhere/program.py"
    return {"code": code, "line": line, "file": file, "severity": severity, "message": "m"}


GOOD = [
    ("G001", 4),
    ("G003", 7),
    ("G004", 9),
    ("G012", None),
    ("G011", 10, "warning"),
    ("G005", 10, "note"),
]


@pytest.mark.parametrize(
    ("found", "exit_code", "count"),
    [
        (GOOD, 1, 0),
        ([("G001", 11), *GOOD[1:]], 1, 0),
        ([*GOOD, ("G005", 6, "note")], 1, 0),
        (GOOD, 0, 1),
        (GOOD[1:], 1, 1),
        (GOOD[:-1], 1, 1),
        ([("G001", 6), *GOOD[1:]], 1, 2),
        ([*GOOD, ("G010", 7)], 1, 1),
        ([*GOOD, ("G003", 7, "warning")], 1, 1),
        ([GOOD[0], ("G003", 7, "warning"), *GOOD[2:]], 1, 2),
        ([*GOOD, ("G003", None)], 1, 1),
    ],
)
def test_reports_are_compared(
    tmp_path: Path, found: list[tuple[Any, ...]], exit_code: int, count: int
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    report = {"exit_code": exit_code, "error": None, "findings": [finding(*f) for f in found]}
    assert len(expectations.differences(expectations.read(path), report, path)) == count


@pytest.mark.parametrize(
    "comment", ["G1", "exit", "allow=G012", "G003 a b", "G001|x", "error[G001]", "note[G1"]
)
def test_a_comment_that_cannot_be_read_is_an_error(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"# expect: exit=0\n# expect: {comment}\n")
    with pytest.raises(ValueError, match=r"program\.py:2"):
        expectations.read(path)


@pytest.mark.parametrize(
    ("adjoint", "reference", "relative", "right"),
    [
        (1.0, 1.0 + 1e-6, 1e-6, True),
        (0.0, -9.25e-12, None, True),
        (0.0, -9.25e-12, 1.0, False),  # relative to what is zero as far as can be told
        (1.0, 1.0 + 1e-3, 1e-6, False),
        (1.0, 1.0, None, False),
    ],
)
def test_a_worst_entry_that_does_not_fit_its_row_is_seen(
    adjoint: float, reference: float, relative: float | None, right: bool
) -> None:
    worst = {"ad": adjoint, "oracle": reference, "rel_error": relative, "allowed": 1e-5}
    row = {"verdict": "pass", "max_rel_error": 0.0, "tolerance": 1e-5, "worst": worst}
    report = {"launches": [{"pairs": [row]}], "end_to_end": []}
    assert bool(invariants.passing_errors(report)) is not right
    row["verdict"] = "fail"
    assert not invariants.passing_errors(report)


def test_a_row_that_passes_beside_an_error_is_seen() -> None:
    def reports(verdict: str, error: object) -> list[dict[str, Any]]:
        row = {"verdict": verdict, "max_rel_error": error, "rel_error": error, "tolerance": 1e-5}
        launches: dict[str, Any] = {"launches": [{"pairs": [row]}], "end_to_end": []}
        return [launches, {"runs": [launches]}, {"launches": [], "end_to_end": [row]}]

    for error in (0.99, 2e-5, "inf", "nan"):
        for report in reports("pass", error):
            assert invariants.passing_errors(report)
    for verdict, known in (("pass", 1e-5), ("pass", None), ("fail", 0.99), ("kink", 0.5)):
        for report in reports(verdict, known):
            assert not invariants.passing_errors(report)
