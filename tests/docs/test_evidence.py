"""docs/evidence.md is what the tool makes of docs/evidence.json and of the reported programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tools.wild import evidence  # noqa: E402


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools" / "make_evidence.py"), "--check"])
    assert done.returncode == 0, "run tools/make_evidence.py"


def test_every_reported_program_is_in_the_table() -> None:
    data = json.loads((ROOT / "docs" / "evidence.json").read_text())
    programs = sorted((ROOT / "tests" / "programs" / "reported").glob("*.py"))
    assert set(data["reported"]["programs"]) == {p.stem for p in programs}
    text = (ROOT / "docs" / "evidence.md").read_text()
    for p in programs:
        facts = evidence.facts(p)
        assert all(facts[k] for k in ("issue", "title", "was"))
        assert f"issues/{facts['issue']})" in text
    assert evidence.facts(programs[0])["said"] == ""
    (nan,) = [p for p in programs if "0395" in p.name]
    assert evidence.facts(nan)["said"] == "G002 (error)"


ROWS: list[dict[str, Any]] = [
    {"kernel": "a", "state": "ran", "forward": "equal", "gradient": "equal"},
    {"kernel": "b", "state": "ran", "forward": "equal", "gradient": "right here",
     "table": [["x", [0], 1.0, 2.0, 1.0, "right here"]]},
    {"kernel": "c", "state": "skipped", "cause": "with tiles"},
    {"kernel": "d", "state": "not planned", "cause": "E106: no"},
]  # fmt: skip


def test_results_are_counted(tmp_path: Path) -> None:
    results = tmp_path / "some.jsonl"
    results.write_text("".join(json.dumps(r) + "\n" for r in ROWS))
    found = evidence.summary(results, {"some": "1.2"})
    assert (found["version"], found["kernels"], found["ran"]) == ("1.2", 4, 2)
    assert found["gradient"] == {"equal": 1, "right here": 1}
    assert found["left_out"] == {"with tiles": 1, "not planned": 1}
    assert [d["kernel"] for d in found["differ"]] == ["b"]
    data = {"versions": {"python": "3.11"}, "packages": [found], "lowered": [],
            "reported": {"version": "1", "programs": {}}}  # fmt: skip
    assert "| some 1.2 | 2 of 4 | 2 | 0 | 0 | 0 |" in evidence.page(data, [])
    assert "| together | 1 | 0 | 1 | 0 | 0 | 0 |" in evidence.page(data, [])
