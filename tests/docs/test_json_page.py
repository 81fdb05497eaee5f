"""docs/json.md has every field of the report, with its type, and no others."""

from __future__ import annotations

import re
from pathlib import Path

from adtool.schemas import report
from tests.docs.json_types import type_of


def test_the_page_has_each_field_with_its_type(root: Path) -> None:
    page = (root / "docs" / "json.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (\w+)$", page, flags=re.MULTILINE)[1:]
    told = {
        name: re.findall(r"^\| `(\w+)` \| (.+?) \| .*\S.* \|$", text, re.MULTILINE)
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }
    kinds = report.schema()["$defs"]
    assert set(told) == set(kinds)
    for name, kind in kinds.items():
        assert told[name] == [(f, type_of(s)) for f, s in kind["properties"].items()]
