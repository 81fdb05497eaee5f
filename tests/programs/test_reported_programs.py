"""Programs with the structure of faults that users of Warp reported: each is right here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.programs import expectations
from tests.programs.runner import REPORTED, cases, run

# With the engine's own meaning: `--alias` would give the program Warp's.
_PLAIN = """
import runpy, sys
import engine, engine.autograd
sys.modules["warp"], sys.modules["warp.autograd"] = engine, engine.autograd
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def numbers(printed: str, what: str) -> np.ndarray:
    """The numbers of the line that begins so."""
    (line,) = [x for x in printed.splitlines() if x.split()[:1] == [what]]
    return np.array(line.split()[1:], dtype=float)


@pytest.mark.parametrize("path", cases(REPORTED, of=9))
def test_reported_program(path: Path) -> None:
    plain = run("-c", _PLAIN, str(path))
    assert plain.returncode == 0, plain.stderr
    found = numbers(plain.stdout, "gradient")
    expected = expectations.read(path)
    if "\ntold" in "\n" + plain.stdout:  # wrong by what the program does, and said to be
        assert expected.findings
        assert not np.allclose(found, numbers(plain.stdout, "told"), rtol=1e-3)
    else:
        np.testing.assert_allclose(found, numbers(plain.stdout, "exact"), rtol=2e-5, atol=2e-6)
    done = run("-m", "adtool", "check", "--alias", "warp", "--format", "json", str(path))
    wrong = expectations.differences(expected, json.loads(done.stdout), path)
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_and_each_says_what_it_is_about() -> None:
    assert len(REPORTED) >= 25
    for path in REPORTED:
        lines = path.read_text().split('"""')[1].splitlines()
        assert lines[2] == f"Issue: {int(path.stem.split('_')[1])}", path.name
        assert lines[3].startswith("There: "), path.name
