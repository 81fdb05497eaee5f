"""`adtool baseline`, and the gates of `adtool check` that are about accuracy."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.test_check import GOOD
from tests.cli.test_options import WRONG

FILE = "adtool-baseline.jsonl"


def test_a_baseline_from_its_writing_to_its_end(adtool: Any) -> None:
    adtool.script(GOOD, "good.py")
    adtool.script(WRONG, "sub/wrong.py")
    path = adtool.folder / FILE
    done = adtool("baseline", "write", "-q", "--jobs", "1", "--each", "good.py", "sub/wrong.py")
    assert done.returncode == 0, done.stdout + done.stderr
    text = path.read_text()
    assert str(adtool.folder) not in text
    assert '"script": "sub/wrong.py", "finding": "G001", "severity": "error"' in text

    # Known findings pass; of a script alone, the other one's lines stay.
    done = adtool("baseline", "compare", "sub/wrong.py")
    lines = [x for x in text.splitlines() if '"script": "sub/wrong.py"' in x]
    count = sum('"finding"' not in x for x in lines)
    assert 1 < count < len(lines)
    assert done.stdout.endswith(f"\ncompared with {FILE}: {count} entries of 1 script\n")
    assert "compared" not in adtool("baseline", "compare", "-q", "sub/wrong.py").stdout
    report = adtool.report("--baseline", FILE, "sub/wrong.py")
    assert (report["exit_code"], report["notes"]) == (0, [])
    assert [(f["code"], f["suppressed_by"]) for f in report["findings"]] == [("G001", "baseline")]
    assert adtool("baseline", "write", "good.py").returncode == 0
    assert path.read_text() == text

    # A report that is there is not run again.
    (adtool.folder / "r.json").write_text(json.dumps(report))
    path.write_text(text.replace('"verdict": "fail"', '"verdict": "pass"'))
    done = adtool("baseline", "compare", "r.json")
    assert done.returncode == 1, done.stdout
    assert "error[G015]: kernel `cubes` is less accurate than in the baseline" in done.stdout
    assert "its verdict was pass and is now fail" in done.stdout

    # It can be left out, where the settings name it; a report is not where one comes from.
    path.write_text(text)
    settings = adtool.folder / "pyproject.toml"
    settings.write_text(f'[tool.adtool]\nbaseline = "{FILE}"\n')
    assert adtool("check", "sub/wrong.py").returncode == 0
    assert adtool("check", "--baseline", "", "sub/wrong.py").returncode == 1
    settings.unlink()
    done = adtool("baseline", "write", "r.json")
    assert done.returncode == 2 and "is not a script" in done.stderr

    # New and gone kernels are told, and adopted on request.
    adtool.script(GOOD.replace("square", "squares"), "good.py")
    path.write_text(text)
    done = adtool("baseline", "compare", "--adopt", "good.py")
    assert done.returncode == 0
    assert "not yet in the file" in done.stdout and "expired" in done.stdout
    assert '"squares"' in path.read_text() and '"square"' not in path.read_text()


def test_a_script_that_fails_keeps_its_lines(adtool: Any) -> None:
    adtool.script(GOOD, "good.py")
    assert adtool("baseline", "write", "good.py").returncode == 0
    text = (adtool.folder / FILE).read_text()
    adtool.script("raise SystemExit(3)\n", "good.py")
    done = adtool("baseline", "write", "good.py")
    assert done.returncode == 2 and "nothing could be checked" in done.stdout
    assert (adtool.folder / FILE).read_text() == text


def test_accuracy_at_the_gate(adtool: Any) -> None:
    adtool.script(GOOD)
    adtool.folder.joinpath("pyproject.toml").write_text(
        "[tool.adtool]\ngate = ['warning', 'accuracy=1e-5']\n"
    )
    report = adtool.report("script.py")
    assert (report["gate"], report["gate_accuracy"], report["exit_code"]) == ("warning", 1e-5, 0)
    report = adtool.report("--gate", "accuracy=1e-18", "script.py")
    assert (report["gate"], report["gate_accuracy"], report["exit_code"]) == ("error", 1e-18, 1)
    assert "G016" in {f["code"] for f in report["findings"]}


def test_errors(adtool: Any) -> None:
    adtool.script(GOOD)
    (adtool.folder / "b.jsonl").write_text("{}\n")
    for words, told in (
        (
            ["check", "--baseline", "none.jsonl", "script.py"],
            "the baseline `none.jsonl` does not exist",
        ),
        (["baseline", "write", "--baseline", "b.jsonl", "script.py"], "`b.jsonl`, line 1"),
        (
            ["baseline", "write", "--adopt", "script.py"],
            "--adopt works only with `baseline compare`",
        ),
        (["baseline"], "no action is named on the command line"),
        (["check", "--gate", "accuracy=x", "script.py"], "an accuracy is a number above 0"),
    ):
        done = adtool(*words)
        assert done.returncode == 2 and told in done.stderr, (words, done.stderr)
        assert "Traceback" not in done.stderr
