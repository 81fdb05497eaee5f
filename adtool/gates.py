"""The gate (`--gate`): the least severity that fails a run, and the accuracy of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import get_args

from adtool.report import Severity
from engine.classes import dataclass

SEVERITIES = get_args(Severity)
# Of one value of the option, for a schema.
_WORD = f"({'|'.join(SEVERITIES)}|accuracy=[0-9.]+([eE][+-]?[0-9]+)?)"
PATTERN = rf"^\s*{_WORD}\s*(,\s*{_WORD}\s*)*$"
WANTED = "one of " + ", ".join(SEVERITIES) + ", or accuracy=NUMBER, like accuracy=1e-6"


@dataclass(frozen=True, slots=True)
class Gate:
    """severity: at or above it a finding fails. accuracy: the largest error of a pair, or None."""

    severity: Severity = "error"
    accuracy: float | None = None


def gate_of(words: str | Iterable[str] | None) -> Gate:
    """The gate of words, which may hold several with commas: the last of each kind counts.

    Raises:
        ValueError: a word is none of a gate.
    """
    severity: Severity = "error"
    accuracy = None
    given = (words,) if isinstance(words, str) else words or ()
    for word in (w.strip() for text in given for w in text.split(",")):
        name, equals, number = word.partition("=")
        if word in SEVERITIES:
            severity = next(s for s in SEVERITIES if s == word)
        elif equals and name.strip() == "accuracy":
            accuracy = _number(number, word)
        else:
            raise ValueError(f"{word!r} is not {WANTED}")
    return Gate(severity, accuracy)


def _number(text: str, word: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise ValueError(f"{word!r}: an accuracy is a number above 0, like accuracy=1e-6")
    return value
