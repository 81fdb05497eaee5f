"""`adtool trace`: rows, order, choice, JSON, plots."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Tool
from tests.cli.test_graph import SCRIPT


def rows(adtool: Tool, *args: str, steps: int = 5, broken: int = -1) -> dict[str, Any]:
    adtool.script(SCRIPT)
    done = adtool("trace", "--format", "json", *args, "script.py", "--", str(steps), str(broken))
    assert done.returncode == 0, done.stderr
    assert "the script's own words" in done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def test_the_table(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    done = adtool("trace", "script.py", "--", "5", "-1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "tape 0 of 1 of script.py: 7 operations, 9 arrays" in lines
    row = next(line for line in lines if "0:4" in line)
    assert row.split()[:5] == ["0:4", "scale", "states[4]", "states[5]", "4"]
    assert row.split()[5:7] == ["32", "B"]
    assert row.split()[-1] == "2"
    assert any(line.startswith("memory in addition to arrays and gradients: ") for line in lines)
    assert any("its norm stays the same, going backward" in line for line in lines)


def test_no_word_is_broken_on_a_narrow_terminal_and_where_it_dies(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    adtool.env["COLUMNS"] = "80"
    out = adtool("trace", "script.py", "--out", "x.png", "--", "5", "2").stdout
    table = out[: out.index("times:")]
    assert "  states[3] -> states[4]\n" in table
    assert max(map(len, table.splitlines())) <= 80
    words = "gradient dies at launch 0:2 of kernel `scale`: the gradient that goes on to "
    assert f"{words}`states[2]` is zero" in out
    assert (adtool.folder / "x.png").read_bytes().startswith(b"\x89PNG")


def test_json(adtool: Tool) -> None:
    data = rows(adtool)
    assert (data["schema"], data["ok"], data["exit_code"], data["tapes"]) == (1, True, 0, 1)
    assert [r["launch"] for r in data["rows"]] == list(range(7))
    first, aside, last = data["rows"][0], data["rows"][5], data["rows"][6]
    assert (first["kernel"], first["dim"], first["bytes"]) == ("scale", [4], 32)
    assert (first["inputs"], first["outputs"]) == (["states[0]"], ["states[1]"])
    assert first["gradient"] == 2.0
    assert first["forward"] > 0
    assert first["backward"] > 0
    assert first["file"].endswith("script.py")
    assert aside["gradient"] == 0.0
    assert last["gradient"] == 1.0
    assert data["growth"] == pytest.approx(1.0)
    assert data["dies"] is None
    assert data["explodes"] is None
    assert data["memory"]["journals"] == 0


def test_choice_and_order(adtool: Tool) -> None:
    found = rows(adtool, "--sort", "gradient", "--top", "3", "--kernel", "sc*")["rows"]
    assert [(r["kernel"], r["gradient"]) for r in found] == [("scale", 2.0)] * 3
    back = [r["launch"] for r in rows(adtool, "--reverse")["rows"]]
    assert back == list(range(6, -1, -1))


def test_a_tape_without_a_backward_pass(adtool: Tool) -> None:
    adtool.script(SCRIPT.replace("tape.backward(loss)", "pass"))
    done = adtool("trace", "script.py", "--out", "x.png", "--", "3", "-1")
    assert done.returncode == 0, done.stderr
    assert "gradients: no backward pass ran on this tape" in done.stdout


def test_wrong_usage_and_broken_scripts(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    target = ("script.py", "--", "3", "-1")
    for args, words in (
        (("--out", "x.gif"), "`x.gif` cannot be written: its name"),
        (("--tape", "3"), "no tape 3 to show"),
        (("--kernel", "nothing"), "no operation of tape 0 matches --kernel"),
    ):
        done = adtool("trace", *args, *target)
        assert done.returncode == 2, done.stdout
        assert f"error: {words}" in done.stderr
        assert "Traceback" not in done.stderr
    adtool.script("raise ValueError('no')")
    done = adtool("trace", "--format", "json", "script.py")
    assert done.returncode == 2
    data = json.loads(done.stdout)
    assert data["ok"] is False
    assert "ValueError" in data["error"]["message"]
    assert data["rows"] == []
