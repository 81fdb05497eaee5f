"""Norms of vectors, smooth at 0 where the name says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins import infer as i
from engine.builtins import language as wp
from engine.builtins.composite import composite
from engine.ir.ops import Domain
from engine.lang.types import Type, scalar_of

_LINE = (-2.0, 2.0)
_WIDTH = (0.3, 3.0)


def _vector(types: Sequence[Type]) -> bool:
    return len(types) == 1 and i.float_vector(types[0])


def _with_width(types: Sequence[Type]) -> bool:
    return len(types) == 2 and i.float_vector(types[0]) and types[1] == scalar_of(types[0])


@composite("norm_l1(v): the sum of the magnitudes of the components.", _vector,
           domain=Domain((_LINE,), kinks=(0.0,)))  # fmt: skip
def norm_l1(v: Any) -> Any:
    total = v.dtype(0.0)
    for k in range(len(v)):
        total += wp.abs(v[k])
    return total


@composite("norm_l2(v): the Euclidean length.", _vector, domain=Domain((_LINE,)))
def norm_l2(v: Any) -> Any:
    return wp.length(v)


@composite("norm_huber(v, delta=1.0): |v|^2 / 2 up to the length delta, linear beyond; for "
           "delta >= 0.", _with_width, domain=Domain((_LINE, _WIDTH)))  # fmt: skip
def norm_huber(v: Any, delta: Any = 1.0) -> Any:
    square = wp.dot(v, v)
    if delta >= 0.0 and square <= delta * delta:
        return 0.5 * square
    return delta * (wp.sqrt(square) - 0.5 * delta)


@composite("norm_pseudo_huber(v, delta=1.0): delta * sqrt(1 + |v|^2 / delta^2), for "
           "delta > 0.", _with_width, domain=Domain((_LINE, _WIDTH)))  # fmt: skip
def norm_pseudo_huber(v: Any, delta: Any = 1.0) -> Any:
    return delta * wp.sqrt(1.0 + wp.dot(v, v) / (delta * delta))


@composite("smooth_normalize(v, delta=1.0): v / norm_pseudo_huber(v, delta).", _with_width,
           domain=Domain((_LINE, _WIDTH)))  # fmt: skip
def smooth_normalize(v: Any, delta: Any = 1.0) -> Any:
    return v / wp.norm_pseudo_huber(v, delta)
