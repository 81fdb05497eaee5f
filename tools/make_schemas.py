"""Writes the JSON Schemas of adtool/schemas: `python tools/make_schemas.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer.main

from adtool import schemas
from adtool.cli import app
from adtool.schemas import config, report


def made() -> dict[str, str]:
    """The text of each schema, by its file's name."""
    group: Any = typer.main.get_command(app)
    return {
        schemas.FILES["config"]: schemas.text_of(config.schema(group.commands)),
        schemas.FILES["report"]: schemas.text_of(report.schema()),
    }


if __name__ == "__main__":
    for name, text in made().items():
        (Path(schemas.__file__).parent / name).write_text(text, encoding="utf-8")
