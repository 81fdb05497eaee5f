"""The report as JUnit XML, which CI systems show as tests.

A script is a test suite. A pair of arrays of a kernel (all its launches together), tapes as wholes
(those of the same kernels together), and a finding that belongs to neither are test cases. A case
fails where a finding at or above the gate is about it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from adtool.places import short, shortened
from adtool.render.characters import bounded
from adtool.render.junit_cases import Case, cases
from adtool.report import Finding, Problem, Report, gate_words
from engine.characters import clean

if TYPE_CHECKING:
    from adtool.render.formats import Setting

_TEXT = 20_000  # characters of a case's text
_LINE = 500  # of an attribute that is shown as a title


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One document of all scripts."""
    root = ElementTree.Element("testsuites", {"name": "adtool"})
    totals = {"tests": 0, "failures": 0, "errors": 0}
    seconds = 0.0
    for report in reports:
        suite, counts = _suite(report)
        root.append(suite)
        seconds += report.seconds
        for key in totals:
            totals[key] += counts[key]
    for key, value in totals.items():
        root.set(key, str(value))
    root.set("time", f"{seconds:.3f}")
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}\n'


def _suite(report: Report) -> tuple[ElementTree.Element, dict[str, int]]:
    suite = ElementTree.Element("testsuite", {"name": _attribute(report.script or "adtool")})
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in _properties(report):
        ElementTree.SubElement(properties, "property", {"name": name, "value": _attribute(value)})
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for case in cases(report):
        counts["tests"] += 1
        suite.append(_case(case, counts))
    for key, count in counts.items():
        suite.set(key, str(count))
    suite.set("time", f"{report.seconds:.3f}")
    return suite, counts


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    yield "tool", report.tool
    yield "device", report.device or ""
    yield "gate", gate_words(report)
    yield "exit code", str(report.exit_code)
    yield "pairs checked", str(report.decided)
    for note in report.notes:
        yield "note", note


def _case(case: Case, counts: dict[str, int]) -> ElementTree.Element:
    out = ElementTree.Element(
        "testcase", {"name": _attribute(case.name), "classname": _attribute(case.group)}
    )
    if case.seconds is not None:
        out.set("time", f"{case.seconds:.3f}")
    failing = [f for f in case.findings if case.fails(f)]
    said = [f for f in case.findings if not case.fails(f)]
    text = "\n\n".join(filter(None, [case.about, *map(_words, [*failing, *said])]))
    if case.error is not None:
        counts["errors"] += 1
        parts = [case.error.message, case.error.help, case.error.detail]
        parts += [_problem(p) for p in case.error.problems]
        body = "\n".join(p for p in parts if p)
        _add(out, "error", case.error.message, case.error.kind, body)
    elif failing:
        counts["failures"] += 1
        first = failing[0]
        _add(out, "failure", first.message, f"{first.code} {first.name}", text)
    elif case.skipped:
        counts["skipped"] += 1
        _add(out, "skipped", case.skipped, "", text)
    elif text:  # readers show no other text of a case that passed
        ElementTree.SubElement(out, "system-out").text = _body(text)
    return out


def _add(out: ElementTree.Element, tag: str, message: str, kind: str, body: str) -> None:
    child = ElementTree.SubElement(out, tag, {"message": _attribute(message)})
    if kind:
        child.set("type", _attribute(kind))
    if body:
        child.text = _body(body)


def _words(f: Finding) -> str:
    lines = [f"{f.severity}[{f.code}]: {f.message}"]
    if f.file:
        place = short(f.file)
        lines.append(f"  --> {place}:{f.line}:{f.column or 1}" if f.line else f"  --> {place}")
    lines += [f"    {s}" for s in f.source]
    lines += [f"help: {f.help}"] if f.help else []
    lines += [f"note: {n}" for n in f.notes]
    if f.suppressed:
        lines.append(f"suppressed by {f.suppressed_by}")
    return "\n".join(lines)


def _problem(p: Problem) -> str:
    place = f"{short(p.file)}:{p.line}: " if p.file else ""
    return f"{place}{p.severity}[{p.code}]: {p.message}"


def _attribute(text: str) -> str:
    """One line of what XML 1.0 can hold."""
    return bounded(" ".join(clean(shortened(text)).split("\n")), _LINE)


def _body(text: str) -> str:
    return bounded(clean(shortened(text)), _TEXT)
