"""JUnit XML: structure, counts that agree with the gate, hostile names, very many launches."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest

from adtool.render.formats import Setting
from adtool.render.junit import render
from adtool.render.junit_cases import MANY
from adtool.report import Duration, EndToEnd, Failure, Problem, Worst
from tests.reports import HOSTILE, finding, hostile, launch, pair, report

# What Jenkins's xUnit plugin takes: attributes (those that must be there first), children.
STRUCTURE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"}, {"time", "skipped"}, {"properties", "testcase"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"}, {"time", "classname"}, {"skipped", "error", "failure", "system-out"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}  # fmt: skip


def sound(text: str) -> ET.Element:
    """The document, whose structure and counts must be right."""
    root = ET.fromstring(text.encode("utf-8"))
    assert root.tag == "testsuites"
    for element in root.iter():
        needed, allowed, children = STRUCTURE[element.tag]
        assert needed <= set(element.keys()) <= needed | allowed
        assert {c.tag for c in element} <= children
        if "time" in element.keys():
            assert re.fullmatch(r"\d+\.\d+", element.get("time", ""))
    for suite in root:
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.get("tests", ""))
        assert all(len([c for c in case if c.tag != "system-out"]) <= 1 for case in cases)
        for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert len(suite.findall(f"testcase/{tag}")) == int(suite.get(count, "")), count
        names = [(c.get("classname"), c.get("name")) for c in cases]
        assert len(set(names)) == len(names)
    for count in ("tests", "failures", "errors"):
        assert int(root.get(count, "")) == sum(int(s.get(count, "")) for s in root)
    return root


def suite_of(**given: Any) -> ET.Element:
    return sound(render([report(**given)], Setting()))[0]


def states(suite: ET.Element) -> dict[str | None, str]:
    return {
        c.get("name"): next((x.tag for x in c if x.tag != "system-out"), "passed")
        for c in suite.findall("testcase")
    }


def test_a_case_for_each_pair_and_tape() -> None:
    given = (launch(0, pair(), pair("skipped", input="w", reason="no grad")),
             launch(1, skipped="no input", kernel="clear"))  # fmt: skip
    suite = suite_of(launches=given)
    assert states(suite) == {
        "d y / d x": "passed", "d y / d w": "skipped", "launch": "skipped",
        "tape 0 end to end": "passed",
    }  # fmt: skip
    assert [c.get("classname") for c in suite.findall("testcase")] == [
        "springs.springs", "springs.springs", "springs.clear", "springs.tapes",
    ]  # fmt: skip
    skipped = [s.get("message") for s in suite.iter("skipped")]
    assert skipped == ["skipped: no grad", "skipped: no input"]
    assert (suite.get("name"), suite.get("time")) == ("springs.py", "1.250")


@pytest.mark.parametrize("gate", ["error", "warning", "note"])
@pytest.mark.parametrize("severity", ["error", "warning", "note"])
@pytest.mark.parametrize("code", ["G001", "G003", "G010", "unused-ignore"])
@pytest.mark.parametrize("suppressed", [False, True])
def test_a_suite_fails_where_the_gate_does(
    gate: Any, severity: str, code: str, suppressed: bool
) -> None:
    by = "--ignore" if suppressed else None
    found = finding(code, severity=severity, suppressed=suppressed, suppressed_by=by)
    given = report(
        launches=(launch(0, pair("fail")), launch(1, pair("fail"))), findings=(found,), gate=gate,
        end_to_end=(EndToEnd(0, "fail", 0.5),),
    )  # fmt: skip
    suite = sound(render([given], Setting()))[0]
    assert (suite.get("failures") != "0") is (given.exit_code == 1)
    assert "it is `wrong`" in ET.tostring(suite, encoding="unicode")  # said in any case


def test_where_findings_stand() -> None:
    launches = (
        launch(0, pair("fail"), pair("kink", input="w")), launch(1, pair("fail")),
        launch(2, pair("nan", worst=Worst(0, 0, math.nan, 1.0), max_abs_error=math.nan)),
        launch(3, pair("fail"), file="/w/other.py"),
    )  # fmt: skip
    found = (
        finding("G001", count=2), finding("G003", launch=-1), finding("G003", launch=-1),
        finding("G010", launch=-1, kernel=""), finding("G005", severity="note", message="a kink"),
    )  # fmt: skip
    suite = suite_of(launches=launches, findings=found, end_to_end=(EndToEnd(0, "fail", 0.5),))
    assert states(suite) == {
        "d y / d x": "failure", "d y / d w": "passed",
        "d y / d x (2)": "skipped",  # the kernel of that name in another file
        "tape 0 end to end": "failure",
        "G003 wrong-gradient in springs": "failure",
        "G003 wrong-gradient in springs (2)": "failure",
    }  # fmt: skip
    first = suite.find("testcase/failure")
    assert first is not None and first.text is not None
    assert first.get("type") == "G001 wrong-gradient" and first.get("message") == "it is `wrong`"
    assert "/w/springs.py:3:5" in first.text and "help: mend it" in first.text
    assert first.text.startswith(
        "nan in 1 of 3 launches; the worst is launch 0:2, adjoint nan, reference 1, error nan\n"
        "fail in 2 of 3 launches; the worst is launch 0:0, adjoint 1.5, reference 1, error 0.5\n"
    )
    said = [x.text or "" for x in suite.iter("system-out")]
    assert len(said) == 1 and said[0].startswith("note[G005]: a kink")


def test_a_run_that_failed() -> None:
    error = Failure("raised", "it raised", "look", "Traceback\n  x", (Problem("E305", "no"),))
    suite = suite_of(error=error, launches=(), end_to_end=())
    assert states(suite) == {"run": "error"} and suite.get("errors") == "1"
    made = suite.find("testcase/error")
    assert made is not None and made.get("type") == "raised"
    assert made.text == "it raised\nlook\nTraceback\n  x\nerror[E305]: no"


def test_times_that_are_known() -> None:
    times = (Duration(0, 0, "springs", 0.5), Duration(0, -1, "", 0.25))
    two = launch(1, pair(), pair(input="w"))
    suite = suite_of(durations=times, launches=(launch(0, pair()), two))
    assert [c.get("time") for c in suite.findall("testcase")] == [None, None, "0.250"]
    suite = suite_of(durations=times)
    assert [c.get("time") for c in suite.findall("testcase")] == ["0.500", "0.250"]


def test_launches_of_a_kernel_share_cases() -> None:
    launches = tuple(launch(i, pair(), pair(input="w")) for i in range(300))
    bad = launch(300, pair("fail"))
    other = tuple(launch(0, pair(), tape=t) for t in (1, 2))
    found = finding(launch=300)
    tapes = tuple(EndToEnd(i, "pass", 0.0) for i in range(3))
    suite = suite_of(launches=(*launches, bad, *other), findings=(found,), end_to_end=tapes)
    assert states(suite) == {
        "d y / d x": "failure", "d y / d w": "passed", "tapes 0 to 2 end to end": "passed",
    }  # fmt: skip
    text = ET.tostring(suite, encoding="unicode")
    assert "fail in 1 of 303 launches; the worst is launch 0:300" in text
    # Each launch has arrays of its own.
    named = tuple(launch(i, pair(input=f"x[{i}]")) for i in range(MANY + 1))
    suite = suite_of(launches=named)
    assert set(states(suite)) == {"all pairs", "tape 0 end to end"}


def test_several_scripts_are_suites() -> None:
    second = replace(report(findings=(finding(),)), script="sub/b.py")
    root = sound(render([report(), second], Setting(count=2)))
    assert [s.get("name") for s in root] == ["springs.py", "sub/b.py"]
    assert [s.get("failures") for s in root] == ["0", "1"]


def test_hostile_names_and_another_reader() -> None:
    parser = pytest.importorskip("junitparser", reason="reads JUnit XML")
    launches = tuple(launch(i, pair(input=n), kernel=n) for i, n in enumerate(HOSTILE))
    given = report(launches=launches, findings=hostile(HOSTILE), script="a\udc80\x00<&.py")
    text = render([given], Setting())
    sound(text)
    read = parser.JUnitXml.fromstring(text.encode("utf-8"))
    (suite,) = read
    assert (suite.tests, suite.failures) == (2 * len(HOSTILE) + 1, len(HOSTILE))
    failures = [case for case in suite if case.result]
    assert [c.result[0].message for c in failures][:2] == [
        "wrong gradient of kernel `<script>alert(1)</script>`: <script>alert(1)</script>",
        "wrong gradient of kernel `]]>`: ]]>",
    ]
    assert suite.name == "a\\udc80\\x00<&.py"
