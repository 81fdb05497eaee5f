"""Captures of a few programs, made once a process, and their readers."""

from __future__ import annotations

import hashlib
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import engine as wp
from adtool import last, traces
from adtool.captures import container
from adtool.captures.container import CaptureReader
from adtool.captures.head import Head
from adtool.captures.run import Run, complete, write_tapes
from adtool.course import course
from adtool.health import health, path_of
from adtool.job import Keep
from adtool.page.document import render_html
from adtool.page.sources import page_data_of_last
from engine.autograd import GraphOptions, Witness, dot, graph
from tests import reports
from tests.unit.archive.test_round_trip import (
    program_of_functions,
    program_of_loops,
    program_of_native_code,
    program_of_structs,
    program_of_types,
    program_of_views,
    program_that_overwrites,
)

PROGRAMS: dict[str, Callable[[], None]] = {
    p.__name__.partition("_")[2]: p
    for p in (
        program_of_loops, program_of_structs, program_of_views, program_that_overwrites,
        program_of_types, program_of_functions, program_of_native_code,
    )
}  # fmt: skip


@cache
def capture(name: str) -> bytes:
    """The bytes of a capture of a program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.adt"
        with wp.capturing(watcher=Witness(), traces=99) as found:
            PROGRAMS[name]()
            traces.write(found.tapes, 99, Path(folder) / container.TRACES)
        written = write_tapes([t for t in found.tapes if t.records], Keep(str(path), 1 << 30, 99))
        assert not written.why
        head = Head("adtool 0", f"{name}.py", sources=written.sources)
        text = (Path(folder) / container.TRACES).read_text()
        complete(path, head, text, reports.report())
        return path.read_bytes()


@cache
def members(name: str) -> dict[str, bytes]:
    """The members of a capture, unpacked."""
    import io

    with zipfile.ZipFile(io.BytesIO(capture(name))) as z:
        return {i.filename: z.read(i) for i in z.infolist()}


def document(name: str) -> Any:
    """`tapes.json` of a capture, to be changed."""
    return json.loads(members(name)[container.TAPES])


def rebuilt(path: Path, parts: dict[str, bytes]) -> Path:
    """A zip archive of members, as captures are."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, data in parts.items():
            z.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED, 1)
    return path


def with_traces(path: Path, name: str, text: str) -> Path:
    """The capture of a program, with another `traces.json`."""
    return rebuilt(path, {**members(name), container.TRACES: text.encode()})


def with_tapes(path: Path, name: str, text: str | bytes) -> Path:
    """The capture of a program, with another `tapes.json`."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return rebuilt(path, {**members(name), container.TAPES: data})


def arrays(name: str) -> list[bytes]:
    """The arrays of a capture, as they are packed."""
    return [d for n, d in members(name).items() if n.startswith(container.ARRAYS)]


def with_array(path: Path, name: str, old: bytes, new: bytes) -> Path:
    """The capture of a program, in which an array is another one, under its right digest."""
    before, after = (hashlib.sha256(x).hexdigest() for x in (old, new))
    parts = {
        n.replace(before, after): new if d is old else d.replace(before.encode(), after.encode())
        for n, d in members(name).items()
    }
    return rebuilt(path, parts)


def read_capture(path: Path, trust: bool = False) -> list[Any]:
    """Reads all of a capture, contents of arrays too. Gives its tapes."""
    with CaptureReader(path) as reader:
        run = Run(reader)
        for s in run.head.sources:
            reader.text(s.member)
        run.report(), run.traces(), run.faults()
        tapes = run.tapes(trust, 1 << 26)
        for t in tapes:
            for r in t.records:
                for k, hold in getattr(r, "holds", {}).items():
                    a = r.values[k]
                    hold.read(a.ptr, a.shape + a._info.inner, a.strides + a._info.steps, None)
        return tapes


def draw_capture(path: Path) -> None:
    """Draws all that `graph`, `trace` and `report` draw of a capture, or of the last run."""
    found = last.read(path)
    for t in found.traces.tapes:
        course(t)
        dot(graph(t.listing, GraphOptions(simplify=False)))
        seen = health(found, t)
        if seen.first is not None:
            path_of(t.listing, seen.first)
    render_html(page_data_of_last(found))
