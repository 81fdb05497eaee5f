"""The site builds without warnings, has a page for each finding, loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from adtool.rules import load_rules
from engine.diagnostics import CODES

# What makes a browser load something, by its tag.
_LOADS = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}


class _Loaded(HTMLParser):
    """What a page loads, and where it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag in _LOADS and (address := found.get(_LOADS[tag])):
            self.loads.append(address)
        if tag == "a" and (address := found.get("href")):
            self.links.append(address)


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="the site needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # a notice about versions to come
    # Not --quiet: mkdocs then counts no warnings, and --strict passes them.
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=root, env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_each_finding_has_a_page_and_is_in_the_table(site: Path) -> None:
    index = _Loaded((site / "findings" / "index.html").read_text(encoding="utf-8"))
    for rule in load_rules():
        page = (site / "findings" / f"{rule.code}.html").read_text(encoding="utf-8")
        assert f"{rule.code} {rule.name}" in page
        for head in ("What it is", "Why it matters", "Example", "What to do"):
            assert re.search(rf"<h2[^>]*>{head}", page)
        assert f"{rule.code}.html" in index.links


def test_each_error_is_explained(site: Path) -> None:
    text = (site / "errors.html").read_text(encoding="utf-8")
    links = _Loaded(text).links
    for code in CODES:
        assert f"#{code.lower()}" in links and re.search(rf'<h2 id="{code.lower()}">{code} ', text)
    assert text.count("What to do.") == len(CODES)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for path in pages:
        for address in _Loaded(path.read_text(encoding="utf-8")).loads:
            parts = urlsplit(address)
            assert not parts.scheme and not parts.netloc, (path.name, address)
            if path.name != "404.html":  # a server shows it, at any address
                assert (path.parent / unquote(parts.path)).is_file(), (path.name, address)
    for path in site.rglob("*.css"):
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", path.read_text(encoding="utf-8")), path


def test_the_tutorial_is_in_the_navigation_of_every_page(site: Path) -> None:
    page = _Loaded((site / "cli.html").read_text(encoding="utf-8"))
    assert "tutorial.html" in page.links


def test_links_lead_to_files(site: Path) -> None:
    """Pages open from disk: no link ends at a folder."""
    for path in site.rglob("*.html"):
        if path.name == "404.html":
            continue
        for address in _Loaded(path.read_text(encoding="utf-8")).links:
            parts = urlsplit(address)
            if not parts.scheme and parts.path:
                assert (path.parent / unquote(parts.path)).is_file(), (path.name, address)
