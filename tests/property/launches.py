"""Programs of launches on two inputs, in float32 and float64, for tests of identities.

Annotations name the type that a factory was called with, so they are evaluated, not
kept as text.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import engine as wp

BINS = 3  # of `scatter`


@dataclass(frozen=True)
class Kernels:
    """The kernels over one float type."""

    inner: Any
    outer: Any
    fused: Any
    neighbours: Any
    fused_neighbours: Any
    fused_in_place: Any
    recurrence: Any
    branches: Any
    multiply: Any
    scatter: Any
    crossed: Any


@functools.cache
def kernels(T: Any) -> Kernels:
    @wp.func
    def first(x: T, y: T):
        return wp.sin(x) * y + x * x

    @wp.func
    def second(h: T):
        return h * wp.exp(-h)

    @wp.kernel
    def inner(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        out[i] = first(x[i], y[i])

    @wp.kernel
    def outer(h: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        out[i] = second(h[i])

    @wp.kernel
    def fused(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        out[i] = second(first(x[i], y[i]))

    @wp.kernel
    def neighbours(h: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        out[i] = h[i] * h[(i + 1) % h.shape[0]]

    @wp.kernel
    def fused_neighbours(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        j = (i + 1) % x.shape[0]
        out[i] = first(x[i], y[i]) * first(x[j], y[j])

    @wp.kernel
    def fused_in_place(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        out[i] = first(first(x[i], y[i]), y[i] * x[i] * x[i])

    @wp.kernel
    def recurrence(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        total = T(0.0)
        for j in range(i + 1):
            total = total * y[j] + x[j]
        out[i] = total

    @wp.kernel
    def branches(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        if x[i] > y[i]:
            out[i] = x[i] * wp.exp(y[i])
            return
        a = y[i]
        while wp.abs(a) > T(0.25):
            a = a * T(0.5) * x[i]
        out[i] = a + x[i]

    @wp.kernel
    def multiply(x: wp.array(dtype=T), changed: wp.array(dtype=T)):
        i = wp.tid()
        changed[i] = changed[i] * x[i]

    @wp.kernel
    def scatter(x: wp.array(dtype=T), y: wp.array(dtype=T), out: wp.array(dtype=T)):
        i = wp.tid()
        wp.atomic_add(out, i % BINS, x[i] * x[i] * y[i])

    @wp.kernel
    def crossed(a: wp.array2d(dtype=T), b: wp.array2d(dtype=T), out: wp.array2d(dtype=T)):
        i, j = wp.tid()
        out[i, j] = a[i, j] * b[j, i] + wp.sin(a[i, j])

    return Kernels(
        inner, outer, fused, neighbours, fused_neighbours, fused_in_place,
        recurrence, branches, multiply, scatter, crossed,
    )  # fmt: skip


# A program launches kernels on inputs x and y of one length, and returns its output.
Program = Callable[[Any, Any], Any]


def apply(kernel: Any, *inputs: Any, size: int | None = None) -> Any:
    """Launches a kernel over its first input into a new array."""
    count = len(inputs[0]) if size is None else size
    out = wp.zeros(count, dtype=inputs[0].dtype, requires_grad=True)
    wp.launch(kernel, dim=len(inputs[0]), inputs=list(inputs), outputs=[out])
    return out


def _simple(name: str) -> Program:
    return lambda x, y: apply(getattr(kernels(x.dtype), name), x, y)


def composed(x: Any, y: Any) -> Any:
    return apply(kernels(x.dtype).outer, apply(kernels(x.dtype).inner, x, y))


def composed_neighbours(x: Any, y: Any) -> Any:
    return apply(kernels(x.dtype).neighbours, apply(kernels(x.dtype).inner, x, y))


def scattered(x: Any, y: Any) -> Any:
    return apply(kernels(x.dtype).scatter, x, y, size=BINS)


def in_place(x: Any, y: Any) -> Any:
    """The same as `fused_in_place`, by an array that two launches overwrite."""
    before = apply(kernels(x.dtype).inner, x, y)
    changed = wp.clone(y)
    for _ in range(2):
        wp.launch(kernels(x.dtype).multiply, dim=len(x), inputs=[x], outputs=[changed])
    return apply(kernels(x.dtype).inner, before, changed)


PROGRAMS: dict[str, Program] = {
    "fused": _simple("fused"),
    "fused_neighbours": _simple("fused_neighbours"),
    "fused_in_place": _simple("fused_in_place"),
    "recurrence": _simple("recurrence"),
    "branches": _simple("branches"),
    "composed": composed,
    "composed_neighbours": composed_neighbours,
    "scattered": scattered,
    "in_place": in_place,
}
