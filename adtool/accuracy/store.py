"""Reads and writes the baseline file: JSON, one object a line (docs/baseline.md).

Reading builds plain data and nothing else. Lines may stand in any order and more than once, as
after a merge by `union`: of two that are about one pair the stricter one counts.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from adtool.accuracy.entries import Baseline, Entry, Known, rank, size
from adtool.exits import ToolError, unreadable
from adtool.report import Severity, Verdict
from adtool.writing import spare_sources, write_file
from engine.reading import at_once, require_regular

NAME = "adtool-baseline.jsonl"
VERSION = 1
_HEAD = {"format": "adtool-baseline", "version": VERSION}
_BYTES = 64 << 20
_LINE = 1 << 20
_WRITE = "write it: adtool baseline write SCRIPT..."
_ANEW = "fix the line, or delete the file and write it again: adtool baseline write SCRIPT..."
_MARKS = (b"<<<<<<<", b"=======", b">>>>>>>", b"|||||||")
_SEVERITIES = get_args(Severity)
_VERDICTS = get_args(Verdict)

_PAIR = {"script", "kernel", "input", "output", "verdict", "error", "rounding"}
_TAPE = {"script", "tape", "verdict", "error", "rounding"}
_FINDING = {"script", "finding", "severity", "kernel", "file", "fingerprint"}


class _Bad(Exception):
    """What is wrong with a line."""


def read(path: Path) -> Baseline:
    """The baseline in a file.

    Raises ToolError where it cannot be read, is none, or a line of it is wrong, which it names.
    """
    entries: dict[Any, Entry] = {}
    known: dict[Any, Known] = {}
    try:
        with open(path, "rb", opener=at_once) as file:
            require_regular(file.fileno(), _BYTES)
            for number, line in enumerate(_lines(file), 1):
                try:
                    found = _read(line, number == 1)
                except _Bad as why:
                    raise ToolError(f"`{path}`, line {number}: {why}", _ANEW) from None
                if isinstance(found, Entry):
                    entries[found.key] = _stricter(entries.get(found.key), found)
                elif found is not None:
                    known[found.key] = found
            if file.tell() == 0:
                raise ToolError(f"`{path}` is empty and not a baseline", _ANEW)
    except FileNotFoundError:
        raise ToolError(f"the baseline `{path}` does not exist", _WRITE) from None
    except OSError as error:
        raise unreadable(path, error) from None
    return Baseline(_sorted(entries.values()), _sorted(known.values()))


def write(baseline: Baseline, path: Path) -> None:
    """Writes it in one step. Raises ToolError where that cannot be."""
    spare_sources(path)
    write_file(text_of(baseline).encode("utf-8"), path)


def text_of(baseline: Baseline) -> str:
    """The file's text: sorted, a line a pair, with blank lines between kernels.

    Changes of two branches that touch different kernels do not meet, then.
    """
    lines = [_json(_HEAD)]
    block: object = None
    for e in _sorted(baseline.entries):
        if (e.script, e.tape or e.kernel) != block:
            block = e.script, e.tape or e.kernel
            lines.append("")
        lines.append(_json(_data(e)))
    for k in _sorted(baseline.known):
        if (k.script, k.code, k.kernel) != block:
            block = k.script, k.code, k.kernel
            lines.append("")
        lines.append(
            _json(
                {"script": k.script, "finding": k.code, "severity": k.severity,
                 "kernel": k.kernel, "file": k.file, "fingerprint": k.fingerprint}
            )
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def coarse(value: float | None, floor: float) -> float | None:
    """An error as it is kept: two digits, and 0 for what is below the floor."""
    if value is None or not math.isfinite(value):
        return value
    return 0.0 if value < floor else float(f"{value:.1e}")


def _sorted(items: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(sorted(items, key=lambda i: i.key))


def _data(e: Entry) -> dict[str, Any]:
    if e.tape:
        return {"script": e.script, "tape": e.kernel, "verdict": e.verdict,
                "error": _number(e.error, e.floor),
                "rounding": _number(e.rounding, e.floor_rounding)}  # fmt: skip
    return {
        "script": e.script, "kernel": e.kernel, "input": e.input, "output": e.output,
        "verdict": e.verdict, "error": _number(e.error, e.floor),
        "rounding": _number(e.rounding, e.floor_rounding),
    }  # fmt: skip


def _number(value: float | None, floor: float) -> Any:
    value = coarse(value, floor)
    if value is None:
        return None
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf"
    return value if value >= floor else f"<{floor:g}"


def _json(data: dict[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(data)


def _lines(file: Any) -> Iterator[bytes]:
    while line := file.readline(_LINE + 1):
        yield line


def _object(line: bytes) -> dict[str, Any]:
    if line.startswith(_MARKS):
        raise _Bad("an unresolved merge conflict")
    if len(line) > _LINE:
        raise _Bad("the line is too long")
    try:
        data = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise _Bad("it is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise _Bad("it is not JSON") from None
    if not isinstance(data, dict):
        raise _Bad("it is not an object")
    return data


def _check_head(line: bytes) -> None:
    try:
        data = _object(line)
    except _Bad:
        data = {}
    if data.get("format") != _HEAD["format"]:
        raise _Bad("this is not a baseline of adtool")
    if data.get("version") != VERSION or isinstance(data["version"], bool):
        shown = repr(data.get("version"))[:20]
        raise _Bad(f"version {shown} is unknown: this adtool reads version {VERSION}")


def _read(line: bytes, first: bool) -> Entry | Known | None:
    """What a line is about; None of the first line, and of one without a word."""
    if first:
        _check_head(line)
        return None
    if not line.strip():
        return None
    data = _object(line)
    if data == _HEAD:  # twice, after a merge
        return None
    if "tape" in data:
        data.setdefault("rounding", None)
    wanted = _FINDING if "finding" in data else _TAPE if "tape" in data else _PAIR
    for name in sorted(wanted - data.keys()):
        raise _Bad(f"`{name}` is missing")
    for name in sorted(data.keys() - wanted):
        raise _Bad(f"`{name[:40]}` is unknown")
    for name in sorted(wanted - {"error", "rounding"}):
        if not isinstance(data[name], str):
            raise _Bad(f"`{name}` is not a string")
    text = {k: sys.intern(v) for k, v in data.items() if isinstance(v, str)}
    if wanted is _FINDING:
        if text["severity"] not in _SEVERITIES:
            raise _Bad(f"the severity is not one of {', '.join(_SEVERITIES)}")
        return Known(text["script"], text["finding"], text["fingerprint"], text["severity"],  # type: ignore[arg-type]
                     text["kernel"], text["file"])  # fmt: skip
    verdict: Any = text["verdict"]
    if verdict not in _VERDICTS:
        raise _Bad(f"the verdict is not one of {', '.join(_VERDICTS)}")
    error, rounding = (_value(name, data[name]) for name in ("error", "rounding"))
    if wanted is _TAPE:
        return Entry(text["script"], text["tape"], "", "", verdict, error, rounding, True)
    return Entry(text["script"], text["kernel"], text["input"], text["output"], verdict, error,
                 rounding)  # fmt: skip


def _value(name: str, data: Any) -> float | None:
    if data is None:
        return None
    below = isinstance(data, str) and data.startswith("<")
    if data in ("nan", "inf"):
        return float(data)
    try:
        value = float(data[1:] if below else data) if below or not isinstance(data, str) else -1.0
    except (TypeError, ValueError, OverflowError):
        value = -1.0
    if isinstance(data, bool) or not (math.isfinite(value) and value >= 0.0):
        raise _Bad(
            f'`{name}` is not an error: expected a number of at least 0, "<1e-7", "nan", "inf" '
            "or null"
        )
    return 0.0 if below else value


def _stricter(one: Entry | None, other: Entry) -> Entry:
    """Of two lines of one key, as after a merge, the better of each number: null is no number."""
    if one is None:
        return other
    first, second = sorted((one, other), key=lambda e: rank(e.verdict))
    return replace(
        first, error=_smaller(first.error, second.error),
        rounding=_smaller(first.rounding, second.rounding),
    )  # fmt: skip


def _smaller(a: float | None, b: float | None) -> float | None:
    known = [x for x in (a, b) if x is not None]
    return min(known, key=size) if known else None
