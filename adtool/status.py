"""A page of shared memory in which the child process notes what it is doing.

It is written before every launch and survives any death of the child: the kernel's
page cache holds it. A write is one slice assignment into a memory-mapped file.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

from adtool import files
from engine.classes import dataclass

_SIZE = 4096
_HEADER = struct.Struct(
    "<qqqqqqqqq"
)  # phase, ready, launches, tape, tapes, launch, done, total, text bytes
_TEXT = _SIZE - _HEADER.size

START, SCRIPT, CHECK, END = range(4)


@dataclass(frozen=True, slots=True)
class Status:
    """What the child was doing when it last said so.

    ready: whether the script has ended, and an unwatched run of it may begin beside the checks.
    launches: how many launches the script has started. kernel, file, line: the last
    one's kernel and call, or the kernel being checked. defined, at: the file and first line of
    that kernel, where it is known. done of total steps are checked; the
    present one is `launch` of the tape with number `tape` of `tapes`, -1 for the tape as a whole.
    """

    phase: int = START
    launches: int = 0
    tape: int = 0
    tapes: int = 0
    launch: int = 0
    done: int = 0
    total: int = 0
    kernel: str = ""
    file: str = ""
    line: int = 0
    defined: str = ""
    at: int = 0
    ready: bool = False


class StatusWriter:
    """The child's end."""

    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR)
        try:
            self._page = mmap.mmap(descriptor, _SIZE)
        finally:
            os.close(descriptor)
        self._launches, self._ready = 0, False
        self._texts: dict[tuple[str, str, int, str, int], bytes] = {}
        self._muted = False
        # A forked process shares the page, and would overwrite what its parent says.
        os.register_at_fork(after_in_child=self._mute)

    def _mute(self) -> None:
        self._muted = True

    def phase(self, phase: int) -> None:
        """Enters a phase; the last launch stays named."""
        if not self._muted:
            self._page[:8] = phase.to_bytes(8, "little")

    def ready(self) -> None:
        """Says that an unwatched run of the script may begin."""
        if not self._muted:
            self._ready = True
            self._page[8:16] = (1).to_bytes(8, "little")

    def launch(
        self, kernel: str, index: int, file: str, line: int, defined: str = "", at: int = 0
    ) -> None:
        """Says that a launch of `kernel` starts, after `index` others, called at file and line.

        defined, at: where the kernel's function begins.
        """
        if self._muted:
            return
        key = (kernel, file, line, defined, at)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = _pack(*key)
        self._launches = index + 1
        head = _HEADER.pack(SCRIPT, 0, self._launches, 0, 0, 0, 0, 0, len(text))
        self._page[: _HEADER.size + len(text)] = head + text

    def check(self, tape: int, tapes: int, launch: int, done: int, total: int, kernel: str) -> None:
        """Says which launch of which tape is being checked, and how many steps are done."""
        if self._muted:
            return
        text = _pack(kernel, "", 0)
        head = _HEADER.pack(
            CHECK, self._ready, self._launches, tape, tapes, launch, done, total, len(text)
        )
        self._page[: _HEADER.size + len(text)] = head + text


def create(path: Path) -> None:
    """Makes an empty page, private to the user."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        left = bytes(_SIZE)  # a hole could not be filled later on a full disk
        while left:  # a limit on files' sizes cuts what is written, and then refuses
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def read(path: Path) -> Status:
    """What the page says now. A torn text is possible while the child writes, never an error."""
    try:
        page = files.content(path).ljust(_SIZE, b"\0")
    except OSError:  # a target may remove temporary folders
        return Status()
    phase, ready, launches, tape, tapes, launch, done, total, size = _HEADER.unpack_from(page)
    text = page[_HEADER.size : _HEADER.size + min(max(size, 0), _TEXT)]
    kernel, file, line, defined, at = [
        *text.decode("utf-8", "surrogateescape").split("\0"),
        *[""] * 5,
    ][:5]
    return Status(
        phase, launches, tape, tapes, launch, done, total, kernel, file, _number(line), defined,
        _number(at), bool(ready),
    )  # fmt: skip


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _bytes(text: str) -> bytes:
    """A name as bytes, whatever the locale is: files' names may hold bytes that are no text."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # other surrogates
        return text.encode("utf-8", "replace")


def _pack(kernel: str, file: str, line: int, defined: str = "", at: int = 0) -> bytes:
    long = (_TEXT - 600) // 2
    parts = (
        _bytes(kernel)[:500], _bytes(file)[:long], str(line).encode(),
        _bytes(defined)[:long], str(at).encode(),
    )  # fmt: skip
    return b"\0".join(parts)
