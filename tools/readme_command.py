"""Prints one of README.md's two commands, so that what is documented is what is run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def command(name: str, text: str) -> str:
    """The fenced block that follows the marker `<!-- command: NAME -->` in `text`.

    Raises KeyError where there is none.
    """
    found = re.search(rf"<!-- command: {re.escape(name)} -->\s*```\w*\n(.*?)```", text, re.DOTALL)
    if found is None:
        raise KeyError(f"README.md has no command {name!r}")
    return found.group(1).strip()


if __name__ == "__main__":
    print(command(sys.argv[1], README.read_text(encoding="utf-8")))
