"""A harness for kernels whose arguments are structs, arrays of structs or indexed arrays.

Every float array that the arguments hold is an input and an output at once: the loss is
the sum of all final contents times random weights, and is differentiated with respect
to all initial contents.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import engine as wp

Weights = dict[str, np.ndarray]


@dataclass(frozen=True)
class Compound:
    """make(T) gives a kernel, its launch dimension and its arguments, for a float type T."""

    name: str
    make: Callable[[Any], tuple[Any, Any, list[Any]]]


CASES: list[Compound] = []


def compound(make: Callable[[Any], tuple[Any, Any, list[Any]]]) -> Any:
    CASES.append(Compound(make.__name__, make))
    return make


def numbers(name: str, *shape: int, low: float = 0.5, high: float = 1.5) -> np.ndarray:
    """The same numbers for both precisions, exact in float32."""
    seed = sum(ord(c) * 31**k for k, c in enumerate(name)) % 2**32
    found = np.random.default_rng(seed).uniform(low, high, shape)
    return found.astype(np.float32).astype(np.float64)


def floats(name: str, *shape: int, T: Any, element: Any = None, **range_: float) -> Any:
    """A differentiable array; `element` a vector or matrix class, whose axes end the shape."""
    data = numbers(name, *shape, **range_)
    return wp.array(data, dtype=element or T, requires_grad=True)


def records(cls: Any, name: str, count: int) -> Any:
    """A differentiable array of structs with random floats, and integers 0, 1, 2, ..."""
    data = np.zeros(count, cls.numpy_dtype())
    for path, part in fields_of(data):
        if part.dtype.kind == "f":
            part[...] = numbers(f"{name}{path}", *part.shape)
        elif part.dtype.kind in "iu":
            part[...] = np.arange(count).reshape((-1,) + (1,) * (part.ndim - 1))
    return wp.array(data, dtype=cls, requires_grad=True)


def fields_of(data: np.ndarray, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """The numbers in a record array, field by field, as views."""
    if data.dtype.names is None:
        yield path, data
        return
    for name in data.dtype.names:
        yield from fields_of(data[name], f"{path}.{name}")


def arrays_of(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Every array that an argument holds."""
    if isinstance(value, wp.array):
        yield name, value
    elif isinstance(value, wp.indexedarray):
        yield name, value.data
    elif hasattr(type(value), "numpy_dtype"):
        for field in type(value).__ir_type__.fields:
            yield from arrays_of(getattr(value, field), f"{name}.{field}")


def differentiable(args: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for k, value in enumerate(args):
        for name, a in arrays_of(value, str(k)):
            if a.requires_grad and id(a) not in seen:
                seen.add(id(a))
                found[name] = a
    return found


def float_views(a: Any) -> list[np.ndarray]:
    return [part for _, part in fields_of(a.numpy()) if part.dtype.kind == "f"]


def parts(data: np.ndarray) -> list[np.ndarray]:
    """The float fields of an array's contents."""
    return [part for _, part in fields_of(data) if part.dtype.kind == "f"]


def inner(a: np.ndarray, b: np.ndarray) -> float:
    return float((a * b).sum())


def weights_of(args: list[Any], seed: str = "weight") -> Weights:
    out: Weights = {}
    for name, a in differentiable(args).items():
        w = np.zeros_like(a.numpy())
        for path, part in fields_of(w):
            if part.dtype.kind == "f":
                part[...] = numbers(f"{seed}{name}{path}", *part.shape, low=-1.0, high=1.0)
        out[name] = w
    return out


def gradients(kernel: Any, dim: Any, args: list[Any], weights: Weights) -> dict[str, list[Any]]:
    """The adjoint's gradient by array, float field by float field, in float64."""
    found = differentiable(args)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=dim, inputs=args)
    tape.backward(grads={a: weights[name] for name, a in found.items()})
    return {
        name: [part.astype(np.float64) for part in float_views(a.grad)] for name, a in found.items()
    }


def differences(kernel: Any, dim: Any, args: list[Any], weights: Weights) -> dict[str, list[Any]]:
    """The same by Richardson-extrapolated central differences."""

    def loss(name: str, field: int, j: int, step: float) -> float:
        own = copy.deepcopy(args)
        arrays = differentiable(own)
        data = arrays[name].numpy()
        view = parts(data)[field]
        view[np.unravel_index(j, view.shape)] += step
        arrays[name].assign(data)
        wp.launch(kernel, dim=dim, inputs=own)
        total = 0.0
        for other, a in arrays.items():
            mine = zip(float_views(a), parts(weights[other]), strict=True)
            total += sum(float((v * w).sum()) for v, w in mine)
        return total

    out: dict[str, list[Any]] = {}
    for name, a in differentiable(args).items():
        out[name] = []
        for field, view in enumerate(float_views(a)):
            g = np.zeros(view.shape)
            for j in range(g.size):

                def central(h: float, name: str = name, field: int = field, j: int = j) -> float:
                    return (loss(name, field, j, h) - loss(name, field, j, -h)) / (2 * h)

                g.flat[j] = (4 * central(1e-4) - central(2e-4)) / 3
            out[name].append(g)
    return out
