"""Several scripts in one call, and options that stand on the wrong side of the script."""

from __future__ import annotations

import json
from typing import Any

GOOD = """
import sys
import engine as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

print(sys.argv[1:])
x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
y = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape():
    wp.launch(square, dim=3, inputs=[x], outputs=[y])
"""

NOTHING = "print('nothing')\n"


def test_a_folder(adtool: Any) -> None:
    adtool.script(GOOD, "sub/one.py")
    adtool.script(NOTHING, "sub/two.py")
    adtool.script("raise ValueError", "sub/_helper.py")
    done = adtool("check", "sub", "--", "--fast", "3")
    assert done.returncode == 2
    assert "1 of 2: sub/one.py\n['--fast', '3']\n" in done.stdout
    assert "2 of 2: sub/two.py\nnothing\n" in done.stdout
    assert "sub/one.py  passed\n" in done.stdout
    assert "sub/two.py  not checked  nothing was checked: the script made no tape" in done.stdout
    assert done.stdout.endswith("2 scripts: 1 passed, 1 not checked\n")


def test_several_as_json(adtool: Any) -> None:
    adtool.script(GOOD, "one.py")
    adtool.script(GOOD, "two.py")
    done = adtool("check", "--each", "--format", "json", "one.py", "t*.py")
    data = json.loads(done.stdout)
    assert set(data) == {"schema", "tool", "ok", "exit_code", "runs"}
    assert (data["ok"], data["exit_code"], done.returncode) == (True, 0, 0)
    assert [r["script"] for r in data["runs"]] == ["one.py", "two.py"]
    assert all(len(r["launches"]) == 1 for r in data["runs"])


def test_a_mistyped_script_is_no_argument(adtool: Any) -> None:
    for name in ("one.py", "two.py"):
        adtool.script(GOOD, name)
    done = adtool("check", "one.py", "two.py", "three.py")
    assert done.returncode == 2 and "tape" not in done.stdout
    assert done.stderr == (
        "error: `three.py` after `one.py` is not a file\n"
        "help: correct its name; or put `--` before the arguments of `one.py`\n"
    )
    assert "['three.py']" in adtool("check", "one.py", "--", "three.py").stdout


def test_options_after_the_script_are_its_own(adtool: Any) -> None:
    adtool.script(GOOD)
    done = adtool("check", "script.py", "--gate", "note", "--format", "json")
    assert done.returncode == 0 and "['--gate', 'note', '--format', 'json']\n" in done.stdout
    assert "`--gate`, `--format` after `script.py` went to the script" in done.stdout
    adtool.script(GOOD + "# knows --gate\n")
    assert "went to the script" not in adtool("check", "script.py", "--gate", "note").stdout


def test_an_option_that_the_script_refuses(adtool: Any) -> None:
    adtool.script("import argparse\nargparse.ArgumentParser().parse_args()\n")
    report = adtool.report("script.py", "--gate", "note")
    assert report["exit_code"] == 2
    assert ["`--gate` after `script.py` went to the script" in n for n in report["notes"]] == [True]
