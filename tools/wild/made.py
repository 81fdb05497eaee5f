"""Pages that are made of data which is kept beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def settle(page: Path, text: str, kept: Path, data: Any, check: bool) -> int:
    """Writes a page and its data; with `check`, nothing. 1 where the page is found out of date."""
    if check:
        return int(page.read_text(encoding="utf-8") != text)
    kept.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    page.write_text(text, encoding="utf-8")
    return 0
