"""docs/warp-tests.md is made of docs/warp-tests.json; every test that fails there has a reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.wild import peer_tests  # noqa: E402

RULE, THIN = "=" * 70, "-" * 70
LOG = f"""..F.s
{RULE}
FAIL: test_words_cpu (a.B.test_words_cpu)
{THIN}
Traceback (most recent call last):
AssertionError: "one" does not match "error[E104]: two
 --> here
{RULE}
ERROR: test_parts_cpu (a.B.test_parts_cpu) [first]
{THIN}
AttributeError: type object 'types' has no attribute 'x'

{RULE}
ERROR: test_parts_cpu (a.B.test_parts_cpu) [second]
{THIN}
ValueError: something new

{THIN}
Ran 5 tests in 0.1s

FAILED (failures=1, errors=2, skipped=1)
"""


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "make_peer_tests.py"), "--check"])
    assert done.returncode == 0, "run tools/make_peer_tests.py"


def test_every_test_that_fails_has_a_reason() -> None:
    data = json.loads((ROOT / "docs" / "warp-tests.json").read_text())
    for f in data["files"]:
        assert set(f["why"]) <= set(peer_tests.REASONS) - {"unknown"}, f["file"]
        assert sum(map(len, f["why"].values())) == f["failed"]
        assert f["passed"] >= 0


def test_a_folder_of_logs(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "b.log").write_text("Traceback (most recent call last):\nImportError: no\n")
    a, b = peer_tests.measured(tmp_path)
    assert (a["passed"], a["failed"], a["skipped"]) == (2, 2, 1)
    assert a["why"] == {"private": ["test_parts_cpu"], "words": ["test_words_cpu"]}
    assert b["silent"]
    text = peer_tests.page({"versions": {"x": "1"}, "files": [a, b]})
    assert "**2 of 4 pass**; the suite skipped 1." in text
    assert "2 of 3" in text
    assert "1 files load none" in text


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("LaunchError: error[E112]: tiles", "missing"),
        ("AssertionError: RuntimeError not raised", "allowed"),
        ("ValueError: something new", "unknown"),
    ],
)
def test_reasons(said: str, expected: str) -> None:
    assert peer_tests.reason("test_a", "test_b_cpu", said) == expected
