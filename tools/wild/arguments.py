"""Random arguments of kernels: what they are as plain data, and as arrays of either package.

It imports neither package: the same code runs beside both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

# Of arrays by their number of dimensions: larger than the grid, so that sums of indices fit.
SHAPES = {1: (24,), 2: (12, 12), 3: (8, 8, 8), 4: (5, 5, 5, 5)}
GRIDS = {1: (4,), 2: (3, 2), 3: (2, 2, 2), 4: (2, 2, 2, 1)}
# How numbers are drawn: integers below, whether floats are positive.
STYLES = ((4, False), (2, True), (1, True))

Spec = dict[str, Any]


def draw(spec: Spec, rng: np.random.Generator, style: int) -> Any:
    """Random contents: a number, an array of components, or a dictionary of fields."""
    if spec["t"] == "struct":
        return {name: draw(field, rng, style) for name, field in spec["fields"].items()}
    if spec["t"] == "array":
        return _elements(spec["of"], SHAPES[spec["ndim"]], rng, style)
    return _elements(spec, (), rng, style)


def _elements(spec: Spec, shape: tuple[int, ...], rng: np.random.Generator, style: int) -> Any:
    if spec["t"] == "struct":
        return {n: _elements(f, shape, rng, style) for n, f in spec["fields"].items()}
    dtype, inner = np.dtype(spec["dtype"]), tuple(spec["shape"])
    below, positive = STYLES[style]
    full = shape + inner
    if dtype.kind == "b":
        return rng.random(full) < 0.5
    if dtype.kind in "iu":
        least = 0 if shape else min(1, below - 1)
        return rng.integers(least, below, full).astype(dtype)
    if positive:
        out = rng.uniform(0.3, 1.3, full)
    else:
        out = rng.normal(size=full) + (0.0 if shape else 1.5)
    if len(inner) == 2 and inner[0] == inner[1]:
        out = 0.4 * out + 1.5 * np.eye(inner[0])
    if spec.get("tag") == "quat" or spec.get("tag") == "transform":
        q = out[..., -4:]
        out[..., -4:] = q / np.linalg.norm(q, axis=-1, keepdims=True)
    return out.astype(dtype)


def structured(value: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """An array of records of fields that are arrays."""
    out = np.zeros(shape, dtype)
    _fill(out, value)
    return out


def _fill(out: np.ndarray[Any, Any], value: dict[str, Any]) -> None:
    for name, item in value.items():
        if isinstance(item, dict):
            _fill(out[name], item)
        else:
            out[name] = np.reshape(item, out[name].shape)


def parts(array: np.ndarray[Any, Any], path: str) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """The leaves of what `array.numpy()` gave."""
    if array.dtype.names is None:
        yield path, array
        return
    for name in array.dtype.names:
        yield from parts(array[name], f"{path}.{name}")
