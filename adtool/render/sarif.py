"""The report as SARIF 2.1.0, which code scanning and editors read."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from adtool import __version__
from adtool.places import shortened
from adtool.render import uris
from adtool.render.characters import whole
from adtool.render.escapes import prose
from adtool.report import Failure, Finding, Fix, Problem, Report
from adtool.rules import Rule, load_rules
from adtool.suppressions import UNUSED
from engine.characters import of_json

if TYPE_CHECKING:
    from adtool.render.formats import Setting

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_ROOT = "%SRCROOT%"
_UNUSED = "A comment `# adtool: ignore[...]` suppresses nothing, or names no code."

Json = dict[str, Any]


def render(reports: Sequence[Report], setting: Setting) -> str:
    """One log with one run; each script is an invocation of it."""
    rules = [*map(_rule, load_rules()), _unused_rule()]
    index = {r["id"]: i for i, r in enumerate(rules)}
    hidden = any(f.suppressed for r in reports for f in r.findings)
    run: Json = {
        "tool": {
            "driver": {
                "name": "adtool",
                "semanticVersion": __version__,
                "version": __version__,
                "rules": rules,
            }
        },
        "invocations": [_invocation(r, setting) for r in reports],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(f, i, index, hidden, setting) for i, r in enumerate(reports) for f in r.findings
        ],
    }
    if setting.folder:
        base = uris.file_uri(setting.folder).rstrip("/") + "/"
        run["originalUriBaseIds"] = {_ROOT: {"uri": base}}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return of_json(json.dumps(_sound(log), indent=2, allow_nan=False)) + "\n"


def _rule(rule: Rule) -> Json:
    m = rule.manual
    what = _paragraphs(m.what)
    example = textwrap.dedent(m.example).strip("\n")
    markdown = "\n\n".join(
        [what, f"**Why it matters.** {_paragraphs(m.why)}", f"```python\n{example}\n```",
         f"**What to do.** {_paragraphs(m.todo)}"]
    )  # fmt: skip
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": _first_sentence(what)},
        "fullDescription": {"text": what},
        "help": {"text": rule.page(), "markdown": markdown},
        "defaultConfiguration": {"level": rule.severity},
    }


def _unused_rule() -> Json:
    return {
        "id": UNUSED,
        "name": "UnusedIgnore",
        "shortDescription": {"text": _UNUSED},
        "fullDescription": {"text": _UNUSED},
        "help": {"text": _UNUSED, "markdown": _UNUSED},
        "defaultConfiguration": {"level": "note"},
    }


def _paragraphs(text: str) -> str:
    """Indented text with a line for each of its paragraphs."""
    parts = re.split(r"\n\s*\n", textwrap.dedent(text).strip())
    return "\n\n".join(" ".join(p.split()) for p in parts)


def _first_sentence(text: str) -> str:
    match = re.match(r"(.+?[.:])(\s|$)", text, re.DOTALL)
    return match[1].rstrip(":.") + "." if match else text


def _invocation(report: Report, setting: Setting) -> Json:
    out: Json = {
        "executionSuccessful": report.error is None,
        "exitCode": report.exit_code,
        "properties": {
            "script": report.script,
            "device": report.device,
            "gate": report.gate,
            "gateAccuracy": report.gate_accuracy,
            "passed": report.ok,
            "tapes": report.tapes,
            "launches": len(report.launches),
            "pairsChecked": report.decided,
        },
    }
    if report.error is not None:
        out["toolExecutionNotifications"] = list(_notifications(report.error, setting))
    if report.notes:
        out["toolConfigurationNotifications"] = [
            {"level": "warning", "message": {"text": _plain(n)}} for n in report.notes
        ]
    return out


def _notifications(error: Failure, setting: Setting) -> Iterable[Json]:
    text = "\n".join(x for x in (error.message, error.help, error.detail) if x)
    yield {
        "level": "error",
        "descriptor": {"id": error.kind},
        "message": {"text": _plain(text)},
    }
    for p in error.problems:
        note: Json = {
            "level": p.severity,
            "message": {"text": _plain("\n".join(x for x in (p.message, p.help, *p.notes) if x))},
        }
        if p.code:
            note["descriptor"] = {"id": p.code}
        if place := _place(p, (), setting):
            note["locations"] = [{"physicalLocation": place}]
        yield note


def _result(f: Finding, number: int, index: dict[str, int], hidden: bool, setting: Setting) -> Json:
    more = [("help", f.help)] if f.help else []
    more += [("note", n) for n in f.notes]
    out: Json = {"ruleId": f.code}
    if f.code in index:
        out["ruleIndex"] = index[f.code]
    more = [(label, shortened(words, setting.folder)) for label, words in more]
    said = shortened(f.message, setting.folder)
    text = "\n".join([said, *(f"{label}: {words}" for label, words in more)])
    markdown = "\n\n".join([prose(said), *(f"**{label}**: {prose(w)}" for label, w in more)])
    out |= {
        "level": f.severity,
        "message": {"text": _plain(text), "markdown": _plain(markdown)},
        "provenance": {"invocationIndex": number},
        "properties": _properties(f),
    }
    if locations := _locations(f, setting):
        out["locations"] = locations
    related = [
        {
            "id": i,
            "message": {"text": "on the tape here"},
            "physicalLocation": {
                "artifactLocation": artifact, "region": {"startLine": max(1, line)},
            },
        }
        for i, (file, line) in enumerate(f.near, 1)
        if (artifact := _artifact(file, setting)) is not None
    ]  # fmt: skip
    if related:
        out["relatedLocations"] = related
    if f.fingerprint:
        out["partialFingerprints"] = {"adtool/v1": f.fingerprint}
    if f.suppressed:
        out["suppressions"] = [_suppression(f)]
    elif hidden:  # with none at all, it would not be known whether there are some
        out["suppressions"] = []
    if f.fix is not None and f.fix.edits:
        if fix := _fix(f.fix, setting):
            out["fixes"] = [fix]
    return out


def _properties(f: Finding) -> Json:
    out: Json = {"name": f.name, "count": f.count}
    if f.tape >= 0:
        out["tape"] = f.tape
    if f.launch >= 0:
        out["launch"] = f.launch
    if f.arrays:
        out["arrays"] = list(f.arrays)
    return out


def _locations(f: Finding, setting: Setting) -> list[Json]:
    out: Json = {}
    if place := _place(f, f.source, setting):
        out["physicalLocation"] = place
    if f.kernel:
        out["logicalLocations"] = [{"name": f.kernel, "kind": "function"}]
    return [out] if out else []


def _place(f: Finding | Problem, source: Sequence[str], setting: Setting) -> Json | None:
    artifact = None if f.file is None else _artifact(f.file, setting)
    if artifact is None:
        return None
    place: Json = {"artifactLocation": artifact}
    if not f.line or f.line < 1:
        return place
    last = f.line if f.end_line is None or f.end_line < f.line else f.end_line
    region: Json = {"startLine": f.line}
    if f.column is not None and f.column > 0:
        region["startColumn"] = f.column
        if f.end_column is not None and (last > f.line or f.end_column > f.column):
            region |= {"endLine": last, "endColumn": max(1, f.end_column)}
    lines = source[: last - f.line + 1]
    if len(lines) == last - f.line + 1:  # all of them are known
        text = _piece(lines, region)
        region["snippet"] = {"text": text}
        if "startColumn" in region and text != "\n".join(lines):
            place["contextRegion"] = {
                "startLine": f.line, "endLine": last, "snippet": {"text": "\n".join(lines)},
            }  # fmt: skip
    return {"artifactLocation": artifact, "region": region} | place


def _piece(lines: Sequence[str], region: Json) -> str:
    """The text of a region. Without an end it goes to the end of its first line."""
    if "startColumn" not in region:
        return "\n".join(lines)
    if "endColumn" not in region:
        return lines[0][region["startColumn"] - 1 :]
    kept = list(lines)
    kept[-1] = kept[-1][: region["endColumn"] - 1]  # first the end: both may be of one line
    kept[0] = kept[0][region["startColumn"] - 1 :]
    return "\n".join(kept)


def _artifact(file: str, setting: Setting) -> Json | None:
    """Where a file is; None for what is none, as `<string>`."""
    if not file or (file.startswith("<") and file.endswith(">")):
        return None
    below = uris.relative(file, setting.folder)
    if below is not None:
        return {"uri": uris.encoded(below), "uriBaseId": _ROOT}
    if file.startswith("/") or file[1:3] in (":\\", ":/"):
        return {"uri": uris.file_uri(file)}
    return {"uri": uris.encoded(file)}


def _suppression(f: Finding) -> Json:
    kind = "inSource" if f.suppressed_by == "comment" else "external"
    words = {
        "comment": f"a comment `# adtool: ignore[{f.code}]` on its line",
        "baseline": "it is in the baseline",
        "--select": "--select chooses other findings",
    }
    why = words.get(f.suppressed_by or "", f"{f.suppressed_by} names it")
    return {"kind": kind, "status": "accepted", "justification": why}


def _fix(fix: Fix, setting: Setting) -> Json | None:
    changes: dict[str, list[Json]] = {}
    for e in fix.edits:
        changes.setdefault(e.file, []).append(
            {
                "deletedRegion": {
                    "startLine": e.line, "startColumn": e.column,
                    "endLine": e.end_line, "endColumn": e.end_column,
                },
                "insertedContent": {"text": e.text},
            }
        )  # fmt: skip
    artifacts = {file: _artifact(file, setting) for file in changes}
    if None in artifacts.values():
        return None  # a part of a fix is none
    return {
        "description": {"text": _plain(fix.message)},
        "artifactChanges": [
            {"artifactLocation": artifacts[file], "replacements": replacements}
            for file, replacements in changes.items()
        ],
        "properties": {"safe": fix.safe},
    }


def _plain(text: str) -> str:
    """Text in which nothing is a placeholder (`{0}`) to a reader."""
    return re.sub(r"\{(\d+)\}", r"{{\1}}", text)


def _sound(value: Any) -> Any:
    """The same with text that every reader of UTF-8 takes."""
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(k): _sound(v) for k, v in value.items()}
    return [_sound(v) for v in value] if isinstance(value, (list, tuple)) else value
