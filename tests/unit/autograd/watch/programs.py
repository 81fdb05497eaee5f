"""Kernels that the tests of the witness share, and how their programs are watched."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import engine as wp
from engine.autograd import Broken, Overwritten, Stale, Witness

F = wp.array(dtype=float)


@wp.struct
class Body:
    x: F
    v: F
    scale: float


@wp.struct
class Cell:
    a: float
    b: float


@wp.kernel
def square(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def twice(x: F, y: F):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def times(x: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * w[i]


@wp.kernel
def triple(x: F, v: F, w: F, y: F):
    i = wp.tid()
    y[i] = x[i] * v[i] * w[i]


@wp.kernel
def add(x: F, y: F):
    i = wp.tid()
    y[i] += x[i]


@wp.kernel
def total(x: F, out: F):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])


@wp.kernel
def gather(x: F, at: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = x[at[i]]


@wp.kernel
def square_in_place(x: F):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel
def upper(x: F, n: int):
    i = wp.tid()
    x[i + n] = 3.0 * x[i]


@wp.kernel
def body_force(b: Body, y: F):
    i = wp.tid()
    y[i] = b.x[i] * b.v[i] * b.scale


@wp.kernel
def pack(x: F, c: wp.array(dtype=Cell)):
    i = wp.tid()
    c[i].a = x[i]
    c[i].b = 2.0 * x[i]


@wp.kernel
def unpack(c: wp.array(dtype=Cell), y: F):
    i = wp.tid()
    y[i] = c[i].a * c[i].b


@wp.kernel
def grid(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = x[i, j] * x[i, j]


@wp.kernel
def square_row(t: int, x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i = wp.tid()
    y[t, i] = x[t, i] * x[t, i]


@wp.kernel
def twice_positive(t: int, x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    if y[i, j] > 0.0:
        y[i, j] += 2.0 * x[i + t, j]


@wp.kernel
def put_row(t: int, z: F, x: wp.array2d(dtype=float)):
    i = wp.tid()
    x[t, i] = z[i]


@wp.kernel
def square16(x: wp.array(dtype=wp.float16), y: wp.array(dtype=wp.float16)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def square64(x: wp.array(dtype=wp.float64), y: wp.array(dtype=wp.float64)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def descend(x: F, g: F):
    i = wp.tid()
    x[i] = x[i] - 0.1 * g[i]


@wp.kernel
def floored(x: F, y: F):
    i = wp.tid()
    y[i] = wp.floor(x[i]) * 2.0


@wp.kernel
def counted(x: F, y: F):
    i = wp.tid()
    y[i] = float(int(x[i]))


@wp.kernel
def partly_floored(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] - wp.floor(x[i])


@wp.kernel
def branched(x: F, y: F):
    i = wp.tid()
    if x[i] > 1.5:
        y[i] = 1.0
    else:
        y[i] = 2.0


@wp.kernel
def whole_numbers(x: wp.array(dtype=int), y: F):
    i = wp.tid()
    y[i] = float(x[i])


@wp.kernel(enable_backward=False)
def no_backward(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * x[i]


def floats(*values: float, grad: bool = True) -> Any:
    """A float array, with a gradient."""
    return wp.array(values, dtype=float, requires_grad=grad)


def zeros(n: int = 3, grad: bool = True) -> Any:
    return wp.zeros(n, dtype=float, requires_grad=grad)


def ones(y: Any) -> dict[Any, Any]:
    """Cotangents of one."""
    return {y: np.ones(y.shape, np.float32)}


@contextmanager
def watched() -> Iterator[list[Any]]:
    """What is found of the programs that run in the block, once it is left."""
    found: list[Any] = []
    with wp.capturing(watcher=Witness()) as capture:
        yield found
    # What another run would have to show is no finding yet, and where something was made is none.
    beside = (wp.autograd.Sought, wp.autograd.Made)
    found += [f for t in capture.tapes for f in t.facts if not isinstance(f, beside)]


def facts(program: Callable[[], Any]) -> list[Any]:
    """What is found of a program."""
    with watched() as found:
        program()
    return found


def overwrites(found: list[Any], notes: bool = False) -> list[Overwritten]:
    """Those that are overwrites; without those that nothing depends on unless asked for."""
    return [f for f in found if isinstance(f, Overwritten) and (notes or f.kind != "unneeded")]


def stale(found: list[Any]) -> list[Stale]:
    return [f for f in found if isinstance(f, Stale)]


def merged(found: list[Stale]) -> list[Stale]:
    """Those that are alike as one, of whatever tapes."""
    out: list[Stale] = []
    for f in found:
        k, both = next(
            ((k, b) for k, known in enumerate(out) if (b := known.joined(f))), (len(out), f)
        )
        out[k : k + 1] = [both]
    return out


def broken(found: list[Any]) -> list[Broken]:
    return [f for f in found if isinstance(f, Broken)]


def said(f: Any) -> str:
    """The text at a fact's place, of these files."""
    import linecache

    span = f.span if hasattr(f, "span") else f
    return "" if span is None else linecache.getline(span.file, span.line).strip()


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
