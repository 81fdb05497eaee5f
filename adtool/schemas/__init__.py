"""JSON Schemas (draft 2020-12) of the settings and the report.

They are made from the options of the commands and from the dataclasses of the report
(`tools/make_schemas.py`), and lie beside this file, where editors and other tools find them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# By the name that `adtool schema` takes: the file.
FILES = {"config": "pyproject.schema.json", "report": "report.schema.json"}

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def published(name: str) -> str:
    """The text of a schema."""
    return (Path(__file__).parent / FILES[name]).read_text(encoding="utf-8")


def text_of(schema: dict[str, Any]) -> str:
    """A schema as it is written to its file."""
    return json.dumps(schema, indent=2) + "\n"
