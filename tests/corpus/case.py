"""A corpus case: a kernel factory and how to call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Arr:
    """An array argument: shape, sampling interval, element ('s', 'v3', 'm33', ...), role.

    role: 'in' (random, differentiated), 'out' (zeros), 'inout' (random, read and written).
    """

    shape: tuple[int, ...]
    role: str = "in"
    element: str = "s"
    low: float = 0.5
    high: float = 1.5


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[Any], Any]
    dim: Any
    args: tuple[Any, ...]


CASES: list[Case] = []


def case(dim: Any, *args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a factory `make(T)` that returns a kernel over the float type T."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append(Case(make.__name__, make, dim, args))
        return make

    return register


def arr(*shape: int, role: str = "in", element: str = "s", low: float = 0.5, high: float = 1.5
        ) -> Arr:  # fmt: skip
    return Arr(shape, role, element, low, high)


def out(*shape: int, element: str = "s") -> Arr:
    return Arr(shape, "out", element)


def inout(*shape: int, element: str = "s") -> Arr:
    return Arr(shape, "inout", element)
