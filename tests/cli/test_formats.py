"""Formats of `adtool check`: several at once, of scripts that fail too, and in a step of GitHub."""

from __future__ import annotations

import json
import os
import subprocess
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.cli.test_options import WRONG

BAD = "print('printed')\nraise ValueError('no ]]> <b>')\n"
ALL = ("sarif=x.sarif", "junit=x.xml", "json=r.json", "markdown=m.md", "github=g.txt", "text=t.txt")


@pytest.fixture
def wrong(adtool: Any) -> Any:
    adtool.script(WRONG + "print('printed')\n", "wrong.py")
    adtool.script(BAD, "bad.py")
    return adtool


def asked(*outputs: str) -> list[str]:
    return [word for o in outputs for word in ("--out", o)]


def test_all_at_once_of_several_scripts(wrong: Any) -> None:
    done = wrong("check", *asked(*ALL), "--each", "wrong.py", "bad.py")
    assert done.returncode == 2
    assert "error[G001]" in done.stdout and "sarif report written to x.sarif" in done.stdout
    read = {name: (wrong.folder / name).read_text() for name in (o.split("=")[1] for o in ALL)}
    (run,) = json.loads(read["x.sarif"])["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["G001"]
    assert [i["executionSuccessful"] for i in run["invocations"]] == [True, False]
    (told,) = run["invocations"][1]["toolExecutionNotifications"]
    assert "ValueError: no ]]> <b>" in told["message"]["text"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "wrong.py", "uriBaseId": "%SRCROOT%"}
    first, second = ET.fromstring(read["x.xml"].encode())
    assert (first.get("failures"), first.get("errors")) == ("1", "0")  # of both tapes
    assert (second.get("name"), second.get("errors")) == ("bad.py", "1")
    runs = json.loads(read["r.json"])["runs"]
    assert [r["exit_code"] for r in runs] == [1, 2]
    assert read["m.md"].startswith("## adtool: 2 scripts: 1 failed, 1 not checked\n")
    assert [x.split(" ")[0] for x in read["g.txt"].splitlines()] == ["::error", "::error"]
    assert "\n2 of 2: bad.py\n" in read["t.txt"] and "2 scripts: 1 failed" in read["t.txt"]
    assert not [p.name for p in wrong.folder.iterdir() if p.name.startswith(".adtool-")]


def test_standard_output_is_one_document(wrong: Any) -> None:
    done = wrong("check", "--format", "sarif", *asked("json=r.json"), "bad.py")
    assert done.returncode == 2 and "printed" in done.stderr
    assert json.loads(done.stdout)["version"] == "2.1.0"
    assert json.loads((wrong.folder / "r.json").read_text())["error"]["kind"] == "raised"
    done = wrong("check", "--format", "junit", *asked("x.xml"), "wrong.py")
    assert done.stdout.startswith("printed\n") and "report written to x.xml" in done.stdout
    assert ET.parse(wrong.folder / "x.xml").getroot().get("failures") == "1"


def test_what_cannot_be_written_is_said_before_the_script_runs(wrong: Any) -> None:
    for output in ("sarif=no/x.sarif", "sarif=.", "sarif=", "sarif=wrong.py"):
        done = wrong("check", *asked(output), "wrong.py")
        assert done.returncode == 2 and "printed" not in done.stdout
        assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    done = wrong("check", "--format", "junit", "nowhere.py")
    assert done.returncode == 2 and ET.fromstring(done.stdout).get("errors") == "1"
    done = wrong("check", "--format", "junit", "--gate", "x", "wrong.py")
    assert done.returncode == 2 and not done.stdout and done.stderr.startswith("error: ")
    done = wrong("check", "--format", "yaml", "wrong.py")
    assert done.returncode == 2 and "'markdown'" in done.stderr


def test_a_step_of_github(wrong: Any) -> None:
    summary = wrong.folder / "summary.md"
    summary.write_text("before\n")
    wrong.env |= {
        "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_WORKSPACE": str(wrong.folder.parent),
    }  # fmt: skip
    done = wrong("check", "wrong.py")
    last = done.stdout.splitlines()[-1]
    assert last.startswith(f"::error file={wrong.folder.name}/wrong.py,line=")
    text = summary.read_text()
    assert text.startswith("before\n\n## `wrong.py`: failed\n")
    done = wrong("check", "--no-annotations", "wrong.py")
    assert "::error" not in done.stdout and summary.read_text() == text
    wrong.env["GITHUB_STEP_SUMMARY"] = str(wrong.folder)
    done = wrong("check", "--format", "github", "wrong.py")
    assert done.returncode == 1 and done.stdout.startswith("::error file=")
    assert "warning: the step's summary cannot be written" in done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_summary_that_is_a_pipe(wrong: Any) -> None:
    pipe = wrong.folder / "summary"
    os.mkfifo(pipe)
    wrong.env["GITHUB_STEP_SUMMARY"] = str(pipe)
    done = wrong("check", "--format", "github", "wrong.py")  # nobody reads it: no wait
    assert done.returncode == 1 and done.stdout.startswith("::error file=")
    assert "summary cannot be written" in done.stderr and "no program reads the pipe" in done.stderr
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        assert "warning" not in wrong("check", "--format", "github", "wrong.py").stderr
        assert reader.communicate()[0].startswith("\n## `wrong.py`: failed\n")


def test_outputs_of_a_project(wrong: Any) -> None:
    project = wrong.folder / "pyproject.toml"
    project.write_text('[tool.adtool]\noutput = ["sarif=x.sarif", "junit=x.xml"]\n')
    done = wrong("check", "wrong.py")
    assert done.returncode == 1 and "error[G001]" in done.stdout
    assert (wrong.folder / "x.sarif").exists() and (wrong.folder / "x.xml").exists()
    done = wrong("jacobian", "--kernel", "cubes", "wrong.py")  # its --output is another one
    assert done.returncode == 0, done.stderr


def test_a_format_that_is_nearly_one_is_no_file(adtool: Any) -> None:
    done = adtool("check", "--out", "jsno=r.json", "script.py")
    assert done.returncode == 2
    assert "there is no format `jsno`" in done.stderr
    assert "did you mean json=r.json? A file of that name is ./jsno=r.json" in done.stderr
    assert "--out '' names no file" in adtool("check", "--out", "", "script.py").stderr


@pytest.mark.parametrize(
    ("word", "instead"),
    [
        ("xml=x", "did you mean junit=x?"), ("txt=x", "did you mean text=x?"),
        ("Json=x", "did you mean json=x?"), ("md=a/x", "did you mean markdown=a/x?"),
        ("toml=x", "the formats are text, json, junit, sarif, github, markdown."),
        ("html=/nonexist/x.html", "`adtool report SCRIPT --out /nonexist/x.html`."),
    ],
)  # fmt: skip
def test_a_format_that_there_is_not_is_no_file(adtool: Any, word: str, instead: str) -> None:
    done = adtool("check", "--out", word, "script.py")
    assert done.returncode == 2
    assert f"there is no format `{word.partition('=')[0]}`" in done.stderr
    assert f"{instead} A file of that name is ./{word}" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("command", "word"),
    [("report", "html=x.html"), ("graph", "svg=a/x.svg"), ("trace", "png=x.png")],
)
def test_files_of_one_kind_need_no_format(adtool: Any, command: str, word: str) -> None:
    done = adtool(command, "--out", word, "script.py")
    assert done.returncode == 2 and "without a format" in done.stderr
    assert f"name it: --out {word.partition('=')[2]}" in done.stderr


@pytest.mark.parametrize(
    ("command", "option"),
    [("trace", "--plot"), ("jacobian", "--plot"), ("report", "--html"), ("report", "--out"),
     ("capture", "--out"), ("graph", "--out")],
)  # fmt: skip
def test_a_file_without_a_name(adtool: Any, command: str, option: str) -> None:
    adtool.script("print('ran')\n")
    done = adtool(command, option, "", "script.py")
    assert done.returncode == 2 and done.stdout == "" and "names no file to write" in done.stderr


@pytest.mark.parametrize(
    ("command", "other"), [("trace", "--plot"), ("jacobian", "--plot"), ("report", "--html")]
)
def test_two_names_of_one_option(adtool: Any, command: str, other: str) -> None:
    """One of two files would not be written, and nothing would say so."""
    adtool.script("print('ran')\n")
    name = "a.html" if command == "report" else "a.png"
    for first, second in (("--out", other), (other, "--out"), (other, other)):
        done = adtool(command, first, name, second, f"b{name}", "script.py")
        assert done.returncode == 2 and done.stdout == ""
        assert f"--out and {other} are names of one option" in done.stderr


LOOP = """
import numpy as np
import engine as wp


@wp.func
def square(x: float):
    return x * x


@wp.func_grad(square)
def adj_square(x: float, adj_ret: float):
    wp.adjoint[x] += x * adj_ret  # it lacks a factor of 2


@wp.kernel
def step(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = square(a[i])


a = wp.array(np.ones(4), dtype=float, requires_grad=True)
with wp.Tape() as tape:
    for _ in range(1000):
        b = wp.zeros(4, dtype=float, requires_grad=True)
        wp.launch(step, dim=4, inputs=[a], outputs=[b])
        a = b
tape.backward(grads={a: wp.ones(4, dtype=float)})
"""


def test_a_wrong_kernel_in_a_loop_is_one_row_and_one_case(adtool: Any) -> None:
    adtool.script(LOOP, "loop.py")
    done = adtool("check", *asked(*ALL), "loop.py")
    assert done.returncode == 1
    rows = [x for x in done.stdout.splitlines() if x.rstrip().endswith(" fail")]
    (row,) = rows
    assert "x1000" in row and row.split()[-4:] == ["0.5", "1", "2", "fail"]
    read = {name: (adtool.folder / name).read_text() for name in (o.split("=")[1] for o in ALL)}
    (suite,) = ET.fromstring(read["x.xml"].encode())
    assert [c.get("name") for c in suite.findall("testcase")] == [
        "d b / d a", "tape 0 end to end",
    ]  # fmt: skip
    (failure,) = suite.iter("failure")
    assert "fail in 1,000 of 1,000 launches" in str(failure.text)
    assert read["g.txt"].count("\n") == 1
    assert read["m.md"].count("| fail |") == 1
    sizes = {name: len(text) for name, text in read.items()}
    assert all(sizes[name] < 6000 for name in ("x.xml", "g.txt", "m.md", "t.txt")), sizes
    assert sizes["r.json"] < 700_000, sizes
    found = json.loads(read["r.json"])["launches"]
    assert len(found) == 1000 and {x["pairs"][0]["verdict"] for x in found} == {"fail"}
    assert sum(x["pairs"][0]["worst"] is not None for x in found) == 100
