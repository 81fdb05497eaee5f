"""Reads what a program is expected to get from `adtool check`, and compares it with a report.

The expectation stands in the program's comments:

`# expect: exit=1`
    The exit code of `adtool check`. Every program has one.
`# expect: plain=1`
    The exit code of plain Python where it is not 0 (the engine itself refuses the program).
`# expect: args=--overwrites present`
    Options of `adtool check`.
`# expect: allow=G012 REASON`
    Errors and warnings of this code may be there as well.
`statement  # expect: G003`
    An error of this code at this statement (any of its lines; of a statement with a body, its
    header). `warning[G003]`, `note[G005]`: of another severity. `warning[G006|G011]`: either code.
`statement  # expect: G003 a`
    A group: one finding of this code at any of the statements of the program with this letter,
    where the contract leaves open which of two sites is the finding's place.

Every expected finding must be there, and each error and each warning must be expected.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"#\s*expect:\s*(.*)$")
_FINDING = re.compile(r"(?:(?P<severity>warning|note)\[)?(?P<codes>G\d{3}(?:\|G\d{3})*)(?(1)\])$")


@dataclass(frozen=True)
class Expected:
    """One finding: any of these codes, of this severity, at any of these lines."""

    severity: str
    codes: frozenset[str]
    lines: frozenset[int]

    def admits(self, finding: dict[str, Any], path: Path) -> bool:
        """Whether this finding is the expected one."""
        return (
            finding["code"] in self.codes
            and finding["severity"] == self.severity
            and finding["file"] is not None
            and Path(finding["file"]).name == path.name
            and finding["line"] in self.lines
        )


@dataclass
class Expectation:
    """What the comments of a program say."""

    exit_code: int | None = None
    plain: int = 0
    args: list[str] = field(default_factory=list)
    allowed: dict[str, str] = field(default_factory=dict)
    findings: list[Expected] = field(default_factory=list)


def _lines_of(tree: ast.Module, line: int) -> range:
    """The lines of the innermost statement at this line; of one with a body, its header."""
    best = range(line, line + 1)
    size = None
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt):
            continue
        last = node.end_lineno or node.lineno
        first = node.lineno
        body = getattr(node, "body", None)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([first, *(d.lineno for d in node.decorator_list)])
        if body:
            last = max(node.lineno, body[0].lineno - 1)
        if first <= line <= last and (size is None or last - first < size):
            best, size = range(first, last + 1), last - first
    return best


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each expectation."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := _COMMENT.match(token.string)):
            yield token.start[0], found[1].strip()


def read(path: Path) -> Expectation:
    """The expectation of a program; ValueError where a comment cannot be read."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    result = Expectation()
    groups: dict[tuple[str, frozenset[str], str], set[int]] = {}
    for line, said in comments(text):
        for n, part in enumerate(p.strip() for p in said.split(";")):
            key, is_setting, value = part.partition("=")
            words = part.split()
            if is_setting and key == "exit":
                result.exit_code = int(value)
            elif is_setting and key == "plain":
                result.plain = int(value)
            elif is_setting and key == "args":
                result.args += value.split()
            elif is_setting and key == "allow" and len(value.split()) > 1:
                code, reason = value.split(maxsplit=1)
                result.allowed[code] = reason
            elif words and (found := _FINDING.match(words[0])) and len(words) <= 2:
                codes = frozenset(found["codes"].split("|"))
                group = words[1] if len(words) == 2 else f"line {line}, {n}"
                lines = groups.setdefault((found["severity"] or "error", codes, group), set())
                lines.update(_lines_of(tree, line))
            else:
                raise ValueError(f"{path.name}:{line}: cannot read the expectation {part!r}")
    if result.exit_code is None:
        raise ValueError(f"{path.name} does not say the exit code that it expects")
    result.findings = [Expected(*k[:2], frozenset(lines)) for k, lines in groups.items()]
    return result


def differences(expected: Expectation, report: dict[str, Any], path: Path) -> list[str]:
    """What is not as expected in the JSON report, one line each."""
    result = []
    if report["exit_code"] != expected.exit_code:
        result.append(f"exit code {report['exit_code']}, expected {expected.exit_code}")
    if report.get("error"):
        result.append(f"the tool failed: {report['error']}")
    for wanted in expected.findings:
        if not any(wanted.admits(f, path) for f in report["findings"]):
            codes, lines = "|".join(sorted(wanted.codes)), sorted(wanted.lines)
            result.append(f"missing: {wanted.severity}[{codes}] at one of the lines {lines}")
    for f in report["findings"]:
        if f["severity"] == "note" or f["code"] in expected.allowed:
            continue
        if not any(wanted.admits(f, path) for wanted in expected.findings):
            place = f"{f['file']}:{f['line']}"
            result.append(f"not expected: {f['severity']}[{f['code']}] at {place}: {f['message']}")
    return result
