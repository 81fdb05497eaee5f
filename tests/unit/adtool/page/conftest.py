"""A headless Chromium, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_FLAGS = (
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One browser for a module's tests."""
    api = pytest.importorskip("playwright.sync_api", reason="pages are tested by playwright")
    found = next((p for n in _NAMES if (p := shutil.which(n))), None)
    if found is None:
        pytest.skip(f"no browser on PATH: {', '.join(_NAMES)}")
    with api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=found, args=list(_FLAGS))
        yield made
        made.close()


class Watched:
    """A tab of the browser. said: errors and warnings of the page; asked: what it loaded."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        page.on("request", lambda r: self.asked.append(r.url))


Opener = Callable[..., Watched]


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    """Writes a text to a file and opens it, as from a folder."""
    contexts = []

    def opener(text: str, anchor: str = "", **given: Any) -> Watched:
        path = tmp_path / "report.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | given))
        contexts.append(context)
        seen = Watched(context.new_page())
        seen.page.goto(path.as_uri() + anchor)
        return seen

    yield opener
    for context in contexts:
        context.close()
