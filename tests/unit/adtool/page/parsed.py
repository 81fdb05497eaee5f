"""The elements of a page, as a reader of HTML sees them."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from typing import Any


class Parsed(HTMLParser):
    """Tags and attribute names counted; texts of elements by their id."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.scripts: dict[str, str] = {}
        self.text: list[str] = []
        self._at: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Counts."""
        self.tags[tag] += 1
        known = dict(attrs)
        self.attributes |= set(known)
        self.links += [v or "" for k, v in attrs if k in ("href", "src", "xlink:href", "action")]
        if tag in ("script", "style"):
            self._at.append((tag, known.get("id") or f"{tag}{self.tags[tag]}"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element of SVG without an end of its own."""
        self.tags[tag] += 1
        self.attributes |= {k for k, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        """Ends a script or a style."""
        if self._at and self._at[-1][0] == tag:
            self._at.pop()

    def handle_data(self, data: str) -> None:
        """Text, or a script's."""
        if self._at:
            key = self._at[-1][1]
            self.scripts[key] = self.scripts.get(key, "") + data
        else:
            self.text.append(data)

    @property
    def words(self) -> str:
        """All that is to be read."""
        return " ".join("".join(self.text).split())

    def json(self, key: str) -> Any:
        """The data of a script element."""
        return json.loads(self.scripts[key])
