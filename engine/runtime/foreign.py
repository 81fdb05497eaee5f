"""Arrays of other frameworks as arguments of host functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import hooks

if TYPE_CHECKING:
    from engine.lang.types import ArrayType
    from engine.runtime.array import array


class Described:
    """An array as a C structure that knows the array, so that launches take it, too."""

    __slots__ = ()

    def as_array(self, kind: ArrayType) -> array:
        """The array; one of type `kind` where the structure tells of it alone. Raises Mismatch."""
        raise NotImplementedError


def is_foreign(value: Any) -> bool:
    """Whether it is an array of a framework that there is an adapter for."""
    return hooks.adapter(type(value)) is not None


def plain(value: Any) -> Any:
    """What NumPy sees of a framework's array, without a copy; all else as it is.

    Raises LaunchError for memory that there is no way to.
    """
    found = hooks.adapter(type(value))
    return value if found is None else found.numpy(value)


def shared(value: Any, like: array | None = None) -> Any:
    """A framework's array as one of the engine, with its gradient; all else as it is.

    like: an array whose vectors and matrices it has, if it can. Raises LaunchError.
    """
    found = hooks.adapter(type(value))
    return value if found is None else found.with_gradient(value, like)


def follows(value: Any) -> bool:
    """Whether it is a framework's array that gradients flow to."""
    found = hooks.adapter(type(value))
    return found is not None and bool(found.wants_gradient(value))
