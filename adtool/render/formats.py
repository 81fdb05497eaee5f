"""The formats of `adtool check`: the name of each and the module that writes it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from engine.classes import dataclass

if TYPE_CHECKING:
    from adtool.fixes.available import Offers
    from adtool.report import Report


@dataclass(frozen=True, slots=True)
class Setting:
    """What a renderer knows beside the reports.

    folder: the current one, absolute, empty where it is gone. root: the repository's, for
    formats that name files by it. count: how many scripts were to be checked. notes: what is to
    be said of the choice of scripts, where there was one. offers: see `fixes.available.offered`.
    """

    folder: str = ""
    root: str = ""
    count: int = 1
    verbose: bool = False
    quiet: bool = False
    notes: tuple[str, ...] = ()
    offers: Offers = "all"

    @property
    def several(self) -> bool:
        """Whether this is of several scripts by its form: there may be any number of them."""
        return self.count != 1 or bool(self.notes)


# Each module has a function `render(reports, setting) -> str`, which depends on nothing else.
FORMATS: dict[str, str] = {
    "text": "adtool.render.text_file",
    "json": "adtool.render.json",
    "junit": "adtool.render.junit",
    "sarif": "adtool.render.sarif",
    "github": "adtool.render.github",
    "markdown": "adtool.render.markdown",
}

HEAD = 1024
# How a report begins. One as JSON may be of several scripts.
_STARTS: dict[str, bytes] = {
    "text": rb"adtool \d[^\s]*, report\b",
    "json": rb'\{\n  "schema": \d+,\n  "tool": "adtool ',
    "junit": rb'<\?xml [^>]*>\n<testsuites name="adtool"',
    "sarif": rb'\{\n  "\$schema": "[^"]*",\n  "version": "[\d.]*",\n  "runs": \[\n    \{\n'
    rb'      "tool": \{\n        "driver": \{\n          "name": "adtool"',
    "github": rb"::(error|warning|notice) [^\n]*title=",
    "markdown": rb"## (adtool: \d|[^\n]*`: \*?\*?(passed|failed|not checked|could))",
}


def file_of(word: str) -> str:
    """The file that a word of `--out` names: [FORMAT=]FILE."""
    name, equals, path = word.partition("=")
    return path if equals and name in FORMATS else word


def is_report(head: bytes) -> bool:
    """Whether a file is a report of adtool, by its first `HEAD` bytes. An empty one is."""
    return not head or any(re.match(pattern, head) for pattern in _STARTS.values())


def render(name: str, reports: Sequence[Report], setting: Setting) -> str:
    """The reports of one call, in their order, as one document of the format."""
    module: Any = importlib.import_module(FORMATS[name])
    text: str = module.render(reports, setting)
    return text
