"""All that the tool reads from files of others: one row each. Tests of hostile files go over them.

A reader that is added here is fuzzed: it either reads a file, or raises one of `REFUSED`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import typer.main

from adtool import cli, codec, configuration, last, status, tasks
from adtool.codec import CodecError
from adtool.exits import ToolError
from adtool.job import CheckOptions, Job, Target
from adtool.outcome import Outcome
from adtool.page.sources import page_data_of_json
from adtool.report import Failure, failed_report, to_json
from engine.archive import ArchiveError
from engine.compile.cache import Cache
from tests.fuzz.samples import capture, draw_capture, read_capture

REFUSED = (ToolError, ArchiveError, CodecError)


@dataclass(frozen=True)
class Reader:
    """What reads a kind of file. good: one that is right. text: whether it is JSON."""

    name: str
    file: str
    good: Callable[[], bytes]
    read: Callable[[Path], Any]
    text: bool = True

    def __str__(self) -> str:
        return self.name


@cache
def _commands() -> Any:
    found: Any = typer.main.get_command(cli.app)
    return found.commands


_TOML = b"""[tool.adtool]
gate = "warning"
ignore = ["G005"]
seed = 3
scripts = ["a.py", "b/**"]
[tool.adtool.check]
format = "json"
[[tool.adtool.overrides]]
paths = ["samples/**"]
timeout = 3.5
"""


def _settings(path: Path) -> None:
    configuration.settings(path.parent, _commands())
    configuration.project(path.parent, _commands())


def _report() -> bytes:
    return to_json(failed_report(Failure("usage", "m", "h"), "adtool 0")).encode()


def _job() -> bytes:
    return codec.dumps(Job(Target("s.py"), CheckOptions())).encode()


def _entry(path: Path) -> None:
    """An entry of the kernel cache whose object is not there: whatever it says is nothing."""
    root = path.parent / "cache"
    root.mkdir(exist_ok=True)
    cache = Cache(root)
    (root / "index" / "key.json").write_bytes(path.read_bytes())
    assert cache.find("key") is None
    cache.trim()


def _decoded(kind: type) -> Callable[[Path], Any]:
    def read(path: Path) -> Any:
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return None  # whoever reads it knows
        return codec.loads(kind, text)

    return read


def _task(path: Path) -> None:
    tasks.read(path.read_bytes().decode("utf-8", "replace"))


READERS = [
    Reader("capture", "run.adt", lambda: capture("of_views"), read_capture, False),
    Reader("last", "last", lambda: capture("of_loops"), last.read, False),
    Reader("pictures", "drawn.adt", lambda: capture("that_overwrites"), draw_capture, False),
    Reader("report", "report.json", _report, page_data_of_json),
    Reader("configuration", "pyproject.toml", lambda: _TOML, _settings, False),
    Reader("outcome", "result.json", lambda: codec.dumps(Outcome("done")).encode(),
           _decoded(Outcome)),
    Reader("job", "job.json", _job, _decoded(Job)),
    Reader("task", "task.json", lambda: b'{"kind": "check_target", "task": {}}', _task),
    Reader("cache entry", "entry.json", lambda: json.dumps(
        {"schema": 1, "object": "ab" * 32, "symbol": "k"}).encode(), _entry),
    Reader("status", "status", lambda: bytes(4096), status.read, False),
]  # fmt: skip
