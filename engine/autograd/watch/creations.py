"""Finds where arrays without a gradient were made that a tape computes and then reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from engine.autograd.facts import Made
from engine.autograd.watch.places import Weak
from engine.diagnostics.site import Site, call_site
from engine.runtime.array import array
from engine.tape.records import LaunchRecord


class Creations:
    """Calls that made arrays of floats without requires_grad. Keeps none of them alive."""

    def __init__(self) -> None:
        self._sites: Weak[Site] = Weak()

    def made(self, a: array) -> None:
        """An array was made."""
        if a._info.floating and not a.requires_grad:
            site = call_site(3)
            if site is not None:
                self._sites.put(a.storage, site)

    def __bool__(self) -> bool:
        """False where there was none."""
        return bool(self._sites)

    def of(self, a: array) -> Site | None:
        """The call that made an array, or what it is a view of."""
        return self._sites.get(a.storage)


class Read:
    """The arrays among them that launches of one tape read, once a launch in the source."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], tuple[Site, str, Site]] = {}

    def recorded(
        self, record: LaunchRecord, creations: Creations, computed: Callable[[array], bool]
    ) -> None:
        """A launch was recorded. computed: whether the tape has written to an array."""
        call = record._site
        if call is None:
            return
        for i in record.plan.inputs:
            a = record.values[i]
            key = (call.code, call.instruction, i)
            if a is None or a.requires_grad or not a._info.floating or key in self._found:
                continue
            site = creations.of(a)
            if site is not None and computed(a):
                self._found[key] = call, record.plan.params[i].name, site

    def facts(self) -> Iterator[Made]:
        """What was seen."""
        for call, argument, site in self._found.values():
            yield Made(argument, call.span, site.span)
