"""Options of the tool that stand after the script and so went to the script."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from adtool.job import Target
from engine.reading import read

# Libraries that make options of the names of parameters, fields or settings.
_BY_PARAMETER = re.compile(
    r"\b(absl|chz|click|cyclopts|defopt|draccus|fire|hydra|jsonargparse|omegaconf|pydantic_settings"
    r"|simple_parsing|tap|typer|tyro)\b"
)
_SIZE = 1 << 20  # bytes of a file that are looked at


def suspects(target: Target, known: Sequence[str]) -> tuple[str, ...]:
    """The target's arguments that are written like options of the tool."""
    names = [a.partition("=")[0] for a in target.args]
    return tuple(dict.fromkeys(n for n in names if n.startswith("--") and n in known))


def unused(target: Target, options: Sequence[str]) -> tuple[str, ...]:
    """Those of the options whose name no file of the user's program has.

    A program that knows an option names it somewhere: in its text, or as a parameter where a
    library makes options of these. To be called where the program ran.
    """
    if not options:
        return ()
    texts = list(texts_of(target))
    names: set[str] = set()
    if any(_BY_PARAMETER.search(t) for t in texts):
        names = {w for t in texts for w in re.findall(r"\w+", t)}
    return tuple(
        o for o in options
        if not any(o in t for t in texts) and o.strip("-").replace("-", "_") not in names
    )  # fmt: skip


def texts_of(target: Target) -> Iterator[str]:
    """The text of each file of the program that was imported; to be called where it ran."""
    import engine  # where the program ran, it is there

    own = (Path(__file__).parent, Path(str(engine.__file__)).parent)
    libraries = (*map(str, own), *sysconfig.get_paths().values())
    files = {str(getattr(m, "__file__", None) or "") for m in list(sys.modules.values())}
    users = {f for f in files if f.endswith(".py") and not f.startswith(libraries)}
    if target.text is not None:
        yield target.text
    for name in sorted(users | ({target.script} if target.script else set())):
        with suppress(OSError):
            yield read(name)[:_SIZE].decode("utf-8", "replace")
