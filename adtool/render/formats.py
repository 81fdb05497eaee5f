"""The formats of `adtool check`: a name, and the module that writes it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from adtool.report import Report
from engine.classes import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """What a renderer knows beside the reports.

    folder: the current one, absolute, empty where it is gone. root: the repository's, for
    formats that name files by it. count: how many scripts were to be checked. notes: what is to
    be said of the choice of scripts, where there was one.
    """

    folder: str = ""
    root: str = ""
    count: int = 1
    verbose: bool = False
    quiet: bool = False
    notes: tuple[str, ...] = ()

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


def render(name: str, reports: Sequence[Report], setting: Setting) -> str:
    """The reports of one call, in their order, as one document of the format."""
    module: Any = importlib.import_module(FORMATS[name])
    text: str = module.render(reports, setting)
    return text
