"""Frameworks that a program uses in place of the engine, for what is said of such a program."""

from __future__ import annotations

import re
import sys

import engine
from adtool.job import Target
from adtool.strays import texts_of
from engine.foreign import FRAMEWORKS


def in_place_of_engine(target: Target, alias: str | None = None) -> tuple[str, ...]:
    """Names of the frameworks that a program has imported which ran in this process.

    Empty where one of its files imports the engine. alias: another name of the engine, as of
    --alias.
    """
    found = tuple(
        name for module, _, name in FRAMEWORKS if sys.modules.get(module) not in (None, engine)
    )
    names = "|".join(filter(None, (engine.__name__, alias)))
    imports = re.compile(rf"^[ \t]*(?:import|from)[ \t]+(?:{names})\b", re.MULTILINE)
    if found and any(imports.search(text) for text in texts_of(target)):
        return ()
    return found
