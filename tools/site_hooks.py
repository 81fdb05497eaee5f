"""Hooks of `mkdocs build`, which make the generated pages: see mkdocs.yml.

One page for each finding is made from its manual, and the project's own pages from the files at the
root. Links that leave docs/ go to such a page, or, if there is none, become plain text. Codes of
findings become links to their pages.
"""

from __future__ import annotations

import posixpath
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from adtool.errors import PAGES
from adtool.rules import load_rules
from adtool.rules.base import Rule
from engine.diagnostics import CODES

ROOT = Path(__file__).resolve().parents[1]

# Pages that are made of files outside of docs/, by the names of these.
PROJECT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "README.md": "index.md",
}
_LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\(([^)\s]+)\)")
# The code of a finding in a sentence, not in a link.
_CODE = re.compile(r"(?<!\[)`(G\d{3})`(?!\])")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,}).*?^\1\2[ \t]*$", re.MULTILINE | re.DOTALL)


def on_config(config: Any) -> Any:
    """Puts the pages of findings where the navigation says `findings/`."""
    names = ["findings/index.md", *(f"findings/{rule.code}.md" for rule in load_rules())]
    for entry in config.nav:
        for title, at in entry.items() if isinstance(entry, dict) else ():
            if at == "findings/":
                entry[title] = list(names)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that are made."""
    from mkdocs.structure.files import File

    for name, text in made().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(text: str, page: Any, config: Any, files: Any) -> str:
    """Points links at pages of the site."""
    name = page.file.src_uri
    origin = next((o for o, uri in PROJECT.items() if uri == name and o != "README.md"), None)
    return relinked(text, origin or f"docs/{name}", name)


def made() -> dict[str, str]:
    """The text of each page that is not a file in docs/, by its name there."""
    rules = load_rules()
    pages = {f"findings/{rule.code}.md": finding_page(rule) for rule in rules}
    pages["findings/index.md"] = index_page(rules)
    pages["errors.md"] = errors_page()
    for origin, uri in PROJECT.items():
        if uri.startswith("project/"):
            pages[uri] = (ROOT / origin).read_text(encoding="utf-8")
    return pages


def finding_page(rule: Rule) -> str:
    """The manual page of a finding, as Markdown."""
    m = rule.manual
    example = textwrap.dedent(m.example).strip("\n")
    code = "`" * (1 + max([2, *map(len, re.findall("`+", example))]))
    return "\n\n".join((
        f"# {rule.code} {rule.name}",
        f"Severity: **{rule.severities}**. `adtool explain "
        f"{rule.code}` prints this page; [suppression](../cli.md#suppress-findings) "
        "says how to do without it.",
        "## What it is", _prose(m.what),
        "## Why it matters", _prose(m.why),
        "## Example", f"{code}text\n{example}\n{code}",
        "## What to do", _prose(m.todo),
    )) + "\n"  # fmt: skip


def index_page(rules: Sequence[Rule]) -> str:
    """All findings, with the first sentence of what each one is."""
    rows = [
        f"| [{r.code}]({r.code}.md) | {r.name} | {r.severities} | {_first(r.manual.what)} |"
        for r in rules
    ]
    return "\n".join((
        "# Findings", "",
        "What `adtool check` reports. A code keeps its meaning for ever.", "",
        "| code | name | severity | what it is |", "|---|---|---|---|", *rows, "",
    ))  # fmt: skip


def errors_page() -> str:
    """The errors of the engine: a table of all, then the page of each."""
    parts = [
        "# Errors of the engine",
        "`adtool explain CODE` prints the same text. A code never changes its meaning.",
        "\n".join((
            "| code | means |", "|---|---|",
            *(f"| [{code}](#{code.lower()}) | {CODES[code]} |" for code in PAGES),
        )),
    ]  # fmt: skip
    for code, page in PAGES.items():
        parts += [
            f"## {code} {CODES[code]} {{ #{code.lower()} }}", " ".join(page.what.split()),
            f"```python\n{page.code}\n```", f"**What to do.** {' '.join(page.cure.split())}",
        ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def relinked(text: str, origin: str, uri: str) -> str:
    """The text of a file of the repository with its relative links as the page `uri` needs them.

    origin: the file, seen from the root. Links without a page become plain text.
    """
    parts, at = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_links(text[at : fence.start()], origin, uri), fence.group()]
        at = fence.end()
    return "".join([*parts, _links(text[at:], origin, uri)])


def _links(text: str, origin: str, uri: str) -> str:
    def linked(match: re.Match[str]) -> str:
        label, target = match.groups()
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            return match.group()
        path, hash_, anchor = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        if (there, anchor) == ("README.md", "what-it-finds"):  # the site has more of it
            there, hash_, anchor = "docs/findings/index.md", "", ""
        page = PROJECT.get(there) or there.removeprefix("docs/")
        if page == there:
            return label if "`" in label else f"`{label}`" if "/" in label else label
        return f"[{label}]({posixpath.relpath(page, posixpath.dirname(uri))}{hash_}{anchor})"

    codes = {rule.code for rule in load_rules()}

    def code(match: re.Match[str]) -> str:
        if match.group(1) not in codes:
            return match.group()
        at = posixpath.relpath(f"findings/{match.group(1)}.md", posixpath.dirname(uri))
        return f"[{match.group()}]({at})"

    return _CODE.sub(code, _LINK.sub(linked, text))


def _prose(text: str) -> str:
    return textwrap.dedent(text).strip()


def _first(text: str) -> str:
    """The first sentence, on one line, as a cell of a table."""
    line = " ".join(text.split())
    return re.split(r"(?<=\.) (?=[A-Z])", line)[0].replace("|", "\\|")
