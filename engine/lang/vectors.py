"""Vectors and matrices as Python values: small arrays of C, which NumPy sees without a copy.

Classes are made per type and cached: `vector_class(VectorType(FLOAT32, 3))` is
`vec3f` every time it is asked for.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from engine import config
from engine.diagnostics import Diagnostic, LaunchError
from engine.lang import types as t
from engine.lang.numbers import exact, misfit, number_kind, numbers
from engine.lang.operator_errors import told
from engine.lang.plain_numbers import Layout, is_plain_real, item, put_item, put_plain
from engine.lang.scalars import SCALAR_CLASSES, host_number

_SUFFIX = {
    "float16": "h", "bfloat16": "bf", "float32": "f", "float64": "d", "bool": "bool",
    "int8": "b", "int16": "s", "int32": "i", "int64": "l",
    "uint8": "ub", "uint16": "us", "uint32": "ui", "uint64": "ul",
}  # fmt: skip


def wrong(code: str, message: str, *notes: str) -> LaunchError:
    """The error for a value that cannot be made."""
    return LaunchError(Diagnostic(code, message, notes=notes))


_NEW: Any = ctypes.Array.__new__


class BadKey(KeyError, IndexError, TypeError):
    """A component is asked for by what names none."""

    __str__ = Exception.__str__


class Components:
    """Base of vectors and matrices: `_data` are the components, an array of the type's dtype.

    Classes are arrays of `ctypes`, too, but for halves, which C has not: `from_buffer`,
    `ctypes.byref(v)` and `bytes(v)` work.
    """

    __slots__ = ()
    __ir_type__: ClassVar[t.VectorType | t.MatrixType]
    __array_priority__ = 1000.0  # NumPy scalars on the left leave arithmetic to us
    __hash__ = None  # type: ignore[assignment]
    _shape: ClassVar[tuple[int, ...]]
    _dtype: ClassVar[np.dtype[Any]]
    # How plain numbers are put into the memory of an array of C; None where it is none.
    _layout: ClassVar[Layout | None] = None
    _data: np.ndarray[Any, np.dtype[Any]]

    def __init__(self, *args: Any) -> None:
        if args and not put_plain(self, args):
            self._data[...] = _components(type(self), args)

    @classmethod
    def _of(cls, data: Any) -> Any:
        """A value that owns a copy of `data`, whose shape must fit."""
        if cls._layout is not None and cls.__new__ is _NEW:
            found = np.asarray(data, cls._dtype, order="C")
            if found.shape != cls._shape:
                found = found.reshape(cls._shape)
            return cls.from_buffer_copy(found)  # type: ignore[attr-defined]
        out = cls.__new__(cls)
        out._data[...] = np.asarray(data, cls._dtype).reshape(cls._shape)
        return out

    # ---- conversions

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if dtype is not None and np.dtype(dtype) != self._data.dtype:
            return self._data.astype(dtype)
        return self._data.copy() if copy else self._data

    def __getitem__(self, index: Any) -> Any:
        if index.__class__ is int and self._layout is not None and self._layout.one is not None:
            n = self._shape[0]
            if -n <= index < n:
                return self._layout.one(item(self, index))
        elif index.__class__ is tuple and self._layout is not None and self._layout.at is not None:
            r, c = index if len(index) == 2 else (None, None)
            if r.__class__ is int and c.__class__ is int:
                rows, columns = self._shape
                if -rows <= r < rows and -columns <= c < columns:
                    return self._layout.at(item(self, r)[c])
        got = self._data[_checked(index, self._shape)]
        if isinstance(got, np.ndarray):
            return from_numpy_value(got)
        return host_number(self.__ir_type__.scalar, got)

    def __setitem__(self, index: Any, value: Any) -> None:
        layout = self._layout
        if (
            index.__class__ is int and layout is not None and layout.real
            and -self._shape[0] <= index < self._shape[0]
            and is_plain_real(value)
        ):  # fmt: skip
            put_item(self, index, value)
            return
        part, found = self._data[_checked(index, self._shape)], numbers(value)
        if found.shape not in ((), part.shape) or number_kind(found.dtype) not in "biuf":
            place = f"components of shape {part.shape}" if part.shape else "a component"
            given = f"{value!r} of type {type(value).__name__}"
            raise wrong("E109", f"{place} of {type(self).__name__} cannot be set to {given}")
        self._data[index] = _fitted(type(self), found)

    def __bytes__(self) -> bytes:
        return self._data.tobytes()

    def __iter__(self) -> Iterator[Any]:
        # One at a time: a loop sees what it sets. A subclass may give others than the memory has.
        if (
            self._layout is not None and self._layout.one is not None
            and type(self).__getitem__ is Components.__getitem__
        ):  # fmt: skip
            return map(self._layout.one, map(partial(item, self), range(self._layout.count)))
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return self._shape[0]

    def __reduce__(self) -> Any:
        return (_rebuild, (self.__ir_type__, self._data.tolist()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._data.tolist()})"

    # ---- comparison and arithmetic

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Components):
            return self.__ir_type__ == other.__ir_type__ and bool((self._data == other._data).all())
        try:
            data = np.asarray(other)
        except ValueError:
            return False
        return data.shape == self._shape and bool(np.all(self._data == data))

    def __pos__(self) -> Any:
        return self._of(self._data)

    def __neg__(self) -> Any:
        return self._of(-self._data)

    def __add__(self, other: object) -> Any:
        return told("+", self, other, self._elementwise(np.add, other))

    def __radd__(self, other: object) -> Any:
        return told("+", self, other, self._elementwise(np.add, other, swap=True), True)

    def __sub__(self, other: object) -> Any:
        return told("-", self, other, self._elementwise(np.subtract, other))

    def __rsub__(self, other: object) -> Any:
        return told("-", self, other, self._elementwise(np.subtract, other, swap=True), True)

    def __mul__(self, other: object) -> Any:
        found = self._product(other)
        if found is NotImplemented and not isinstance(other, Components):
            found = self._scaled(np.multiply, other)
        return told("*", self, other, found)

    def __rmul__(self, other: object) -> Any:
        return told("*", self, other, self._scaled(np.multiply, other), True)

    def __truediv__(self, other: object) -> Any:
        return told("/", self, other, self._scaled(_divide(self._dtype), other))

    def __rtruediv__(self, other: object) -> Any:
        found = self._scaled(_divide(self._dtype), other, swap=True)
        return told("/", self, other, found, True)

    def __mod__(self, other: object) -> Any:
        # The remainder of kernels: it has the sign of what is divided, and is 0 for integers by 0.
        with np.errstate(all="ignore"):
            return told("%", self, other, self._elementwise(np.fmod, other))

    def __rmod__(self, other: object) -> Any:
        with np.errstate(all="ignore"):
            return told("%", self, other, self._elementwise(np.fmod, other, swap=True), True)

    def __matmul__(self, other: object) -> Any:
        return told("@", self, other, self._product(other))

    def __rmatmul__(self, other: object) -> Any:
        return told("@", self, other, NotImplemented, True)

    def _product(self, other: object) -> Any:
        if not isinstance(other, Components) or self._dtype != other._dtype:
            return NotImplemented
        kind = other.__ir_type__
        if isinstance(kind, t.VectorType) and (kind.tag or len(self._shape) == 1):
            return NotImplemented  # a dot or a componentwise product: say which, by name
        if self._shape[-1] != other._shape[0]:
            return NotImplemented
        return from_numpy_value(self._data @ other._data)

    def _elementwise(self, op: Any, other: object, swap: bool = False) -> Any:
        if other.__class__ is self.__class__ and not swap:
            return self._of(op(self._data, other._data))
        if isinstance(other, Components):
            if other.__ir_type__ != self.__ir_type__:
                return NotImplemented
            data = other._data
        elif isinstance(other, np.ndarray) and (swap or other.shape != self._shape):
            return op(other, self._data) if swap else op(self._data, other)  # NumPy's own
        elif isinstance(other, (tuple, list, np.ndarray)):
            data = np.asarray(other, self._dtype)
            if data.shape != self._shape:
                return NotImplemented
        else:
            return NotImplemented
        return self._of(op(data, self._data) if swap else op(self._data, data))

    def _scaled(self, op: Any, other: object, swap: bool = False) -> Any:
        if isinstance(other, np.ndarray) and other.ndim:
            return op(other, self._data) if swap else op(self._data, other)
        if not _is_number(other):
            return NotImplemented
        with np.errstate(all="ignore"):
            if other.__class__ is float and self._dtype.kind == "f":
                s = self._dtype.type(other)
            else:
                s = np.asarray(other).astype(self._dtype)
            return self._of(op(s, self._data) if swap else op(self._data, s))


class Vector(Components):
    """A column of scalars: indexable, sliceable, with x, y, z, w for the first four."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        # Else components that it has not, and several at once, would be mere attributes.
        if not (set(name) - _LETTERS or hasattr(type(self), name)):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        super().__setattr__(name, value)

    def __str__(self) -> str:
        return str(self._data.tolist())


class Matrix(Components):
    """Rows of scalars: `m[i]` is a row (a copy), `m[i, j]` a component."""

    __slots__ = ()

    def get_row(self, row: int) -> Any:
        """A copy of a row."""
        return self[row]

    def get_col(self, col: int) -> Any:
        """A copy of a column."""
        return self[:, col]

    def set_row(self, row: int, value: Any) -> None:
        """Replaces a row."""
        self[row] = value

    def set_col(self, col: int, value: Any) -> None:
        """Replaces a column."""
        self[:, col] = value

    def __str__(self) -> str:
        return "[" + ",\n ".join(str(row) for row in self._data.tolist()) + "]"


def _checked(index: Any, shape: tuple[int, ...]) -> Any:
    parts = index if isinstance(index, tuple) else (index,)
    if len(parts) > len(shape):
        raise BadKey(f"too many indices: {len(parts)} for shape {shape}")
    for part, n in zip(parts, shape, strict=False):
        if not isinstance(part, slice) and not hasattr(part, "__index__"):
            raise BadKey(f"a component is named by an integer or a slice, not by {part!r}")
        if not isinstance(part, slice) and not -n <= int(part) < n:
            raise IndexError(f"index {part} is out of range for {n} components")
    return index


def _is_number(x: object) -> bool:
    if isinstance(x, np.ndarray):
        return x.ndim == 0
    return isinstance(x, (bool, int, float, np.number, np.bool_))


def _divide(dtype: np.dtype[Any]) -> Any:
    """Division as kernels do it: integers truncate, and a zero divisor gives 0."""
    if number_kind(dtype) == "f":
        return np.divide

    def divide(a: Any, b: Any) -> Any:
        a, b = np.broadcast_arrays(a, b)
        safe = np.where(b == 0, 1, b)
        q = np.abs(a) // np.abs(safe)
        return np.where(b == 0, 0, np.where((a < 0) != (b < 0), -q, q))

    return divide


def _components(cls: type[Components], args: tuple[Any, ...]) -> Any:
    """The constructor's arguments as an array that fits the shape (or one fill value)."""
    shape, dtype = cls._shape, cls._dtype
    try:
        if len(args) == 1:
            data = np.asarray(args[0])
        else:
            data = exact([x if type(x) is int else np.asarray(x) for x in args], dtype)
    except ValueError:
        raise wrong("E109", f"{cls.__name__} cannot be made from rows of unequal length") from None
    if number_kind(data.dtype) not in "biuf":
        raise wrong("E202", f"{cls.__name__} takes numbers, got {args[0]!r}")
    if dtype.kind in "iu" and number_kind(data.dtype) == "f" and not _is_composite(args):
        raise wrong(
            "E202", f"{cls.__name__} has integer components, got {data.tolist()}",
            "convert on purpose with int(...)",
        )  # fmt: skip
    size = int(np.prod(shape))
    if data.shape == (2, 3) and shape == (6,):  # a spatial vector from its halves
        data = data.reshape(6)
    if data.ndim and data.shape != shape and (data.size != size or data.ndim > 1):
        raise wrong(
            "E109", f"{cls.__name__} takes {size} components, got shape {data.shape}",
            f"expected {' x '.join(map(str, shape))} numbers, one number to fill, or none",
        )  # fmt: skip
    return _fitted(cls, data).reshape(shape if data.ndim else ())


def _fitted(cls: type[Components], data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Numbers as the class has them. Raises LaunchError (E202) for integers out of range.

    Under the alias they wrap, as in Warp.
    """
    why = misfit(data, cls._dtype)
    if why and (config.integers == "strict" or number_kind(data.dtype) not in "iu"):
        raise wrong("E202", f"{cls.__name__}: {why}")
    with np.errstate(over="ignore", invalid="ignore"):
        return data.astype(cls._dtype)


def _is_composite(args: tuple[Any, ...]) -> bool:
    return all(isinstance(a, Components) for a in args)


_LETTERS = frozenset("xyzw")


def _component(i: int) -> property:
    def get(self: Vector) -> Any:
        return Components.__getitem__(self, i)  # not a subclass's, which may ask for it

    def put(self: Vector, value: Any) -> None:
        self[i] = value

    return property(get, put, doc=f"Component {i}.")


_classes: dict[t.VectorType | t.MatrixType, type[Components]] = {}


def class_name(kind: t.VectorType | t.MatrixType) -> str:
    """`vec3f`, `mat22d`, `quatf`, ... where the API has such a name, else how to make it."""
    suffix, scalar = _SUFFIX[kind.scalar.name], kind.scalar
    if isinstance(kind, t.VectorType):
        if kind.tag:
            return f"{kind.tag}{suffix}"
        if 2 <= kind.length <= 4 and scalar.kind != "b":
            return f"vec{kind.length}{suffix}"
        if kind.length == 6 and scalar.kind == "f":
            return f"spatial_vector{suffix}"
        return f"vector(length={kind.length}, dtype={scalar})"
    if kind.rows == kind.cols and 2 <= kind.rows <= 4 and (scalar.kind == "f" or suffix == "i"):
        return f"mat{kind.rows}{kind.cols}{suffix}"
    if kind.rows == kind.cols == 6 and scalar.kind == "f":
        return f"spatial_matrix{suffix}"
    return f"matrix(shape=({kind.rows}, {kind.cols}), dtype={scalar})"


def vector_class(kind: t.VectorType | t.MatrixType) -> type[Components]:
    """The value class of a vector or matrix type; always the same class for a type."""
    found = _classes.get(kind)
    if found is None:
        members: dict[str, Any] = {
            "__slots__": (),
            "__module__": "engine",
            "__ir_type__": kind,
            "_shape": t.shape_of(kind),
            "_dtype": kind.scalar.numpy,
            "dtype": SCALAR_CLASSES[kind.scalar],
            # Names that programs for Warp know from its classes.
            "_wp_scalar_type_": SCALAR_CLASSES[kind.scalar],
            "_shape_": t.shape_of(kind),
            "_length_": t.shape_of(kind)[0],
        }
        if isinstance(kind, t.VectorType) and kind.tag != "transform":
            members.update((c, _component(i)) for i, c in enumerate("xyzw"[: kind.length]))
        base = _base(kind)
        members["__doc__"] = (
            base.__doc__
            if isinstance(kind, t.VectorType) and kind.tag
            else f"A value of type {kind}. Arguments: components, one to fill, or none."
        )
        made = _with_storage(class_name(kind), base, members, kind)
        found = _classes.setdefault(kind, made)
    return found


class _Halves:
    """Holds components that C has no type for."""

    __slots__ = ("_data",)

    def __new__(cls, *args: Any, **named: Any) -> Any:
        out = object.__new__(cls)
        out._data = np.zeros(cls._shape, cls._dtype)  # type: ignore[attr-defined]
        return out


def _with_storage(
    name: str, base: type[Components], members: dict[str, Any], kind: t.VectorType | t.MatrixType
) -> Any:
    """The class with memory for its components."""
    shape, dtype = t.shape_of(kind), kind.scalar.numpy
    # As Warp's classes have it: all components one after the other, halves as their bits.
    flat = {"_length_": math.prod(shape), "_type_": _OF_C.get(kind.scalar.name, ctypes.c_uint16)}
    if kind.scalar.name not in _OF_C:
        return type(name, (_Halves, base), members | flat)
    storage: Any = flat["_type_"]
    for n in reversed(shape):
        storage = storage * n
    if len(shape) == 1:
        members["_data"] = property(lambda self: np.frombuffer(self, dtype))
    else:
        members["_data"] = property(lambda self: np.frombuffer(self, dtype).reshape(shape))
    members["_layout"] = Layout(kind)
    made = type(storage)(name, (base, storage), members)
    for attribute, value in flat.items():
        setattr(made, attribute, value)  # not before: it would decide on the memory
    return made


_OF_C = {
    "bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double,
    **{n: getattr(ctypes, f"c_{n}") for n in (
        "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    )},
}  # fmt: skip


def _base(kind: t.VectorType | t.MatrixType) -> type[Components]:
    from engine.lang.rotations import Quaternion, Transform

    if isinstance(kind, t.MatrixType):
        return Matrix
    return {"": Vector, "quat": Quaternion, "transform": Transform}[kind.tag]


def from_numpy_value(data: np.ndarray[Any, np.dtype[Any]]) -> Components:
    """A vector (1-D) or matrix (2-D) that copies `data`."""
    out: Components = _class_of(data.dtype, data.shape)._of(data)
    return out


@cache
def _class_of(dtype: np.dtype[Any], shape: tuple[int, ...]) -> type[Components]:
    scalar = t.BY_NAME[dtype.name]
    one = len(shape) == 1
    return vector_class(t.VectorType(scalar, shape[0]) if one else t.MatrixType(scalar, *shape))


def _rebuild(kind: t.VectorType | t.MatrixType, data: Any) -> Components:
    out: Components = vector_class(kind)._of(data)
    return out
