"""Frameworks that a program uses in place of the engine, for what is said of such a program."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import engine
from adtool.endings import UNCHECKED
from adtool.job import Target
from adtool.strays import texts_of
from engine.foreign import FRAMEWORKS


def in_place_of_engine(target: Target, alias: str | None = None) -> tuple[str, ...]:
    """Names of the frameworks that a program has imported which ran in this process.

    Empty where one of its files imports the engine. alias: another name of the engine, as of
    --alias.
    """
    found = [
        name for module, _, name in FRAMEWORKS if sys.modules.get(module) not in (None, engine)
    ]
    loaded = [name for name, module in UNCHECKED.items() if module in sys.modules]
    if not found and not loaded:
        return ()
    texts = list(texts_of(target))
    if _imports(texts, *filter(None, (engine.__name__, alias))):
        return ()
    # Packages import some of the others for purposes of their own.
    return (*found, *(name for name in loaded if _imports(texts, UNCHECKED[name])))


def _imports(texts: Sequence[str], *names: str) -> bool:
    """Whether one of a program's files imports one of these modules."""
    imports = re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:{'|'.join(names)})\b", re.MULTILINE)
    return any(imports.search(text) for text in texts)
