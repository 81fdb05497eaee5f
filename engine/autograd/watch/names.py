"""The user's names for arguments of launches, looked up once for each place."""

from __future__ import annotations

from engine.diagnostics.site import Site
from engine.runtime.plan import Plan
from engine.tape.naming import passed


class Names:
    """Of one program."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[tuple[Site | None, Plan, int], str] = {}

    def of(self, site: Site | None, plan: Plan, index: int) -> str:
        """The expression of an argument in the caller's text, or the name of its parameter."""
        key = site, plan, index
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = passed(site, plan, index) or plan.params[index].name
        return found
