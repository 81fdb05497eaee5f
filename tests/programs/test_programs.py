"""Whole programs, right and broken: `adtool check` says of each what its comments expect.

See `expectations.py` for the comments. A fixed third of the programs runs by default, all of them
with `-m "sweep or not sweep"`.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.programs import expectations
from tests.sweeps import reduced

HERE = Path(__file__).parent
BROKEN = sorted((HERE / "broken").glob("*.py"))
RIGHT = sorted((HERE / "right").glob("*.py"))
TIMEOUT = 300.0


def usual(path: Path) -> bool:
    """A third of the programs, the same ones on every machine."""
    return int(hashlib.sha256(path.stem.encode()).hexdigest(), 16) % 3 == 0


def cases(paths: list[Path]) -> list[Any]:
    return [
        pytest.param(*p.values, id=p.values[0].stem, marks=p.marks) for p in map(_as_param, paths)
    ]


def _as_param(path: Path) -> Any:
    (case,) = reduced([path], usual)
    return case if hasattr(case, "marks") else pytest.param(case)


def run(*args: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the folder of the programs."""
    return subprocess.run(
        [sys.executable, *args],
        cwd=HERE,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
    )


def verify(path: Path) -> None:
    """Runs a program by plain Python and under the check, and compares with its expectation."""
    expected = expectations.read(path)
    plain = run(str(path))
    assert plain.returncode == expected.plain, plain.stderr
    assert plain.stdout.strip() or expected.plain
    done = run("-m", "adtool", "check", "--format", "json", *expected.args, str(path))
    report = json.loads(done.stdout)
    assert report["exit_code"] == done.returncode
    wrong = expectations.differences(expected, report, path)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", cases(BROKEN))
def test_broken_program_is_found_out(path: Path) -> None:
    verify(path)


@pytest.mark.parametrize("path", cases(RIGHT))
def test_right_program_is_not_accused(path: Path) -> None:
    verify(path)


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
