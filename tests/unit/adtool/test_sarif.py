"""SARIF 2.1.0: valid by its schema, by what the standard says beside it, and to other readers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest

from adtool.render.formats import Setting
from adtool.render.sarif import render
from adtool.report import Edit, Failure, Fix, Problem
from adtool.rules import load_rules
from tests.reports import HOSTILE, finding, hostile, report

SCHEMA = Path(__file__).parent / "schemas" / "sarif-2.1.0-rtm.5.json"
HERE = Setting("/w")


def schema() -> dict[str, Any]:
    """The standard's schema."""
    found: dict[str, Any] = json.loads(SCHEMA.read_text())
    return found


def valid(text: str) -> dict[str, Any]:
    """The log's one run; everything that points elsewhere in it must point at something."""
    jsonschema = pytest.importorskip("jsonschema", reason="validates SARIF")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not strict JSON")

    log = json.loads(text, parse_constant=refuse)
    jsonschema.Draft4Validator(
        schema(), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    ).validate(log)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["provenance"]["invocationIndex"] < len(run["invocations"])
        places = [*result.get("locations", ()), *result.get("relatedLocations", ())]
        for place in places:
            artifact = place.get("physicalLocation", {}).get("artifactLocation", {})
            assert artifact.get("uriBaseId", "%SRCROOT%") in run["originalUriBaseIds"]
            if "uri" in artifact:
                assert bool(urlsplit(artifact["uri"]).scheme) is ("uriBaseId" not in artifact)
                assert not re.search("%(?![0-9A-F]{2})", artifact["uri"])
    found: dict[str, Any] = run
    return found


def test_the_schema_refuses_what_is_wrong() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="validates SARIF")
    log = json.loads(render([report(findings=(finding(),))], HERE))
    for path, value in (("level", "fatal"), ("ruleIndex", "0"), ("unknown", 1)):
        wrong = json.loads(json.dumps(log))
        wrong["runs"][0]["results"][0][path] = value
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft4Validator(
                schema(), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
            ).validate(wrong)


def test_rules() -> None:
    rules = valid(render([report()], HERE))["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == [*(r.code for r in load_rules()), "unused-ignore"]
    for rule, made in zip(load_rules(), rules, strict=False):
        assert made["name"] == rule.name
        assert made["help"]["text"] == rule.page()
        assert "**What to do.**" in made["help"]["markdown"]
        assert made["defaultConfiguration"] == {"level": rule.severity}
        assert made["fullDescription"]["text"].startswith(made["shortDescription"]["text"][:-1])
        assert "helpUri" not in made


def test_a_result() -> None:
    fix = Fix("add it", True, (Edit("/w/springs.py", 3, 5, 3, 5, "x, "),))
    f = finding(near=(("/w/a b.py", 7), ("<string>", 1)), arrays=("x",), fix=fix, notes=("so",))
    (result,) = valid(render([report(findings=(f,))], HERE))["results"]
    assert (result["ruleId"], result["level"]) == ("G001", "error")
    assert result["message"]["text"] == "it is `wrong`\nhelp: mend it\nnote: so"
    assert result["message"]["markdown"] == "it is `wrong`\n\n**help**: mend it\n\n**note**: so"
    (place,) = result["locations"]
    assert place["logicalLocations"] == [{"name": "springs", "kind": "function"}]
    physical = place["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "springs.py", "uriBaseId": "%SRCROOT%"}
    assert physical["region"] == {
        "startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 9,
        "snippet": {"text": "𝑦[i]"},
    }  # fmt: skip
    assert physical["contextRegion"]["snippet"] == {"text": "    𝑦[i] = x[i]"}
    (related,) = result["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"
    assert related["physicalLocation"]["region"] == {"startLine": 7}
    assert result["partialFingerprints"] == {"adtool/v1": "0123456789abcdef"}
    assert result["properties"] == {
        "name": "wrong-gradient", "count": 1, "tape": 0, "launch": 0, "arrays": ["x"],
    }  # fmt: skip
    (made,) = result["fixes"]
    assert made["artifactChanges"][0]["replacements"] == [
        {
            "deletedRegion": {"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 5},
            "insertedContent": {"text": "x, "},
        }
    ]
    assert "suppressions" not in result


def test_columns_are_characters() -> None:
    run = valid(render([report(findings=(finding(),))], HERE))
    assert run["columnKind"] == "unicodeCodePoints"
    region = run["results"][0]["locations"][0]["physicalLocation"]["region"]
    line = finding().source[0]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == region["snippet"]["text"]


def test_regions_of_several_lines_and_without_columns() -> None:
    lines = ("    y = f(", "        x)")
    several = finding(line=3, column=9, end_line=4, end_column=11, source=lines)
    bare = finding(column=None, end_line=None, end_column=None)
    cut = finding(line=3, end_line=9, end_column=1)  # of whose lines only the first is known
    none = finding(file=None, line=None, column=None, end_line=None, end_column=None, source=())
    nothing = finding(file=None, line=None, column=None, kernel="", source=())
    given = (several, bare, cut, none, nothing)
    results = valid(render([report(findings=given)], HERE))["results"]
    regions = [r["locations"][0]["physicalLocation"]["region"] for r in results[:3]]
    assert regions[0]["snippet"] == {"text": "f(\n        x)"}
    assert regions[1] == {"startLine": 3, "snippet": {"text": finding().source[0]}}
    assert regions[2] == {"startLine": 3, "startColumn": 5, "endLine": 9, "endColumn": 1}
    assert set(results[3]["locations"][0]) == {"logicalLocations"}
    assert "locations" not in results[4]


def test_suppressed_findings() -> None:
    by = ("comment", "--ignore", "--select", "baseline")
    given = [finding(suppressed=True, suppressed_by=b) for b in by]
    results = valid(render([report(findings=(*given, finding()))], HERE))["results"]
    kinds = [[s["kind"] for s in r["suppressions"]] for r in results]
    assert kinds == [["inSource"], ["external"], ["external"], ["external"], []]
    assert all(s["justification"] for r in results for s in r["suppressions"])


def test_a_run_that_failed() -> None:
    problem = Problem("E305", "no", "do", file="/w/x.py", line=2, column=1)
    failed = report(error=Failure("raised", "it {0} raised", "see", "Traceback", (problem,)))
    run = valid(render([report(), failed], Setting("/w", count=2)))
    good, bad = run["invocations"]
    assert good["executionSuccessful"] and not bad["executionSuccessful"] and bad["exitCode"] == 2
    first, second = bad["toolExecutionNotifications"]
    assert first["message"]["text"] == "it {{0}} raised\nsee\nTraceback"
    assert second["descriptor"] == {"id": "E305"}
    assert second["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_files_elsewhere() -> None:
    given = [finding(file=f, near=()) for f in ("/else/a b.py", "/w/sub/ü.py", "<string>")]
    results = valid(render([report(findings=tuple(given))], HERE))["results"]
    uris = [r["locations"][0].get("physicalLocation", {}).get("artifactLocation") for r in results]
    assert uris == [
        {"uri": "file:///else/a%20b.py"},
        {"uri": "sub/%C3%BC.py", "uriBaseId": "%SRCROOT%"},
        None,
    ]


def test_hostile_names() -> None:
    run = valid(render([report(findings=hostile(HOSTILE))], HERE))
    assert len(run["results"]) == len(HOSTILE)
    for name, result in zip(HOSTILE, run["results"], strict=True):
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        if "\ud800" not in name:
            assert unquote_to_bytes(uri) == f"{name}.py".encode("utf-8", "surrogateescape")


def test_other_readers(tmp_path: Path) -> None:
    loader = pytest.importorskip("sarif.loader", reason="sarif-tools reads SARIF")
    path = tmp_path / "x.sarif"
    f = finding("G006", severity="warning")
    path.write_text(render([report(findings=(finding(), f, *hostile(HOSTILE)))], HERE), "utf-8")
    read = loader.load_sarif_file(str(path))
    assert read.get_distinct_tool_names() == ["adtool"]
    records = read.get_records()
    assert [r["Code"] for r in records[:2]] == ["G001", "G006"]
    assert {r["Severity"] for r in records} == {"error", "warning"}
    assert (records[0]["Location"], records[0]["Line"]) == ("springs.py", 3)


def test_another_model_of_it() -> None:
    model = pytest.importorskip("sarif_pydantic", reason="sarif-pydantic models SARIF")
    text = render([report(findings=(finding(), *hostile(HOSTILE)))], HERE)
    log = model.Sarif.model_validate(json.loads(text))
    assert len(log.runs[0].results) == 1 + len(HOSTILE)
