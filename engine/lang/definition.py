"""A decorated definition of a program: a kernel or a function."""

from __future__ import annotations

from typing import Any


class Definition:
    """Copied and pickled as Python functions are: a copy is the same object.

    A model that holds one can be copied (`copy.deepcopy`) and handed to other processes. It is
    pickled by its name, or by what `_made` gives: a function, and its arguments.
    """

    def _made(self) -> tuple[Any, ...] | None:
        """What makes it again; None for what stands under its own name in its module."""
        return None

    def __copy__(self) -> Definition:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Definition:
        return self

    def __reduce__(self) -> Any:
        return self._made() or self.__qualname__  # type: ignore[attr-defined]
