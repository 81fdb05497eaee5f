"""Ctrl-C while launches are checked: adtool reports the checks up to then."""

from __future__ import annotations

import json
import signal
import time
from typing import Any

import pytest

import engine as wp
from engine.autograd import CheckInterrupted, check_tape
from tests.unit.autograd import verdict_kernels as k
from tests.unit.autograd.verdict_kernels import floats

SCRIPT = """
import time
import engine as wp
from engine.autograd.tape import check

@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]

# No two launches are equal, so that each is checked.
given = [wp.full(3, 1.0 + k, requires_grad=True) for k in range(5)]
y = wp.zeros(3, requires_grad=True)
with wp.Tape():
    for x in given:
        wp.launch(double, 3, [x], [y])

check_launch, calls = check.check_launch, []

def stopping(*args):
    calls.append(args)
    if len(calls) == 3:
        here()
        time.sleep(30)
    return check_launch(*args)

check.check_launch = stopping
"""


def test_what_was_checked_is_reported(adtool: Any) -> None:
    far = adtool.folder / "far enough"
    adtool.script(SCRIPT.replace("here()", f"open({str(far)!r}, 'w').close()"))
    process = adtool.start("check", "--format", "json", "script.py", preexec_fn=_heed_interrupts)
    while not far.exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    report = json.loads(out)
    assert process.returncode == report["exit_code"] == 2
    assert [x["index"] for x in report["launches"]] == [0, 1]
    assert {p["verdict"] for x in report["launches"] for p in x["pairs"]} == {"pass"}
    assert "interrupted by SIGINT while checking tape 0, launch 2, kernel `double`" in err
    assert "adtool reports the checks up to then" in err and "Traceback" not in err


def test_the_time_limit_reports_what_was_checked(adtool: Any) -> None:
    far_enough = adtool.without_waiting().strip()
    adtool.script(SCRIPT.replace("here()", far_enough))
    report = adtool.report("--timeout", "600", "script.py")
    assert report["exit_code"] == 2 and report["error"]["kind"] == "timeout"
    assert [x["index"] for x in report["launches"]] == [0, 1]
    assert report["error"]["message"] == (
        "stopped after the time limit of 600 s while checking tape 0, launch 2, kernel `double`; "
        "adtool reports the checks up to then"
    )


def test_a_check_gives_what_it_has() -> None:
    x, y = floats([1.0, 2.0]), floats([0.0, 0.0])
    with wp.Tape() as tape:
        for _ in range(4):
            wp.launch(k.waves, dim=2, inputs=[x, y])

    def stop(done: int, total: int, kernel: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(CheckInterrupted) as stopped:
        check_tape(tape, progress=stop)
    assert [x.index for x in stopped.value.result.launches] == [0, 1]
    assert isinstance(stopped.value, KeyboardInterrupt)


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
