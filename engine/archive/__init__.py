"""Captured tapes as plain data, and back, to be checked later or on another machine.

`pack` turns what `engine.capturing` kept into an `Archive` (frozen dataclasses of numbers and
texts) and hands the contents of arrays to a `Sink`, by digest. `unpack` makes tapes of it that
can be checked, after a look at every number that names something and at every kernel: nothing
in an archive is ever executed but kernels of the kernel language, which do what a check asks for.
"""

from typing import TYPE_CHECKING

from engine.archive.data import Archive, ArchiveError, Store
from engine.late import late

if TYPE_CHECKING:
    from engine.archive.pack import NotPacked, pack
    from engine.archive.reduced import only, with_contents, with_dim, with_length
    from engine.archive.unpack import unpack

# What reads an archive's data alone needs none of these.
_MODULES = {
    "engine.archive.pack": "NotPacked pack",
    "engine.archive.reduced": "only with_contents with_dim with_length",
    "engine.archive.unpack": "unpack",
}
late(__name__, _MODULES)

__all__ = [
    "Archive", "ArchiveError", "NotPacked", "Store", "only", "pack", "unpack", "with_contents",
    "with_dim", "with_length",
]  # fmt: skip
