"""Runs the tests that are marked `gpu`, and counts what came of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from benchmarks.peers import ROOT, placeless

# Where those tests are: to collect others takes packages that need not be there.
WHERE = ("tests/backend/test_second_device.py", "tests/backend/cuda")
PATIENCE = 15.0  # seconds that an interrupted run has to say what there was


def run(seconds: float, processes: int, log: Path, marker: str = "gpu") -> dict[str, Any]:
    """Counts, and what failed. The run ends after so many seconds, whatever is left."""
    report = log.with_suffix(".xml")
    command = [
        sys.executable, "-X", "faulthandler", "-m", "pytest", "-q", "-m", marker,
        "-n", str(processes), "--dist=worksteal", "-p", "no:cacheprovider", "-o", "filterwarnings=",
        "--continue-on-collection-errors", f"--junitxml={report}", "-o", "junit_logging=no",
        *WHERE,
    ]  # fmt: skip
    start = time.monotonic()
    ended = True
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            ended = False
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    found = {
        "command": "pytest " + " ".join(command[5:11]),
        "seconds": round(time.monotonic() - start, 1), "ended": ended, "status": process.returncode,
    }  # fmt: skip
    return found | counts(report)


def counts(report: Path) -> dict[str, Any]:
    """What a JUnit report says."""
    found: dict[str, Any] = {"passed": 0, "failed": [], "skipped": {}}
    if not report.exists():
        return found
    for case in ET.parse(report).getroot().iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('tests.')}::{case.get('name')}"
        wrong = [e for e in case if e.tag in ("failure", "error")]
        skipped = case.find("skipped")
        if wrong:
            said = (wrong[0].get("message") or "").strip().splitlines() or [""]
            found["failed"].append({"test": name, "why": placeless(said[0])[:300]})
        elif skipped is not None:
            why = placeless(skipped.get("message") or "")[:200]
            found["skipped"][why] = found["skipped"].get(why, 0) + 1
        else:
            found["passed"] += 1
    return found
