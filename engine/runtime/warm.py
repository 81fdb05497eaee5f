"""Kernels that an earlier process compiled, found by their meaning without lowering."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from engine import config
from engine.compile import remembered, sources
from engine.compile.cache import Cache, open_cache
from engine.compile.cpu import CPU
from engine.compile.cpu.toolchain import find_toolchain
from engine.compile.pipeline import Variants
from engine.diagnostics import EngineError
from engine.frontend import Captures, meaning_of, signature_of
from engine.hashing import hashed
from engine.lang.structs import UserType

if TYPE_CHECKING:
    from engine.frontend import Meaning
    from engine.runtime.kernel import Kernel

# Of what is kept; changes where the same text would be read otherwise.
_SCHEMA = 1


class Place:
    """Where what is known of a kernel is kept, as the kernel is now. key: the name of the place."""

    def __init__(
        self, cache: Cache, key: str, meaning: Meaning, given: Mapping[str, UserType]
    ) -> None:
        self.key = key
        self._cache, self._meaning, self._given = cache, meaning, given
        self._settings = _settings()

    def look(self) -> Variants | None:
        """The kernel, if an earlier process left it here, and its code is in the cache."""
        text = self._cache.remembered(self.key)
        found = None if text is None else remembered.read(text, self._given)
        if found is None:
            return None
        made = Variants(found)
        if not made.is_there(CPU):
            return None
        made.answers.save, made.answers.holds = partial(self._write, found.said), self.holds
        return made

    def keep(self, kernel: Kernel, variants: Variants, captures: list[Captures]) -> None:
        """Leaves a kernel that was compiled, if all that lowering read is told by its meaning.

        Another thread may have changed what it captures before it was lowered.
        """
        if variants.warns or not self._meaning.covers(captures):
            return
        now = meaning_of(kernel.func, kernel.text, kernel.types or ())
        if now is None or now.parts != self._meaning.parts:
            return
        said = remembered.said_of(variants, variants.entry(CPU, "forward"), self._given)
        if said is not None:
            variants.answers.save, variants.answers.holds = partial(self._write, said), self.holds
            self._write(said)
            variants.keep_forms()

    def holds(self) -> bool:
        """Whether all settings and the compiler are those of the key, as far as can be told."""
        try:
            return _settings() == self._settings
        except (EngineError, OSError):
            return False

    def _write(self, said: dict[str, Any]) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # another thread may note an answer
            self._cache.remember(self.key, json.dumps(said))


def _settings() -> tuple[object, ...]:
    """What code depends on besides the text of kernels and of the engine. Raises EngineError."""
    compiler = find_toolchain().key
    return compiler, config.atomics, config.precise_math, config.debug_info


def place_of(kernel: Kernel) -> Place | None:
    """The place of a kernel; None where nothing is kept.

    Nothing is where passes are to be verified, and of kernels whose meaning cannot be told.
    """
    if config.verify_ir:
        return None
    signature = signature_of(kernel.func, kernel=True)  # as annotations are now
    given = {name: t for name, t in signature.types.items() if t is not None}
    if kernel.types is not None:
        given = dict(zip(signature.types, kernel.types, strict=True))
    meaning = meaning_of(kernel.func, kernel.text, kernel.types or ())
    if meaning is None:
        return None
    try:
        cache, settings = open_cache(), _settings()
        own_text = sources.digest(cache)
    except (EngineError, OSError):
        return None  # told when something is compiled
    if own_text is None:
        return None
    versions = (_SCHEMA, sys.version, np.__version__)
    whole = (own_text, versions, settings, kernel.key, meaning.parts)
    key = hashed(repr(whole).encode("utf-8", "surrogatepass")).hexdigest()
    return Place(cache, key, meaning, given)
