"""Properties that are computed once, without a lock.

`functools.cached_property` of Python 3.10 and 3.11 has one for each class, which a child finds
locked for ever where it was forked while a thread computed a value. Two threads may compute one at
the same time here, as they may since Python 3.12: what they give must be equal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """Computed where it is first asked for, and an attribute of the object from then on."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, obj: Any, owner: type | None = None) -> Any:
            if obj is None:
                return self
            return obj.__dict__.setdefault(self._name, self._compute(obj))
