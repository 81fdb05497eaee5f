"""What happened after the last run was kept, and beside it: it must not look like the newest word.

`.adtool/remarks` holds it, beside `.adtool/last`, and belongs to the file that was there by then.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from adtool import codec, temporary
from adtool.captures.head import Digest
from adtool.keeping import FOLDER, NAME
from adtool.places import short
from adtool.report import Report
from adtool.verdicts import verdict
from engine.classes import dataclass
from engine.private import own_folder, read_own

_NAME = "remarks"
_BYTES = 1 << 20
_MOST = 20  # scripts that are named
_LENGTH = 500  # characters of a reason
_SOURCE = 16 << 20  # bytes of a source file that is looked at


@dataclass(frozen=True, slots=True)
class Remark:
    """A script, and what came of it."""

    script: str
    what: str


@dataclass(frozen=True, slots=True)
class Remarks:
    """Of a last run. of: its file, as `_mark` has it.

    others: scripts that the same command checked and that did not pass. later: checks that came
    after, and were not kept.
    """

    of: str
    others: tuple[Remark, ...] = ()
    later: tuple[Remark, ...] = ()


def digests(files: Iterable[str]) -> tuple[Digest, ...]:
    """What source files hold now, by the names they have here. What is no file is left out."""
    found = {short(f): _digest(f) for f in dict.fromkeys(files) if os.path.isfile(f)}
    return tuple(Digest(name, digest) for name, digest in sorted(found.items()))


def not_kept(script: str, why: str) -> None:
    """A check came to nothing that is kept: the last run is an older one."""
    known = _read()
    if known is None:
        return
    rest = tuple(x for x in known.later if x.script != script)
    _write(replace(known, later=(*rest, Remark(script, why[:_LENGTH]))[-_MOST:]))


def checked_together(reports: Sequence[Report]) -> None:
    """One command has checked several scripts, of which the last that has a result was kept."""
    done = [r for r in reports if r.error is None or r.launches]
    known = _read()
    if not done or known is None:
        return
    some = [r for r in reports if r is not done[-1] and not (r.ok and r.error is None)]
    if not some:
        return
    others = tuple(Remark(str(r.script), verdict(r)) for r in some[:_MOST])
    names = {x.script for x in others}
    later = tuple(x for x in known.later if x.script not in names)
    _write(replace(known, others=others, later=later))


def said(script: str, checked: Sequence[Digest]) -> tuple[str, ...]:
    """What a view of the last run has to say. script: its name; checked: its files by then."""
    known = _read() or Remarks("")
    return (*_later(script, known.later), *_changed(checked), *_others(script, known.others))


def _later(script: str, later: Sequence[Remark]) -> Iterator[str]:
    for x in later:
        of = "this script" if x.script == script else f"`{x.script}`"
        yield f"a later check of {of} gave no result to show: {x.what}"


def _changed(checked: Sequence[Digest]) -> Iterator[str]:
    for x in checked:
        if not os.path.isfile(x.name):
            yield f"`{x.name}` is no longer there: this is a check of what it was"
        elif _digest(x.name) != x.sha256:
            yield f"`{x.name}` has changed since this check"


def _others(script: str, others: Sequence[Remark]) -> Iterator[str]:
    each = ", ".join(f"`{x.script}` ({x.what})" for x in others if x.script != script)
    if each:
        yield f"the same command was given other scripts, which did not pass: {each}"


def _digest(file: str) -> str:
    """Of what it holds; empty where it cannot be read."""
    try:
        with open(file, "rb") as stream:
            return hashlib.sha256(stream.read(_SOURCE)).hexdigest()
    except OSError:
        return ""


def _mark() -> str:
    """What tells the file of the last run from others; empty where there is none."""
    try:
        info = os.stat(Path(FOLDER) / NAME)
    except OSError:
        return ""
    return f"{info.st_ino}:{info.st_mtime_ns}:{info.st_size}"


def _read() -> Remarks | None:
    """The remarks on the last run, none so far or some; None where there is no run."""
    mark = _mark()
    if not mark:
        return None
    with suppress(OSError, ValueError, codec.CodecError):
        text = read_own(os.path.join(FOLDER, _NAME), _BYTES).decode("utf-8")
        found: Remarks = codec.loads(Remarks, text)
        if found.of == mark:
            return found
    return Remarks(mark)


def _write(remarks: Remarks) -> None:
    with suppress(OSError, ValueError):
        own_folder(FOLDER)
        descriptor, name = temporary.file(Path(FOLDER).absolute(), ".last-")
        os.close(descriptor)
        try:
            Path(name).write_bytes(codec.dumps(remarks).encode("utf-8", "backslashreplace"))
            os.replace(name, Path(FOLDER) / _NAME)
        finally:
            temporary.remove(name)
