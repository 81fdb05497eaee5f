"""`adtool schema`: prints the JSON Schemas of the settings and the report."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from adtool.schemas import published


class Which(str, Enum):
    """Names of schemas."""

    config = "config"
    report = "report"


def schema(
    which: Annotated[
        Which,
        typer.Argument(
            metavar="NAME",
            help="config: [tool.adtool] of pyproject.toml; report: the report of --format json.",
        ),
    ],
) -> None:
    """Print the JSON Schema of the settings or of the report."""
    typer.echo(published(which.value), nl=False)
