"""Gets the data of a page from a session, the last run, a JSON report, or a capture."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from adtool import __version__, codec
from adtool.exits import ToolError, unreadable
from adtool.last import Last
from adtool.page.data import Missing, PageData, PageRun
from adtool.report import Report, ReportError, from_data
from engine.classes import dataclass
from engine.reading import read

if TYPE_CHECKING:
    from adtool.session import Session

_HEAD = 1 << 14  # characters, in which reports of several scripts say so
_SEVERAL = re.compile(r'"runs"\s*:')
_TOOL = f"adtool {__version__}"
_BYTES = 256 << 20  # of a report that is read
_RUN_IT = "adtool report SCRIPT --out FILE"
_PACKAGES = ("numpy", "torch", "jax", "cupy")
_WIDE = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "asimd", "sve")


def page_data_of_session(session: Session, report: Report) -> PageData:
    """A run that has just been checked. report: of that session."""
    from adtool.last import last_of

    last = last_of(session, report)
    missing = []
    if last is None:
        missing.append(Missing("Tapes", "the run did not finish, or recorded no tape", ""))
    if not session.pictures:
        missing.append(
            Missing("Jacobians", "adtool checked no launch whose Jacobian it could evaluate", "")
        )
    run = PageRun(
        session.target.name, report, None if last is None else last.traces, session.pictures,
        missing=tuple(missing), local=True,
    )  # fmt: skip
    return PageData((run,), f"a run of {session.target.name}", _TOOL, environment(report.device))


def page_data_of_last(last: Last) -> PageData:
    """What `.adtool/last` holds: report and traces. Raises ToolError where it has no report."""
    if last.report is None:  # one of an older version of adtool
        raise ToolError("nothing to show: the last run checked no gradient", _RUN_IT)
    missing = Missing("Jacobians", "the file of the last run has none", _RUN_IT)
    run = PageRun(last.script, last.report, last.traces, missing=(missing,), local=True)
    source = f"the last run in this folder, of {last.script}"
    return PageData((run,), source, _TOOL, environment(), last.remarks)


def page_data_of_json(path: Path) -> PageData:
    """A report that `adtool check --format json` wrote. Raises ToolError as `reports_in`."""
    reports = reports_in(path)
    missing = (
        Missing("Tapes: graph, gradient norms, memory", "a JSON report has no tapes", _RUN_IT),
        Missing("Jacobians and maps of errors", "a JSON report has none", _RUN_IT),
        Missing("Environment of the run", "a JSON report only names the device", _RUN_IT),
    )
    runs = tuple(PageRun(r.script or "(no script)", r, missing=missing) for r in reports)
    return PageData(
        runs, f"the report {path.name}", _TOOL, (("Report written by", reports[0].tool),)
    )


def reports_in(path: Path) -> tuple[Report, ...]:
    """The reports in a file that `adtool check --format json` wrote, of one script or of several.

    Raises ToolError where it cannot be read or is none.
    """
    try:
        text = read(path, _BYTES).decode("utf-8")
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        raise _no_report(path, "it is not UTF-8 text") from None
    try:
        return _reports(text)
    except (ReportError, codec.CodecError) as error:
        raise _no_report(path, str(error)) from None


@dataclass(frozen=True, slots=True)
class _Runs:
    """Reports of several scripts."""

    runs: tuple[Report, ...]


def _reports(text: str) -> tuple[Report, ...]:
    """One report, or those of an object with `runs`. Raises ReportError or CodecError."""
    several = _SEVERAL.search(text, 0, _HEAD) is not None
    data: Any = codec.parse(text, _Runs if several else Report)
    if isinstance(data, dict) and isinstance(data.get("runs"), list) and data["runs"]:
        return tuple(map(from_data, data["runs"]))
    return (from_data(data),)


def _no_report(path: Path, why: str) -> ToolError:
    return ToolError(f"`{path}` is not a report of adtool: {why}",
                     "write one: adtool check --format json SCRIPT > report.json")  # fmt: skip


def environment(device: str | None = None) -> tuple[tuple[str, str], ...]:
    """What numbers may depend on: versions, compiler, CPU, device, threads. No paths."""
    import engine

    found = engine.environment()
    rows = [
        ("adtool", __version__),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}"),
        ("System", f"{platform.system()} {platform.release()}, {platform.machine()}"),
    ]
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            rows.append((name, importlib.metadata.version(name)))
    model, features = _processor()
    rows += [
        ("Compiler", found.version or found.compiler_problem[0]),
        ("CPU", model or platform.processor() or "not known"),
        ("CPU features", features or "not known"),
        ("Device", device or "cpu"),
        ("Threads of a launch", f"{found.threads} of {os.cpu_count()}"),
    ]
    return tuple(rows)


def _processor() -> tuple[str, str]:
    """The CPU's name and those of its features that matter to numbers, on Linux."""
    model, flags = "", set[str]()
    with suppress(OSError, UnicodeDecodeError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = model or value.strip()
            elif name.strip() in ("flags", "Features"):
                flags |= set(value.split())
    return model, ", ".join(f for f in _WIDE if f in flags)
