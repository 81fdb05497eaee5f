"""Copies from and to indexed arrays as kernels, so that tapes and captured graphs know them."""

# mypy: disable-error-code="valid-type"

from __future__ import annotations

from typing import Any

from engine.builtins import language as wp
from engine.runtime.array import array
from engine.runtime.indexed import indexedarray
from engine.runtime.kernel import kernel
from engine.runtime.launch import launch


@kernel
def gather_1d(src: indexedarray(dtype=Any), dest: array(dtype=Any)) -> None:
    """What an indexed array sees, to an array."""
    i = wp.tid()
    dest[i] = src[i]


@kernel
def gather_2d(src: indexedarray(dtype=Any, ndim=2), dest: array(dtype=Any, ndim=2)) -> None:
    """The same of two dimensions."""
    i, j = wp.tid()
    dest[i, j] = src[i, j]


@kernel
def gather_3d(src: indexedarray(dtype=Any, ndim=3), dest: array(dtype=Any, ndim=3)) -> None:
    """The same of three dimensions."""
    i, j, k = wp.tid()
    dest[i, j, k] = src[i, j, k]


@kernel
def gather_4d(src: indexedarray(dtype=Any, ndim=4), dest: array(dtype=Any, ndim=4)) -> None:
    """The same of four dimensions."""
    i, j, k, m = wp.tid()
    dest[i, j, k, m] = src[i, j, k, m]


@kernel
def scatter_1d(src: array(dtype=Any), dest: indexedarray(dtype=Any)) -> None:
    """An array, to what an indexed array sees."""
    i = wp.tid()
    dest[i] = src[i]


@kernel
def scatter_2d(src: array(dtype=Any, ndim=2), dest: indexedarray(dtype=Any, ndim=2)) -> None:
    """The same of two dimensions."""
    i, j = wp.tid()
    dest[i, j] = src[i, j]


@kernel
def scatter_3d(src: array(dtype=Any, ndim=3), dest: indexedarray(dtype=Any, ndim=3)) -> None:
    """The same of three dimensions."""
    i, j, k = wp.tid()
    dest[i, j, k] = src[i, j, k]


@kernel
def scatter_4d(src: array(dtype=Any, ndim=4), dest: indexedarray(dtype=Any, ndim=4)) -> None:
    """The same of four dimensions."""
    i, j, k, m = wp.tid()
    dest[i, j, k, m] = src[i, j, k, m]


_GATHER = (gather_1d, gather_2d, gather_3d, gather_4d)
_SCATTER = (scatter_1d, scatter_2d, scatter_3d, scatter_4d)


def gather(dest: array, src: indexedarray) -> None:
    """Copies to an array of the same shape and type."""
    launch(_GATHER[src.ndim - 1], src.shape, [src], [dest])


def scatter(dest: indexedarray, src: array) -> None:
    """Copies from an array of the same shape and type."""
    launch(_SCATTER[dest.ndim - 1], dest.shape, [src], [dest])
