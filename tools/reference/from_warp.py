"""The tables of docs/from-warp.md: settings of the alias, missing features, settings without an
effect. The text around them is written by hand.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

from engine import config
from engine.alias import DIFFERENCES
from engine.frontend.features import FEATURES

PAGE = "docs/from-warp.md"
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
# In engine/config.py, what stands after this comment changes nothing.
_ACCEPTED = "accepted for programs written for Warp"


def page(root: Path) -> str:
    """The page, its tables made anew."""
    text = (root / PAGE).read_text(encoding="utf-8")
    return _TABLE.sub(lambda m: f"{m[1]}{TABLES[m[2]]()}{m[3]}", text)


def differences() -> str:
    rows = ["| `engine.config` | by default | under the alias, as Warp |"]
    rows += ["|---|---|---|"]
    rows += [f'| `{d.setting} = "{d.value}"` | {d.here} | {d.there} |' for d in DIFFERENCES]
    return "\n".join(rows) + "\n"


def missing() -> str:
    rows = ["| names | feature | what to do |", "|---|---|---|"]
    for names, feature, instead in FEATURES:
        shown = ", ".join(f"`{n}`" for n in names.split())
        rows.append(f"| {shown} | {feature} | {instead} |")
    return "\n".join(rows) + "\n"


def accepted() -> str:
    """Settings that programs may set, in the order of the source."""
    text = Path(str(config.__file__)).read_text(encoding="utf-8")
    begin = text[: text.index(_ACCEPTED)].count("\n") + 1
    names = [
        node.target.id
        for node in ast.parse(text).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        if node.lineno > begin
    ]
    return ", ".join(f"`{n}`" for n in names) + "\n"


TABLES: dict[str, Callable[[], str]] = {
    "differences": differences,
    "missing": missing,
    "accepted": accepted,
}
