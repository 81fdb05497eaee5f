"""The results of checks of PyTorch functions that run while they are watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.foreign import watching


def launches(run: Callable[[], Any], **options: Any) -> list[Any]:
    """The checks of what ran."""
    with watching() as watched:
        run()
    return [x for result in watched.results(**options) for x in result.launches]


def passed(out: Any) -> None:
    """Runs a backward pass from all results."""
    every = out if isinstance(out, tuple) else (out,)
    sum(y.sum() for y in every if y.requires_grad).backward()


def verdicts(run: Callable[[], Any], **options: Any) -> dict[tuple[str, str], str]:
    (launch,) = launches(run, **options)
    assert not launch.skipped
    return {(p.input, p.output): p.verdict for p in launch.pairs}
