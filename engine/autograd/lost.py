"""Says why the contents of launch inputs are lost, and so what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.autograd.results import TapeResult
from engine.tape.records import LaunchRecord, Record


def with_reasons(result: TapeResult, records: Sequence[Record]) -> TapeResult:
    """The result, in which launches skipped for lost contents say why these were not kept."""
    recorded = [r for r in records if isinstance(r, LaunchRecord)]
    why: dict[tuple[int, str], str] = {}
    launches = []
    for launch in result.launches:
        lost = recorded[launch.index].lost if launch.skipped else {}
        # The check names the first of them.
        for reason in [r for name, r in lost.items() if repr(name) in launch.skipped][:1]:
            text = f"{launch.skipped}: {reason}"
            why[launch.index, launch.skipped] = text
            launch = replace(launch, skipped=text)
        launches.append(launch)
    unchecked = [
        replace(u, reason=why.get((u.index, u.reason), u.reason)) for u in result.unchecked
    ]
    return replace(result, launches=tuple(launches), unchecked=tuple(unchecked))
