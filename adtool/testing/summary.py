"""The section of adtool at the end of a pytest run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from adtool.counts import counted, more
from adtool.places import shortened
from adtool.verdicts import passed

_SHOWN = 20  # lines of each kind
_NOTHING = "nothing was checked: no finished test recorded a tape with launches"


def lines(
    data: Sequence[dict[str, Any]], asked: bool, imported: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Lines with their colour, empty for none. asked: whether `--adtool` was given.

    imported: how many tapes modules recorded while they were imported.
    """
    pairs = sum(d["pairs"] for d in data)
    tests = len({d["test"] for d in data})
    counts = [
        counted(tests, "test"), counted(sum(d["tapes"] for d in data), "tape"),
        counted(sum(d["launches"] for d in data), "launch"),
        counted(pairs, "pair") + " checked",
    ]  # fmt: skip
    found = [(d["test"], *f) for d in data for f in d["findings"]]
    failed = len({d["test"] for d in data if d["failed"]})
    severities = {s: sum(f[2] == s for f in found) for s in ("error", "warning", "note")}
    if not failed:  # the word has it
        word = passed(severities.pop("warning"))
    else:
        word = f"{counted(failed, 'test')} failed"
    numbers = [counted(n, severity) for severity, n in severities.items() if n]
    if expected := sum(d["expected"] for d in data):
        numbers.append(f"{expected} expected")
    if hidden := sum(d["suppressed"] for d in data):
        numbers.append(f"{hidden} suppressed")
    if data:
        good = pairs and word == passed(0)
        colour = "red" if failed else "green" if good else "yellow"
        ending = f" ({', '.join(numbers)})" if numbers else ""
        yield f"{', '.join(counts)}: {word}{ending}", colour
    told = [f for f in found if f[2] != "note"]
    for test, code, severity, message in told[:_SHOWN]:
        yield f"{severity}[{code}]: {shortened(message.splitlines()[0])} ({test})", ""
    if len(told) > _SHOWN:
        yield f"and {len(told) - _SHOWN} more", ""
    left = [d for d in data if d["unchecked"] and not d["failed"]]
    for d in left[:_SHOWN]:
        yield f"not checked: {d['test']}: {shortened(d['unchecked'].splitlines()[0])}", "yellow"
    if len(left) > _SHOWN:
        rest = more(len(left) - _SHOWN, "test that was not checked", "tests that were not checked")
        yield f"and {rest}", "yellow"
    for module, made in list(imported.items())[:_SHOWN]:
        tapes = counted(made, "tape")
        yield (
            f"not checked: {module}: {tapes} recorded at import; record them in a test "
            "or a fixture", "yellow",
        )  # fmt: skip
    if asked and not pairs and not failed:
        yield f"warning: {_NOTHING}" if not data else "warning: nothing was checked", "yellow"
