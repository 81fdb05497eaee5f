"""The run that a capture holds, as data."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from adtool import __version__, codec
from adtool.captures import container, texts
from adtool.captures.container import CaptureReader, CaptureWriter
from adtool.captures.head import Faults, Head, Source, Written
from adtool.exits import ToolError, because
from adtool.faults import Seen
from adtool.places import below, here
from adtool.report import Report
from engine.archive import Archive, ArchiveError
from engine.reading import getlines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adtool.job import Keep
    from adtool.traces import Traces
    from engine import CapturedTape

T = TypeVar("T")
_SOURCE = 4 << 20  # bytes of a file's text, of larger ones there is none


def write_tapes(tapes: Sequence[CapturedTape], keep: Keep) -> Written:
    """Begins a capture with what tapes hold, unless that is too much, or cannot be written."""
    if sum(len(t.records) for t in tapes) > keep.most_records:
        return Written(why="it has too many launches")
    try:
        return _written(tapes, Path(keep.path), keep.most_bytes, keep.root)
    except OSError as error:
        return Written(why=because(error), failed=True)


def _written(tapes: Sequence[CapturedTape], path: Path, limit: int, root: str) -> Written:
    from engine.archive import NotPacked, pack

    with CaptureWriter(path) as out:
        try:
            archive, files = pack(tapes, out, partial(below, root), limit)
        except NotPacked as why:
            return Written(why=str(why))
        out.text(container.TAPES, codec.dumps(archive))
        sources = []
        for number, (name, original) in enumerate(files.items()):
            text = "".join(getlines(original))
            if text and len(text) <= _SOURCE:
                member = f"{container.SOURCES}{number}.txt"
                out.text(member, text)
                sources.append(Source(name, member))
    return Written(tuple(sources))


def complete(
    path: Path, head: Head, traces: str = "", report: Report | None = None,
    faults: tuple[Seen, ...] = (),
) -> None:  # fmt: skip
    """Adds to a capture what is known when its run is over. Raises OSError.

    traces: JSON of `adtool.traces.Traces`, empty for none. Files below the current folder are named
    relative to it, as those of the tapes are.
    """
    relative = relative_to(here())
    with CaptureWriter(path, more=path.exists() and path.stat().st_size > 0) as out:
        out.text(container.HEAD, codec.dumps(head))
        if traces:
            out.text(container.TRACES, relative(traces))
        if report is not None:
            out.text(container.REPORT, relative(codec.brief(report)))
        if faults:
            out.text(container.FAULTS, relative(codec.dumps(Faults(faults))))


def relative_to(root: str) -> Callable[[str], str]:
    """What names files below a folder, in a text of JSON, relative to it."""
    if not root:
        return lambda text: text
    # A pattern that begins with text is searched for fast: what is before it is looked at then.
    pattern = re.compile(re.escape(json.dumps(root)[1:-1]))

    def without(found: re.Match[str]) -> str:
        before = found.string[max(0, found.start() - 1) : found.start()]
        return found[0] if re.fullmatch(r"[\w./\-]", before) else ""

    return lambda text: pattern.sub(without, text)


def head_of(script: str, device: str | None, why: str = "", **more: Any) -> Head:
    """The head of a capture that this tool writes."""
    return Head(f"adtool {__version__}", script, device or "cpu", why=why, **more)


class Run:
    """A capture that is read. Raises DamagedCapture where something in it is not as it must be."""

    def __init__(self, reader: CaptureReader) -> None:
        self.reader = reader
        self.head: Head = self._loaded(container.HEAD, Head)
        self._archive: Archive | None = None

    def archive(self) -> Archive:
        """The tapes, as data."""
        if self._archive is not None:
            return self._archive
        if not self.reader.has(container.TAPES):
            why = self.head.why or "the file has only the data for pictures"
            raise self.reader.damaged(f"it holds no tapes ({why})")
        found: Archive = self._loaded(container.TAPES, Archive)
        texts.bar(found.files)
        self._archive = found
        return found

    def tapes(self, trust: bool, limit: int) -> list[CapturedTape]:
        """The tapes. trust: whether C++ text may be compiled; limit: of their arrays' bytes."""
        from engine.archive import unpack

        try:
            return unpack(self.archive(), self.reader, trust=trust, limit=limit)
        except ArchiveError as error:
            raise self.reader.damaged(str(error)) from None

    def report(self) -> Report | None:
        """The report of the check, where there was one."""
        found: Report | None = self._maybe(container.REPORT, Report)
        return found

    def traces(self) -> Traces | None:
        """What pictures are drawn from. They fit themselves: see `traces.require_whole`."""
        from adtool.traces import Traces, require_whole

        found: Traces | None = self._maybe(container.TRACES, Traces)
        if found is not None:
            try:
                require_whole(found)
            except codec.CodecError as error:
                raise self._broken(container.TRACES, error) from None
        return found

    def faults(self) -> tuple[Seen, ...]:
        """What launches did wrong while the program ran."""
        found: Faults | None = self._maybe(container.FAULTS, Faults)
        return () if found is None else found.faults

    def tell_sources(self) -> None:
        """Has `linecache` know the program's files, for snippets in messages."""
        if len({s.member for s in self.head.sources}) != len(self.head.sources):
            raise self.reader.damaged("two of its files have the same text")
        for s in self.head.sources:
            texts.tell(s.name, self.reader.source(s.member))

    def _maybe(self, name: str, kind: type[T]) -> T | None:
        return self._loaded(name, kind) if self.reader.has(name) else None

    def _loaded(self, name: str, kind: type[T]) -> T:
        try:
            found = codec.loads(kind, self.reader.text(name))
            if kind is not Archive:  # which has a table of them
                texts.bar_in(found)
        except codec.CodecError as error:
            raise self._broken(name, error) from None
        return found

    def _broken(self, name: str, error: codec.CodecError) -> ToolError:
        return self.reader.damaged(f"its {name} is damaged ({error})")
