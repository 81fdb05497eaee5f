"""The exchange by DLPack, by the name that programs written for Warp import: `engine.dlpack`."""

from __future__ import annotations

from engine.interop.dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
