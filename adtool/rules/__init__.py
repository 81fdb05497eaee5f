"""The findings, one file each. Every file named `gNNN_words.py` here is a rule."""

from __future__ import annotations

import importlib
import pkgutil
import re
from functools import cache

from adtool.rules.base import Rule

__all__ = ["Rule", "load_rules"]

_FILE = re.compile(r"(g\d{3})_(\w+)")


@cache
def load_rules() -> tuple[Rule, ...]:
    """Every rule, by code.

    Raises:
        ImportError: a rule's file does not hold exactly one rule of the code and name that
            the file is named for, or a page of its manual is empty.
    """
    rules = []
    for info in pkgutil.iter_modules(__path__):
        match = _FILE.fullmatch(info.name)
        if match is None:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        found = [
            v
            for v in vars(module).values()
            if isinstance(v, type) and issubclass(v, Rule) and v.__module__ == module.__name__
        ]
        if len(found) != 1:
            raise ImportError(f"{module.__file__}: expected one rule, found {len(found)}")
        rule = found[0]()
        if (rule.code, rule.name) != (match[1].upper(), match[2].replace("_", "-")):
            raise ImportError(f"{module.__file__}: holds {rule.code} {rule.name}")
        if not rule.manual.complete:
            raise ImportError(f"{module.__file__}: a part of the manual page is missing")
        rules.append(rule)
    return tuple(sorted(rules, key=lambda r: r.code))
