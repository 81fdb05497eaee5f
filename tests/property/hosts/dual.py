"""Runs the text of random programs as plain Python, on NumPy arrays with dual numbers.

It shares nothing with the engine. `World` stands for the module `engine`: kernels are the Python
functions that they are written as, run for one thread after another, and each number has the
derivatives by all numbers that were there when the active tape began (and, of arrays that are made
later, by what they begin with). So a tape is a matrix J, and a backward pass is g = J' g on all
gradients, after the cotangents are written over them.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

MOST = 320  # numbers that a tape knows derivatives by


class Memory:
    """A block of numbers: values, derivatives (a row for each), and gradients."""

    def __init__(self, world: World, values: np.ndarray, wanted: bool) -> None:
        self.world = world
        self.values = np.array(values, np.float64)
        self.wanted = wanted
        self.grads = np.zeros(len(self.values))
        self.slopes = np.zeros((len(self.values), MOST))
        world.memories.append(weakref.ref(self))
        if world.active is not None:
            world.active.enrol(self)


class Number:
    """A value with its derivatives."""

    __slots__ = ("slopes", "value")

    def __init__(self, value: float, slopes: Any = 0.0) -> None:
        self.value = value
        self.slopes = slopes

    def __add__(self, other: Any) -> Number:
        b = number(other)
        return Number(self.value + b.value, self.slopes + b.slopes)

    def __sub__(self, other: Any) -> Number:
        b = number(other)
        return Number(self.value - b.value, self.slopes - b.slopes)

    def __rsub__(self, other: Any) -> Number:
        return number(other) - self

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Vector):
            return other * self
        b = number(other)
        return Number(self.value * b.value, self.value * b.slopes + b.value * self.slopes)

    def __truediv__(self, other: Any) -> Number:
        b = number(other)
        value = self.value / b.value
        return Number(value, (self.slopes - value * b.slopes) / b.value)

    def __neg__(self) -> Number:
        return Number(-self.value, -self.slopes)

    __radd__, __rmul__ = __add__, __mul__


def number(x: Any) -> Number:
    return x if isinstance(x, Number) else Number(float(x))


class Vector:
    """A value of several components."""

    def __init__(self, *of: Any) -> None:
        self.of = [number(x) for x in of]

    def __getitem__(self, k: int) -> Number:
        return self.of[k]

    def __add__(self, other: Vector) -> Vector:
        return Vector(*(a + b for a, b in zip(self.of, other.of, strict=True)))

    def __mul__(self, k: Any) -> Vector:
        return Vector(*(a * k for a in self.of))


class Array:
    """An array or a view: where each of its numbers lies in a block, components last."""

    def __init__(self, memory: Memory, at: np.ndarray, fields: Sequence[str] = (), inner: int = 0):
        self.memory = memory
        self.at = at
        self.fields = fields  # of an array of structs, whose fields are components
        self.inner = inner  # 1 where elements have components
        self.of: Array | None = None  # what an indexed array is of
        # A view that is made of an array while that requires no gradient never has one; views that
        # are made of it as it is do as the array does.
        self.fixed = False
        self.whole = False

    def _like(self, at: np.ndarray) -> Array:
        out = Array(self.memory, at, self.fields, self.inner)
        out.fixed = self.fixed or (self.whole and not self.memory.wanted)
        return out

    # ---- on the host

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape[: self.at.ndim - self.inner]

    @property
    def requires_grad(self) -> bool:
        return self.memory.wanted

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted != self.memory.wanted:
            self.memory.wanted = wanted
            self.memory.grads[:] = 0.0

    @property
    def grad(self) -> Gradient:
        return Gradient(self)

    @grad.setter
    def grad(self, values: Array) -> None:
        self.memory.grads[self.at] = values.numpy()

    def reshape(self, shape: Any) -> Array:
        return self._like(self.at.reshape(shape))

    def flatten(self) -> Array:
        return self._like(self.at.reshape(-1))

    def transpose(self) -> Array:
        return self._like(self.at.T)

    def view(self, dtype: Any) -> Array:
        return Array(self.memory, self.at)

    def numpy(self) -> np.ndarray:
        return self.memory.values[self.at]

    def assign(self, src: Any) -> None:
        if isinstance(src, Array):
            self.memory.world.copy(self, src)
        else:
            self._store(np.asarray(src, np.float64), 0.0)

    def fill_(self, value: float) -> None:
        self._store(np.full(self.at.shape, value), 0.0)

    def zero_(self) -> None:
        self.fill_(0.0)

    def _store(self, values: np.ndarray, slopes: Any) -> None:
        memory = self.memory
        if memory.wanted:
            memory.world.touch(self)
        memory.values[self.at] = values
        memory.slopes[self.at] = slopes if memory.wanted else 0.0

    def _read(self) -> tuple[np.ndarray, Any]:
        return self.memory.values[self.at], self.memory.slopes[self.at]

    # ---- in kernels

    def __getitem__(self, key: Any) -> Any:
        at = self.at[key]
        if not self.memory.world.threads:
            return self._like(at)
        if isinstance(at, np.ndarray) and at.ndim > self.inner:
            return self._like(at)
        if self.fields:
            return Element(self.memory, self.fields, at)
        if self.inner:
            return Vector(*(load(self.memory, k) for k in at))
        return load(self.memory, at)

    def __setitem__(self, key: Any, value: Any) -> None:
        at = self.at[key]
        if not self.memory.world.threads:
            view = self._like(at)
            view.assign(value) if isinstance(value, Array) else view.fill_(value)
        elif self.inner:
            for k, x in zip(at, value.of, strict=True):
                store(self.memory, k, x)
        else:
            store(self.memory, at, number(value))

    # ---- operators of arrays

    def __add__(self, b: Any) -> Array:
        return self.memory.world.map(lambda x, y: x + y, self, b)

    def __mul__(self, b: Any) -> Array:
        return self.memory.world.map(lambda x, y: x * y, self, b)

    def __sub__(self, b: Any) -> Array:
        return self.memory.world.map(lambda x, y: x - y, self, b)

    def __neg__(self) -> Array:
        return self.memory.world.map(lambda x: -x, self)

    def __iadd__(self, b: Any) -> Array:
        self.memory.world.map(lambda x, y: x + y, self, b, out=self)
        return self

    def __imul__(self, b: Any) -> Array:
        self.memory.world.map(lambda x, y: x * y, self, b, out=self)
        return self


class Gradient:
    """The gradient of an array, as the programs use it."""

    def __init__(self, of: Array) -> None:
        self._of = of

    def numpy(self) -> np.ndarray:
        return self._of.memory.grads[self._of.at]

    def zero_(self) -> None:
        self._of.memory.grads[self._of.at] = 0.0

    def fill_(self, value: float) -> None:
        self._of.memory.grads[self._of.at] = value


class Element:
    """A struct in an array, in a kernel."""

    def __init__(self, memory: Memory, fields: Sequence[str], at: np.ndarray) -> None:
        self.__dict__.update(_memory=memory, _at=dict(zip(fields, at, strict=True)))

    def __getattr__(self, name: str) -> Number:
        return load(self._memory, self._at[name])

    def __setattr__(self, name: str, value: Any) -> None:
        store(self._memory, self._at[name], number(value))


def load(memory: Memory, at: Any) -> Number:
    return Number(float(memory.values[at]), memory.slopes[at].copy())


def store(memory: Memory, at: Any, x: Number) -> None:
    memory.values[at] = x.value
    memory.slopes[at] = x.slopes if memory.wanted else 0.0


class Tape:
    """Derivatives of what the arrays held at its end by what they held at its beginning."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._forget()

    def reset(self) -> None:
        self.zero()
        self._forget()

    def _forget(self) -> None:
        self._touched: list[Array] = []
        self._begun: dict[Memory, int] = {}
        self._end: list[tuple[Memory, np.ndarray]] = []
        self._count = 0

    def enrol(self, memory: Memory) -> None:
        size = len(memory.values)
        if self._count + size > MOST:
            raise TooMany
        self._begun[memory] = self._count
        memory.slopes[:] = 0.0
        if memory.wanted:
            memory.slopes[np.arange(size), self._count + np.arange(size)] = 1.0
        self._count += size

    def __enter__(self) -> Tape:
        self._world.active = self
        for memory, slopes in self._end:  # it goes on
            memory.slopes[:] = 0.0
            memory.slopes[:, : slopes.shape[1]] = slopes
        for memory in self._world.alive():
            if memory not in self._begun:
                self.enrol(memory)
        return self

    def __exit__(self, *exc: object) -> None:
        self._world.active = None
        self._end = [(m, m.slopes[:, : self._count].copy()) for m in self._begun]

    def touch(self, a: Array) -> None:
        self._touched.append(a if a.of is None else a.of)

    def backward(self, loss: Array | None = None, grads: Mapping[Array, Any] | None = None) -> None:
        for a, cotangent in (grads or {}).items():
            values = cotangent.numpy() if isinstance(cotangent, Array) else cotangent
            a.memory.grads[a.at] = values
            self.touch(a)
        if loss is not None:
            loss.memory.grads[loss.at] = 1.0
            self.touch(loss)
        out = np.zeros(self._count)
        for memory, slopes in self._end:
            if memory.wanted:
                out += memory.grads @ slopes
        for memory, first in self._begun.items():
            if memory.wanted:
                memory.grads[:] = out[first : first + len(memory.grads)]

    def zero(self) -> None:
        for a in self._touched:
            if not a.fixed:
                a.grad.zero_()


def _whole(a: Array) -> Array:
    a.whole = True
    return a


def _fields(dtype: Any) -> tuple[str, ...]:
    """Of a struct; none of numbers and vectors."""
    return tuple(vars(dtype).get("__annotations__", ())) if isinstance(dtype, type) else ()


class TooMany(Exception):
    """A program has more numbers than there is room for."""


class World:
    """The names of `engine` that the programs use."""

    float64, vec3d = staticmethod(number), Vector

    def __init__(self) -> None:
        self.memories: list[weakref.ref[Memory]] = []
        self.active: Tape | None = None
        self.threads: list[tuple[int, ...]] = []  # the one that runs, in a kernel

    def alive(self) -> Iterator[Memory]:
        self.memories = [r for r in self.memories if r() is not None]
        return (m for r in self.memories if (m := r()) is not None)

    def touch(self, a: Array) -> None:
        """Notes that an array is on the active tape, which clears its gradient by `zero`."""
        if self.active is not None:
            self.active.touch(a)

    # ---- arrays

    def _made(self, values: np.ndarray, dtype: Any, wanted: bool) -> Array:
        memory = Memory(self, values.reshape(-1), wanted)
        at = np.arange(values.size).reshape(values.shape)
        fields = _fields(dtype)
        return _whole(Array(memory, at, fields, int(bool(fields) or dtype is Vector)))

    def array(self, data: Any = None, dtype: Any = None, requires_grad: bool = False) -> Any:
        if data is None:
            return None  # an annotation
        if isinstance(data, Array):
            data = data.numpy()
        values = np.asarray(data, np.float64)
        return self._made(values, dtype, requires_grad)

    array2d = indexedarray = array

    def zeros(self, shape: Any, dtype: Any = None, requires_grad: bool = False) -> Array:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        inner = len(_fields(dtype)) or (3 if dtype is Vector else 0)
        return self._made(np.zeros((*shape, inner) if inner else shape), dtype, requires_grad)

    def _same(self, a: Array, values: np.ndarray, requires_grad: bool | None) -> Array:
        wanted = a.requires_grad if requires_grad is None else requires_grad
        memory = Memory(self, values.reshape(-1), wanted)
        at = np.arange(a.at.size).reshape(a.at.shape)
        return _whole(Array(memory, at, a.fields, a.inner))

    def zeros_like(self, a: Array, requires_grad: bool | None = None) -> Array:
        return self._same(a, np.zeros(a.at.shape), requires_grad)

    def ones_like(self, a: Array, requires_grad: bool | None = None) -> Array:
        return self._same(a, np.ones(a.at.shape), requires_grad)

    def clone(self, a: Array) -> Array:
        out = self._same(a, np.zeros(a.at.shape), None)
        self.copy(out, a)
        return out

    def copy(
        self, dest: Array, src: Array, dest_offset: int = 0, src_offset: int = 0, count: int = 0
    ) -> None:
        if count:
            dest = dest._like(dest.at[dest_offset : dest_offset + count])
            src = src._like(src.at[src_offset : src_offset + count])
        if dest.requires_grad or src.requires_grad:  # else it is not recorded
            self.touch(dest)
            self.touch(src)
        values, slopes = src._read()
        dest._store(values.copy(), slopes.copy())

    def indexed(self, a: Array, at: Sequence[int]) -> Array:
        out = a._like(a.at[np.asarray(at)])
        out.of = a
        return out

    # ---- kernels

    @staticmethod
    def kernel(f: Callable[..., None]) -> Callable[..., None]:
        return f

    func = kernel

    @staticmethod
    def struct(cls: type) -> type:
        return cls

    def tid(self) -> Any:
        (at,) = self.threads
        return at if len(at) > 1 else at[0]

    def launch(
        self, kernel: Callable[..., None], dim: Any, inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (), record_cmd: bool = False,
    ) -> Any:  # fmt: skip
        given = [*inputs, *outputs]
        if record_cmd:
            return Command(self, kernel, dim, given)
        self._note(given)
        shape = (dim,) if isinstance(dim, int) else dim
        for at in product(*map(range, shape)):
            self.threads = [at]
            try:
                kernel(*given)
            finally:
                self.threads = []
        return None

    def _note(self, given: Sequence[Any]) -> None:
        for a in given:
            if isinstance(a, Array):
                self.touch(a)
            elif hasattr(a, "__dict__"):
                self._note(list(vars(a).values()))

    def map(self, f: Callable[..., Any], *given: Any, out: Array | None = None) -> Array:
        arrays = [a for a in given if isinstance(a, Array)]
        if out is None:
            wanted = any(a.requires_grad for a in arrays)
            out = self._same(arrays[0], np.zeros(arrays[0].at.shape), wanted)
        self._note([*arrays, out])
        for key in np.ndindex(*out.shape):
            self.threads = [key]
            try:
                out[key] = f(*(a[key] if isinstance(a, Array) else a for a in given))
            finally:
                self.threads = []
        return out

    @staticmethod
    def atomic_add(a: Array, k: int, x: Any) -> None:
        a[k] = a[k] + x

    @staticmethod
    def sin(x: Any) -> Number:
        x = number(x)
        return Number(math.sin(x.value), math.cos(x.value) * x.slopes)

    @staticmethod
    def cos(x: Any) -> Number:
        x = number(x)
        return Number(math.cos(x.value), -math.sin(x.value) * x.slopes)

    @staticmethod
    def dot(v: Vector, w: Vector) -> Number:
        return sum((a * b for a, b in zip(v.of, w.of, strict=True)), Number(0.0))

    def Tape(self) -> Tape:
        return Tape(self)


class Command:
    """A launch that is made many times, off any tape."""

    def __init__(self, world: World, kernel: Any, dim: Any, given: list[Any]) -> None:
        self._launch = lambda: world.launch(kernel, dim, given)

    def launch(self) -> None:
        self._launch()
