"""All colours and weights of the text output."""

from __future__ import annotations

SEVERITY = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}

VERDICT = {
    "pass": "green",
    "fail": "bold red",
    "nan": "bold red",
    "kink": "cyan",
    "inconclusive": "yellow",
    "nondeterministic": "yellow",
    "rounding": "yellow",
    "skipped": "dim",
}

HEAD = "bold"
MESSAGE = "bold"
ARROW = "blue"
GUTTER = "blue"
HELP = "bold green"
NOTE = "bold cyan"
DIM = "dim"
GOOD = "bold green"
WARNED = "bold yellow"
BAD = "bold red"
