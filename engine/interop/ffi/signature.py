"""Matches arguments of JAX programs with the parameters of a kernel or function."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.classes import dataclass
from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.interop.ffi.operation import Slot
from engine.interop.ffi.primitive import METHODS
from engine.interop.ffi.program import Shape
from engine.lang.structs import StructType, UserType
from engine.lang.types import (
    BY_NAME,
    ArrayType,
    MatrixType,
    ScalarType,
    ValueType,
    VectorType,
    scalar_of,
    shape_of,
)
from engine.runtime.annotation import describe
from engine.runtime.launch_errors import fail

FLOATS = "f"


class JaxMissing(LaunchError, ImportError):
    """JAX is not there."""


def require_jax() -> None:
    """Raises JaxMissing (a LaunchError E202, and an ImportError) where JAX is not installed."""
    try:
        import jax
    except ImportError as e:
        raise JaxMissing(
            Diagnostic("E202", f"kernels in JAX need the package jax: {e}", call_span(),
                       help="pip install jax")
        ) from None  # fmt: skip
    del jax


@dataclass(frozen=True)
class Signature:
    """Parameters of what is called, and how they are split.

    what: it in words, for errors. types: of the parameters by name, in order. inputs: how many
    come first, those that are outputs too among them. in_out: names of these.
    """

    what: str
    types: dict[str, UserType]
    inputs: int
    in_out: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(self.types)

    def fail(self, code: str, message: str, *notes: str, help: str = "") -> LaunchError:
        """An error at the user's call."""
        return fail(code, f"{self.what}: {message}", *notes, help=help)


def split(
    what: str, names: Sequence[str], num_outputs: Any, in_out: Sequence[str] | None
) -> tuple[int, frozenset[str]]:
    """How many parameters are inputs, and which of them outputs, too.

    Raises LaunchError (E201, E202).
    """
    try:
        count = operator.index(num_outputs)
    except TypeError:
        raise fail("E202", f"{what}: num_outputs is a number, got {num_outputs!r}") from None
    given = [in_out] if isinstance(in_out, str) else list(in_out or ())
    both = frozenset(given)
    if len(both) < len(given):
        raise fail("E201", f"{what}: in_out_argnames must not contain duplicate names",
                   f"got {given}")  # fmt: skip
    unknown = [n for n in given if n not in names]
    if unknown:
        raise fail("E201", f"{what}: in_out_argnames {unknown} did not match any function "
                   "argument names", f"there are {', '.join(names)}")  # fmt: skip
    if count < 1:
        raise fail("E201", f"{what}: at least one output is needed, got num_outputs={count}")
    if count > len(names):
        raise fail("E201", f"{what}: num_outputs={count} is more than its {len(names)} parameters")
    if count < len(both):
        raise fail("E201", f"{what}: num_outputs={count} is less than its {len(both)} arguments "
                   "that are inputs and outputs", help="num_outputs also counts these")  # fmt: skip
    inputs = len(names) - count + len(both)
    late = [n for n in names[inputs:] if n in both]
    if late:
        raise fail("E201", f"{what}: {late[0]!r} is an input and an output, and there are too many "
                   "outputs: in_out arguments should be placed before output-only arguments",
                   f"num_outputs={count}, which counts both", "in_out arguments: "
                   f"{', '.join(given)}")  # fmt: skip
    return inputs, both


def check_types(s: Signature) -> None:
    """Raises LaunchError (E202) where a parameter is nothing that JAX has."""
    for k, (name, kind) in enumerate(s.types.items()):
        array = isinstance(kind, ArrayType)
        if not array and (k >= s.inputs or name in s.in_out):
            raise s.fail("E202", f"output {name!r} must be an array, got {describe(kind)}",
                         help="outputs are the last parameters; num_outputs says how "
                         "many")  # fmt: skip
        if not array and not isinstance(kind, (ScalarType, VectorType, MatrixType, StructType)):
            raise s.fail("E202", f"argument {name!r} is {describe(kind)}, which JAX has no "
                         "arrays for", help="take arrays of numbers, vectors or "
                         "matrices")  # fmt: skip


def check_method(what: str, method: Any) -> None:
    """Raises LaunchError (E202) for a vmap_method that there is not."""
    if method not in METHODS:
        raise fail("E202", f"{what}: vmap_method is {method!r}",
                   help=f"one of {', '.join(map(repr, METHODS))}")  # fmt: skip


def slot_of(name: str, kind: ArrayType, shape: Shape) -> Slot:
    """An array parameter whose array has that shape, in JAX's terms."""
    scalar = scalar_of(kind.element)
    return Slot(name, shape, np.dtype(scalar.numpy), scalar.kind == FLOATS)


def input_slot(s: Signature, name: str, kind: ArrayType, value: Any) -> Slot:
    """An input array in JAX's terms. Raises LaunchError E202, E203."""
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        raise s.fail("E202", f"argument {name!r} expects {describe(kind)} but got {value!r:.60} of "
                     f"type {type(value).__name__}", help="pass a JAX array")  # fmt: skip
    want, inner = np.dtype(scalar_of(kind.element).numpy), shape_of(kind.element)
    if dtype != want:
        narrow = want.itemsize == 8 and want.name.replace("64", "32") == np.dtype(dtype).name
        raise s.fail(
            "E202", f"argument {name!r} expects {describe(kind)} but got an array of {dtype}",
            help="JAX has 64 bits after jax.config.update('jax_enable_x64', True)"
            if narrow else f"convert it: {name}.astype({want.name!r})",
        )  # fmt: skip
    ndim = kind.ndim + len(inner)
    if len(shape) != ndim:
        parts = f", the last {len(inner)} of them {inner}" if inner else ""
        raise s.fail("E203", f"argument {name!r} expects {describe(kind)}, which JAX has {ndim} "
                     f"dimensions for{parts}", f"got shape {tuple(shape)}")  # fmt: skip
    if tuple(shape[kind.ndim :]) != inner:
        raise s.fail("E203", f"argument {name!r} expects {describe(kind)}, whose last dimensions "
                     f"are {inner}", f"got shape {tuple(shape)}")  # fmt: skip
    return slot_of(name, kind, tuple(shape))


def output_slot(s: Signature, name: str, kind: ArrayType, dims: Any) -> Slot:
    """An output in JAX's terms. dims: with or without the components. Raises LaunchError E203."""
    shape, inner = as_shape(s, f"the dimensions of output {name!r}", dims), shape_of(kind.element)
    if len(shape) == kind.ndim:
        shape = (*shape, *inner)
    elif len(shape) != kind.ndim + len(inner) or shape[kind.ndim :] != inner:
        parts = f", or those and {inner}" if inner else ""
        raise s.fail(
            "E203", f"output {name!r} is {describe(kind)}: it needs {kind.ndim} "
            f"dimension{'s' * (kind.ndim != 1)}{parts}", f"got {shape}",
            help=f"pass output_dims={{{name!r}: ...}}",
        )  # fmt: skip
    return slot_of(name, kind, shape)


def as_shape(s: Signature, what: str, dims: Any) -> Shape:
    """Dimensions as numbers. Raises LaunchError E203."""
    try:
        many = hasattr(dims, "__iter__")
        found = tuple(map(operator.index, dims)) if many else (operator.index(dims),)
    except TypeError:
        raise s.fail("E203", f"{what} are whole numbers, got {dims!r}",
                     help="shapes must not depend on values that JAX traces") from None  # fmt: skip
    if any(n < 0 for n in found):
        raise s.fail("E203", f"{what} must not be negative, got {dims!r}")
    return found


def output_slots(s: Signature, dims: Any, *defaults: Shape | None) -> list[Slot]:
    """The outputs that are no inputs. Raises LaunchError E201, E203.

    dims: as `output_dims` is given; defaults: for None the first that has as many dimensions as
    the output, or the first of all.
    """
    known = [d for d in defaults if d is not None]
    slots = []
    names = s.names[s.inputs :]
    if isinstance(dims, dict):
        unknown = [n for n in dims if n not in s.types]
        if unknown:
            raise s.fail("E201", f"output_dims has {unknown[0]!r}, which is no output",
                         f"outputs: {', '.join(names)}")  # fmt: skip
    for name in names:
        kind = s.types[name]
        assert isinstance(kind, ArrayType)
        own = dims
        if isinstance(dims, dict):
            if name not in dims:
                raise s.fail("E203", f"output_dims has no entry for output {name!r}")
            own = dims[name]
        if own is None and known:
            own = next((d for d in known if len(d) == kind.ndim), known[0])
        if own is None:
            raise s.fail("E203", "the dimensions of "
                                 f"output {name!r} are "
                                 "unknown, because "
                                 "there is no input "
                                 "array", help="pass output_dims=...")  # fmt: skip
        slots.append(output_slot(s, name, kind, own))
    return slots


def is_traced(value: Any) -> bool:
    """Whether a value is one of JAX's, which it knows while compiling by its type alone."""
    import jax

    return isinstance(value, jax.Array)


def scalar_slot(s: Signature, name: str, kind: UserType, value: Any) -> tuple[Slot, Any]:
    """A scalar, vector or matrix that JAX computes, as an operand, and that converted.

    Raises LaunchError E202, E203.
    """
    if isinstance(kind, StructType):
        raise s.fail("E202", f"argument {name!r} expects {describe(kind)}, got a JAX array",
                     help="a struct must be a static value")  # fmt: skip
    assert isinstance(kind, (ScalarType, VectorType, MatrixType))
    want, inner = scalar_of(kind), shape_of(kind)
    have = BY_NAME.get(np.dtype(value.dtype).name)
    fits = have is not None and (have == want or want.kind == FLOATS or have.kind in "iub")
    if not fits:
        raise s.fail("E202", f"argument {name!r} expects {describe(kind)} but got an array of "
                     f"{value.dtype}", help="convert it, or make it a static value: "
                     f"jax.jit(..., static_argnames=[{name!r}])")  # fmt: skip
    if tuple(value.shape) != inner:
        raise s.fail("E203", f"argument {name!r} expects {describe(kind)}, which JAX has the shape "
                     f"{inner} for", f"got shape {tuple(value.shape)}")  # fmt: skip
    dtype = np.dtype(want.numpy)
    if value.dtype != dtype:
        value = value.astype(dtype)
        if value.dtype != dtype:
            raise s.fail("E202", f"argument {name!r} expects {describe(kind)}, which JAX has after "
                         "jax.config.update('jax_enable_x64', True)")  # fmt: skip
    return Slot(name, inner, dtype, want.kind == FLOATS), value


def element_of(ndim: int, value: Any) -> ValueType | None:
    """What the elements of an array of `ndim` dimensions are, by a JAX array; None if nothing."""
    from engine.lang.factories import matrix, vector
    from engine.lang.values import value_class

    scalar = BY_NAME.get(np.dtype(value.dtype).name) if hasattr(value, "dtype") else None
    if scalar is None:
        return None
    inner = tuple(value.shape[ndim:])
    if len(value.shape) < ndim or len(inner) > 2:
        return None
    if not inner:
        return scalar
    dtype = value_class(scalar)
    made = vector(inner[0], dtype) if len(inner) == 1 else matrix(inner, dtype)
    return made.__ir_type__  # type: ignore[no-any-return]


def hashable(dims: Any) -> Any:
    """Dimensions, as a setting or of a call, as part of a key."""
    if isinstance(dims, dict):
        return tuple(sorted((k, hashable(v)) for k, v in dims.items()))
    return tuple(dims) if hasattr(dims, "__len__") else dims


def static_key(args: Sequence[Any]) -> Any:
    """What a call's program depends on; None where that cannot be told by looking."""
    out: list[Any] = []
    for x in args:
        if is_traced(x):
            out.append((x.shape, x.dtype))
        elif isinstance(x, float):
            out.append((type(x), x.hex()))
        elif isinstance(x, int):
            out.append((type(x), int(x)))
        else:
            return None
    return tuple(out)
