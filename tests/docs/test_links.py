"""Relative links of the README and of docs/ lead to files, and to headings in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "samples" / "README.md"])
_LINK = re.compile(r"!?\[[^\]\[]*\]\(([^)\s]+)\)")


def _text(path: Path) -> str:
    """A page without its blocks of code and its code in lines."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"<!--.*?-->", "", text, flags=re.S)


def _anchors(text: str) -> set[str]:
    """Of its headings, as GitHub and the site make them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h).strip().lower() for h in heads]
    return {re.sub(r"[^\w\- ]", "", h).replace(" ", "-") for h in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = _text(page)
    for target in _LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.name}: {target}"
        if anchor and there.suffix == ".md":
            assert anchor in _anchors(_text(there)), f"{page.name}: {target}"
