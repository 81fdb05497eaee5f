"""`adtool report`, from a script, a report in JSON or the last run to a page."""

from __future__ import annotations

import json

from tests.cli.conftest import Tool

SCRIPT = """
import sys
import engine as wp

@wp.func
def double(x: float):
    return 2.0 * x

@wp.func_grad(double)
def adj_double(x: float, adj_ret: float):
    wp.adjoint[x] += 3.0 * adj_ret

@wp.kernel
def wrong(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = double(x[i])

@wp.kernel
def right(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 3.0 * x[i]

x = wp.ones(4, requires_grad=True)
y = wp.zeros(4, requires_grad=True)
kernel = wrong if "wrong" in sys.argv else right
with wp.Tape() as tape:
    wp.launch(kernel, 4, [x], [y])
tape.backward(grads={y: wp.ones(4)})
print("the script's own words", *sys.argv[1:])
"""


def test_a_script_is_checked_and_shown(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    done = adtool("report", "script.py", "--out", "page.html", "wrong", "--gate")
    assert done.returncode == 1, done.stderr
    assert "page written to page.html" in done.stdout
    assert "the script's own words wrong --gate" in done.stderr
    text = (adtool.folder / "page.html").read_text()
    assert "G001" in text
    assert "adj_double" in text
    assert text.count("data:image/png;base64,") == 2
    assert str(adtool.folder) not in text
    done = adtool("report", "--out", "right.html", "script.py")
    assert done.returncode == 0, done.stderr
    assert "Passed" in (adtool.folder / "right.html").read_text()


def test_a_report_in_json_and_the_last_run_are_shown(adtool: Tool) -> None:
    adtool.script(SCRIPT)
    written = adtool("check", "--format", "json", "script.py", "wrong").stdout
    (adtool.folder / "report.json").write_text(written)
    one = json.loads(written)
    (adtool.folder / "runs.json").write_text(json.dumps({"schema": 1, "runs": [one, one]}))
    for name, said in (("report", "a JSON report has no tapes"), ("runs", "2 scripts")):
        done = adtool("report", f"{name}.json", "--out", f"{name}.html")
        assert done.returncode == 0, done.stderr
        text = (adtool.folder / f"{name}.html").read_text()
        assert "G001" in text
        assert said in text
    done = adtool("report", "--out", "last.html")
    assert done.returncode == 0, done.stderr
    text = (adtool.folder / "last.html").read_text()
    assert "G001" in text
    assert "g-node" in text
    assert "file of the last run has none" in text


def test_a_script_that_raises_still_has_a_page(adtool: Tool) -> None:
    adtool.script("raise ValueError('<b>no</b>')\n")
    done = adtool("report", "script.py", "--out", "page.html")
    assert done.returncode == 2
    text = (adtool.folder / "page.html").read_text()
    assert "&lt;b&gt;no&lt;/b&gt;" in text
