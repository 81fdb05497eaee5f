"""The section of adtool at the end of a pytest run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SHOWN = 20  # lines of each kind
_NOTHING = "nothing was checked: no test that ran to its end recorded a tape with launches"


def lines(
    data: Sequence[dict[str, Any]], asked: bool, imported: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Lines with their colour, empty for none. asked: whether `--adtool` was given.

    imported: how many tapes modules recorded while they were imported.
    """
    pairs = sum(d["pairs"] for d in data)
    tests = len({d["test"] for d in data})
    counts = [
        _plural(tests, "test"), _plural(sum(d["tapes"] for d in data), "tape"),
        _plural(sum(d["launches"] for d in data), "launch", "launches"),
        _plural(pairs, "pair") + " checked",
    ]  # fmt: skip
    found = [(d["test"], *f) for d in data for f in d["findings"]]
    numbers = [
        _plural(n, severity)
        for severity in ("error", "warning", "note")
        if (n := sum(f[2] == severity for f in found))
    ]
    if expected := sum(d["expected"] for d in data):
        numbers.append(f"{expected} expected")
    if hidden := sum(d["suppressed"] for d in data):
        numbers.append(f"{hidden} suppressed")
    failed = len({d["test"] for d in data if d["failed"]})
    word = f"{_plural(failed, 'test')} failed" if failed else "passed"
    if data:
        colour = "red" if failed else "green" if pairs else "yellow"
        ending = f" ({', '.join(numbers)})" if numbers else ""
        yield f"{', '.join(counts)}: {word}{ending}", colour
    told = [f for f in found if f[2] != "note"]
    for test, code, severity, message in told[:_SHOWN]:
        yield f"{severity}[{code}]: {message.splitlines()[0]} ({test})", ""
    if len(told) > _SHOWN:
        yield f"and {len(told) - _SHOWN} more", ""
    left = [d for d in data if d["unchecked"] and not d["failed"]]
    for d in left[:_SHOWN]:
        yield f"not checked: {d['test']}: {d['unchecked'].splitlines()[0]}", "yellow"
    if len(left) > _SHOWN:
        yield f"and {len(left) - _SHOWN} more tests that were not checked", "yellow"
    for module, made in list(imported.items())[:_SHOWN]:
        tapes = _plural(made, "tape")
        yield (
            f"not checked: {module}: {tapes} recorded while it was imported; record them in a test "
            "or a fixture", "yellow",
        )  # fmt: skip
    if asked and not pairs and not failed:
        yield f"warning: {_NOTHING}" if not data else "warning: nothing was checked", "yellow"


def _plural(number: int, word: str, many: str = "") -> str:
    return f"{number} {word if number == 1 else many or word + 's'}"
