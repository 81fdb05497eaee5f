"""The file format of captures: a zip archive with few kinds of members and bounded sizes.

Nothing in it is ever executed by reading it: texts are strict JSON, arrays are `.npy` files without
objects, and both are looked at before they are used.
"""

from __future__ import annotations

import errno
import hashlib
import io
import math
import os
import re
import struct
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from adtool import places
from adtool.captures.sniff import MAGIC
from adtool.exits import ToolError, unreadable
from engine.archive import ArchiveError
from engine.reading import UnreadableKind, at_once, require_regular

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

FORMAT = 2
HEAD, TAPES, REPORT, TRACES, FAULTS = (
    "run.json", "tapes.json", "report.json", "traces.json", "faults.json",
)  # fmt: skip
ARRAYS, SOURCES = "arrays/", "sources/"

_FILE_BYTES = 64 << 30  # of the file, which is read as a whole before it is believed
_TEXT_BYTES = 512 << 20  # of one text, unpacked
_SOURCE_BYTES = 4 << 20
_MEMBERS, _PER_MEMBER = 4096, 256  # how many there may be; more in files of as many bytes each
_RATIO = 64  # how much larger than the file a text may be, above a megabyte
_SOURCES_RATIO = 16  # the same for all sources together, above a few megabytes
_MEMBER = b"PK\3\4"  # begins each member, and so the file
_ENTRY = b"PK\1\2"  # begins each entry of the directory
_SMALL = 128  # bytes that are not worth compressing
_DATE = (1980, 1, 1, 0, 0, 0)  # the same run gives the same bytes
_ARRAY = re.compile(rf"{ARRAYS}[0-9a-f]{{64}}\.npy")
_SOURCE = re.compile(rf"{SOURCES}[0-9]{{1,6}}\.txt")
# The head of an array: type and shape, in the words of `numpy.lib.format`.
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][biuf][0-9]{1,2})', 'fortran_order': False, "
    rb"'shape': \(((?:[0-9]{1,19}, ?){0,64}(?:[0-9]{1,19})?)\), \} *\n",
    re.DOTALL,
)
_DIMENSIONS, _LARGEST = 32, 1 << 62  # what every NumPy has; bytes
_TEXTS = (MAGIC, HEAD, TAPES, REPORT, TRACES, FAULTS)


class DamagedCapture(ToolError):
    """A file is no capture, or not one that can be used."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"`{path}` cannot be used: {why}", "write it again: adtool capture SCRIPT")
        self.why = why


class CaptureWriter:
    """Writes a capture, member by member. Raises OSError."""

    def __init__(self, path: Path, more: bool = False) -> None:
        """more: adds to a file that another writer began."""
        self._zip = zipfile.ZipFile(path, "a" if more else "w", zipfile.ZIP_DEFLATED)
        self._known: set[str] = set()
        if not more:
            try:
                self.text(MAGIC, f"{FORMAT}\n")
            except BaseException:
                self._abandon()
                raise

    def __enter__(self) -> CaptureWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._zip.close()
        else:
            self._abandon()

    def _abandon(self) -> None:
        """Closes the file as it is: its directory could not be written either."""
        file, self._zip.fp = self._zip.fp, None
        if file is not None:
            with suppress(OSError):
                file.close()

    def text(self, name: str, text: str) -> None:
        """Adds a text."""
        self._add(name, text.encode("utf-8", "surrogatepass"))

    def put(self, values: np.ndarray[Any, Any]) -> str:
        """Adds an array, if it is not there yet. Gives its digest: of the member's bytes."""
        digest, data = packed(values)
        self.raw(digest, data)
        return digest

    def raw(self, digest: str, data: bytes) -> None:
        """Adds an array that is packed already, if it is not there yet."""
        if digest not in self._known:
            self._known.add(digest)
            self._add(f"{ARRAYS}{digest}.npy", data)

    def _add(self, name: str, data: bytes) -> None:
        info = zipfile.ZipInfo(name, _DATE)
        info.external_attr = 0o600 << 16
        small = len(data) < _SMALL or name == MAGIC
        info.compress_type = zipfile.ZIP_STORED if small else zipfile.ZIP_DEFLATED
        self._zip.writestr(info, data, compresslevel=1)


class _OwnPlace(io.RawIOBase):
    """A file with a position of its own: forks of a process share that of a descriptor."""

    def __init__(self, file: IO[bytes]) -> None:
        self._opened = file
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._opened.fileno()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        begin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position}
        if whence not in begin:
            begin[whence] = os.fstat(self.fileno()).st_size
        if begin[whence] + offset < 0:
            raise ValueError("a position before the file")
        self._position = begin[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        data = os.pread(self.fileno(), len(buffer), self._position)
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()


class CaptureReader:
    """Reads a capture. Everything it gives was looked at. Raises DamagedCapture, or ToolError.

    opener: opens it, as that of `open`.
    """

    def __init__(self, path: Path, opener: Callable[[str, int], int] = at_once) -> None:
        self.path = path
        try:
            file = open(path, "rb", opener=opener)  # noqa: SIM115
            self._file = io.BufferedReader(_OwnPlace(file)) if hasattr(os, "pread") else file
        except FileNotFoundError:
            raise ToolError((
                f"the capture `{path}` does not "
                "exist"
            ), f"the current folder is {places.folder()}"
                            ) from None  # fmt: skip
        except OSError as error:
            raise unreadable(path, error) from None
        try:
            self._size = self._regular()
            self._sources_left = max(2 * _SOURCE_BYTES, _SOURCES_RATIO * self._size)
            self._members = self._listed()
            version = self._read(MAGIC, 32).strip()
            if not re.fullmatch(rb"[0-9]{1,6}", version):
                raise self.damaged("it has no version")
            if int(version) != FORMAT:
                text = version.decode("ascii")
                raise self.damaged(f"it has version {text}: this adtool reads version {FORMAT}")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> CaptureReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def damaged(self, why: str) -> DamagedCapture:
        """The error that says so."""
        return DamagedCapture(self.path, why)

    def has(self, name: str) -> bool:
        """Whether there is a member of a name."""
        return name in self._members

    def text(self, name: str) -> str:
        """A text, of a size that is bounded."""
        limit = min(_TEXT_BYTES, max(1 << 20, _RATIO * self._size))
        return self._text(name, limit)

    def source(self, name: str) -> str:
        """The text of a source file. All of them together have a largest size."""
        if _SOURCE.fullmatch(name) is None:
            raise self.damaged(f"{name[:40]!r} is not a source")
        found = self._text(name, min(_SOURCE_BYTES, self._sources_left))
        self._sources_left -= len(found)
        return found

    def _text(self, name: str, limit: int) -> str:
        try:
            return self._read(name, limit).decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise self.damaged(f"its {name} is not text") from None

    # ---- arrays

    def get(self, digest: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array by its digest. Raises ArchiveError where it is not what is expected."""
        count = math.prod(map(int, shape)) * dtype.itemsize
        return expected(digest, self.raw(digest, count), shape, dtype)

    def raw(self, digest: str, size: int | None = None) -> bytes:
        """An array as it is packed. size: of its numbers, in bytes. Raises ArchiveError."""
        name = _member(digest)
        info = self._members.get(name)
        if info is None:
            raise ArchiveError(f"it has no {_member(digest[:64])!r}")
        if size is not None and not 0 <= info.file_size - size <= 1024:
            raise ArchiveError(f"its {name} has another shape")
        try:
            data = self._read(name, info.file_size)
        except DamagedCapture as error:
            raise ArchiveError(error.why) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ArchiveError(f"its {name} is damaged")
        return data

    # ---- members

    def _regular(self) -> int:
        try:
            require_regular(self._file.fileno(), _FILE_BYTES)
        except UnreadableKind as error:
            large = error.errno == errno.EFBIG
            raise self.damaged(
                f"it is larger than {_FILE_BYTES >> 30} GiB"
                if large
                else "adtool did not write this file"
            ) from None
        return os.fstat(self._file.fileno()).st_size

    def _listed(self) -> dict[str, zipfile.ZipInfo]:
        if self._file.read(len(_MEMBER)) != _MEMBER:  # before all of a large file is read
            raise self.damaged("it is not a capture")
        if _entries(self._file, self._size) > max(_MEMBERS, self._size // _PER_MEMBER):
            raise self.damaged("it has too many members")
        try:
            self._zip = zipfile.ZipFile(self._file)
            infos = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, EOFError, struct.error,
                NotImplementedError, OverflowError, UnicodeDecodeError) as error:  # fmt: skip
            raise self.damaged(f"it is not a capture ({_words(error)})") from None
        members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename
            if name in members:
                raise self.damaged(f"it has two members {name[:80]!r}")
            members[name] = info
            if not (name in _TEXTS or _ARRAY.fullmatch(name) or _SOURCE.fullmatch(name)):
                continue  # of a later version: nobody asks for it
            if info.flag_bits & 1 or info.compress_type not in (
                zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED,
            ):  # fmt: skip
                raise self.damaged(f"its {name} is compressed by a method that captures do not use")
        if MAGIC not in members:
            raise self.damaged("it is not a capture")
        return members

    def _read(self, name: str, limit: int) -> bytes:
        info = self._members.get(name)
        if info is None:
            raise self.damaged(f"it has no {name}")
        if info.file_size > limit:
            raise self.damaged(
                f"its {name} is larger than {limit >> 20} MiB, or larger than it can be"
            )
        try:
            with self._zip.open(info) as member:
                data = member.read(info.file_size + 1)
        except (zipfile.BadZipFile, OSError, EOFError, ValueError, zlib.error, struct.error,
                RuntimeError, OverflowError, MemoryError) as error:  # fmt: skip
            raise self.damaged(f"its {name} is damaged ({_words(error)})") from None
        if len(data) != info.file_size:
            raise self.damaged(f"its {name} is damaged")
        return data


def _member(digest: str) -> str:
    return f"{ARRAYS}{digest}.npy"


def _words(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:120]


def _entries(file: Any, size: int) -> int:
    """How many members the file may have at most, whatever it says: each is marked in it."""
    count, before = 0, b""
    file.seek(0)
    while size // 46 > _MEMBERS and (data := file.read(1 << 20)):
        both = before + data
        count += both.count(_ENTRY)
        before = both[-len(_ENTRY) + 1 :]
    file.seek(0)
    return count


def packed(values: np.ndarray[Any, Any]) -> tuple[str, bytes]:
    """An array as a `.npy` file, and its digest: that of these bytes."""
    import numpy as np

    out = io.BytesIO()
    if values.dtype.kind == "V":  # bfloat16, whose bits every NumPy reads
        values = values.view(np.uint16)
    np.lib.format.write_array(out, np.asarray(values, order="C"), (1, 0), allow_pickle=False)
    data = out.getvalue()
    return hashlib.sha256(data).hexdigest(), data


def expected(digest: str, data: bytes, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """The array in a `.npy` file, as the type that it was written from: see `packed`.

    Raises ArchiveError where it has another shape or type, or is none.
    """
    found = unpacked(data)
    if found is not None and dtype.kind == "V" and found.dtype == "u2":
        found = found.view(dtype)
    if found is None or found.shape != tuple(shape) or found.dtype != dtype:
        raise ArchiveError(
            f"its {_member(digest)} does not have the shape {shape} and the type {dtype}"
        )
    return found


def unpacked(data: bytes) -> np.ndarray[Any, Any] | None:
    """An array of numbers in a `.npy` file, as `packed` writes them; None where it is none.

    NumPy has the header evaluated as Python, warns of some on standard error, and arrays of more
    dimensions than it has end in errors of its own; so only the one form is read that is written.
    """
    import numpy as np

    found = _NPY.match(data)
    if found is None or 10 + int.from_bytes(data[8:10], "little") != found.end():
        return None
    shape = tuple(int(n) for n in re.findall(rb"[0-9]+", found[2]))
    try:
        dtype = np.dtype(found[1].decode("ascii"))
    except (TypeError, ValueError):  # numbers of three bytes
        return None
    size = math.prod(shape) * dtype.itemsize
    if len(shape) > _DIMENSIONS or size != len(data) - found.end():
        return None
    if not size:  # where one dimension is 0, the others are any numbers
        fits = math.prod(n or 1 for n in shape) * dtype.itemsize < _LARGEST
        return np.zeros(shape, dtype) if fits else None
    return np.frombuffer(data, dtype, offset=found.end()).reshape(shape)
