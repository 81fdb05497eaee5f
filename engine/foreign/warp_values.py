"""Arguments of Warp launches as plain data, with the contents of arrays.

Arrays are described once (`ArrayOf`); their contents are NumPy copies, which launches share where
nothing has changed between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.classes import dataclass
from engine.foreign.warp_kernels import Translation, Untranslatable, kind_of

Array = NDArray[Any]
Contents = Mapping[str, "Array | None"]


@dataclass(frozen=True)
class ArrayOf:
    """An array argument. path: its name among the arguments, as in `state.q`.

    dtype: Warp's. key: equal for arrays that are the same memory. begin, end: its addresses.
    grad: the address of its gradient, 0 where it has none.
    """

    path: str
    dtype: Any
    ndim: int
    shape: tuple[int, ...]
    key: tuple[Any, ...]
    begin: int
    end: int
    grad: int
    retains: bool = False
    strides: tuple[int, ...] = ()


@dataclass(frozen=True)
class StructOf:
    """A struct argument, with what its fields are."""

    struct: Any
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Unknown:
    """An argument that is none of these, and what it is."""

    what: str


def described(value: Any, path: str) -> Any:
    """What an argument is; numbers and vectors are copied."""
    kind = kind_of(value)
    if kind == "array":
        return _array(value, path)
    struct = getattr(value, "_cls", None)
    if struct is not None and kind_of(struct) == "Struct":
        fields = {n: described(getattr(value, n), f"{path}.{n}") for n in struct.vars}
        return StructOf(struct, fields)
    if "array" in kind.lower():
        return Unknown(f"an argument of the type {kind}")
    if hasattr(type(value), "_wp_generic_type_str_"):
        return type(value)(value)
    if value is None or isinstance(value, (bool, int, float, np.generic, tuple, list)):
        return value
    if kind and hasattr(value, "value"):  # a scalar of Warp
        return value.value
    return Unknown(f"an argument of the type {type(value).__name__}")


def _array(a: Any, path: str) -> Any:
    if getattr(a.device, "is_cuda", False):
        return Unknown("an array on a GPU")
    shape, strides = tuple(a.shape), tuple(a.strides)
    begin = int(a.ptr or 0)
    extent = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n > 0) + _size(a)
    end = begin + (extent if begin and all(shape) else 0)
    grad = int(a.grad.ptr or 0) if a.requires_grad and a.grad is not None else 0
    key = (begin, shape, strides)
    return ArrayOf(
        path, a.dtype, a.ndim, shape, key, begin, end, grad,
        bool(getattr(a, "retain_grad", False)), strides,
    )  # fmt: skip


def _size(a: Any) -> int:
    """Bytes of an element."""
    if not a.ptr or not all(a.shape):
        return 0
    seen = view(a)
    return int(seen.dtype.itemsize * np.prod(seen.shape[a.ndim :], dtype=np.int64))


def arrays_of(tree: Any) -> Iterator[ArrayOf]:
    """The arrays in an argument."""
    if isinstance(tree, ArrayOf):
        yield tree
    elif isinstance(tree, StructOf):
        for field in tree.fields.values():
            yield from arrays_of(field)


def with_gradients_of(tree: Any, live: Mapping[str, Any]) -> Any:
    """The description of an argument, with the gradients that its arrays have by now."""
    if isinstance(tree, StructOf):
        fields = {n: with_gradients_of(f, live) for n, f in tree.fields.items()}
        return StructOf(tree.struct, fields)
    a = live.get(tree.path) if isinstance(tree, ArrayOf) and not tree.grad else None
    if a is None or a.grad is None:
        return tree
    return replace(tree, grad=int(a.grad.ptr or 0))


def live_arrays(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The arrays themselves in an argument, by their paths."""
    if kind_of(value) == "array":
        yield path, value
    struct = getattr(value, "_cls", None)
    if struct is not None and kind_of(struct) == "Struct":
        for name in struct.vars:
            yield from live_arrays(getattr(value, name), f"{path}.{name}")


class _Memory:
    """What NumPy makes a view of; keeps the array."""

    def __init__(self, a: Any) -> None:
        self.of = a
        self.__array_interface__ = a.__array_interface__


def view(a: Any) -> Array:
    """An array of Warp on the CPU, as NumPy sees it, without a copy."""
    found = np.asarray(_Memory(a))
    if kind_of(a.dtype) == "Struct" and found.dtype.names is None:
        found = found.view(a.dtype.numpy_dtype()).reshape(a.shape)
    return found


class Snapshots:
    """Contents of arrays, one copy for as long as they stay the same.

    take: says whether there is room for so many bytes more.
    """

    def __init__(self, take: Callable[[int], bool]) -> None:
        self._take = take
        self._latest: dict[Any, Array] = {}

    def of(self, a: Any, spec: ArrayOf) -> Array | None:
        """What an array holds now; None where the limit leaves no room for a copy."""
        if not spec.begin or not all(spec.shape):
            return np.zeros(spec.shape)
        now = np.ascontiguousarray(view(a))
        known: Array | None = self._latest.get((spec.key, spec.dtype))
        if known is not None and _same(known, now):
            return known
        if not self._take(now.nbytes):
            return None
        copied: Array = now.copy()
        self._latest[spec.key, spec.dtype] = copied
        return copied


def _same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and bool(np.array_equal(_bytes(a), _bytes(b)))


def _bytes(a: Array) -> NDArray[np.uint8]:
    return a.reshape(-1).view(np.uint8)


# ---- arguments made anew


class Maker:
    """Makes arguments of their description; arrays of one memory are one array.

    array: makes an array of a description and contents. struct: of Warp's type and its fields.
    plain: of all else. Raises Untranslatable.
    """

    def __init__(
        self, contents: Contents, array: Callable[[ArrayOf, Array], Any],
        struct: Callable[[Any, Mapping[str, Any]], Any], plain: Callable[[Any], Any],
    ) -> None:  # fmt: skip
        self.contents = contents
        self.make_array, self.make_struct, self.plain = array, struct, plain
        self.arrays: dict[str, Any] = {}
        self._by_key: dict[Any, Any] = {}

    def __call__(self, tree: Any) -> Any:
        """An argument."""
        if isinstance(tree, Unknown):
            raise Untranslatable(f"{tree.what} cannot be examined")
        if isinstance(tree, StructOf):
            return self.make_struct(tree.struct, {n: self(f) for n, f in tree.fields.items()})
        if not isinstance(tree, ArrayOf):
            return self.plain(tree)
        found = self._by_key.get(tree.key) if tree.begin and all(tree.shape) else None
        if found is None:
            data = self.contents[tree.path]
            if data is None:
                raise Untranslatable(
                    f"the contents of argument {tree.path!r} at launch time are lost: copies of "
                    "arrays that launches read would take more than "
                    "engine.config.snapshot_limit_bytes"
                )
            found = self._by_key[tree.key] = self.make_array(tree, data)
        self.arrays[tree.path] = found
        return found


def for_warp(warp: Any, contents: Contents) -> Maker:
    """Makes arguments of Warp's own, on the CPU, with gradients where the arrays had them."""

    def array(spec: ArrayOf, data: Array) -> Any:
        if not all(spec.shape):
            return warp.zeros(spec.shape, dtype=spec.dtype, device="cpu",
                              requires_grad=bool(spec.grad))  # fmt: skip
        made = warp.array(data, dtype=spec.dtype, device="cpu", requires_grad=bool(spec.grad))
        if spec.retains:
            made.retain_grad = True
        return made

    def struct(kind: Any, fields: Mapping[str, Any]) -> Any:
        made = kind()
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    return Maker(contents, array, struct, lambda x: x)


def for_engine(translation: Translation, contents: Contents, every: bool = False) -> Maker:
    """Makes arguments of the engine, on the CPU. every: all have gradients."""
    import engine

    def array(spec: ArrayOf, data: Array) -> Any:
        dtype = translation.type(spec.dtype)
        grad = bool(spec.grad) or (every and has_floats(spec))
        if not all(spec.shape):
            return engine.zeros(spec.shape, dtype=dtype, device="cpu", requires_grad=grad)
        if data.dtype.names is None:
            return engine.array(data, dtype=dtype, device="cpu", requires_grad=grad)
        records = np.zeros(data.shape, dtype.numpy_dtype())
        _copy_fields(records, data)
        return engine.array(records, dtype=dtype, device="cpu", requires_grad=grad)

    def struct(kind: Any, fields: Mapping[str, Any]) -> Any:
        made = translation.type(kind)()
        for name, value in fields.items():
            setattr(made, name, value)
        return made

    return Maker(contents, array, struct, translation.value)


def _copy_fields(out: Array, data: Array) -> None:
    for name in data.dtype.names or ():
        if data.dtype[name].names:
            _copy_fields(out[name], data[name])
        else:
            out[name] = data[name].reshape(out[name].shape)


def has_floats(spec: ArrayOf) -> bool:
    """Whether elements of an array have floats."""
    fields = getattr(spec.dtype, "vars", None)
    scalar = getattr(spec.dtype, "_wp_scalar_type_", spec.dtype)
    return fields is not None or "float" in getattr(scalar, "__name__", "")


def leaves(data: Array, path: str) -> Iterator[tuple[str, Array]]:
    """The arrays that a kernel of the engine has in place of an array: one for each field."""
    if data.dtype.names is None:
        yield path, data
        return
    for name in data.dtype.names:
        yield from leaves(data[name], f"{path}.{name}")
