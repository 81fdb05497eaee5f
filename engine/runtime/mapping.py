"""`map`: a function over the elements of arrays. Each kind of call has a kernel of its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.builtins.stubs import BUILTINS, Builtin
from engine.diagnostics import Diagnostic, EngineError, KernelError, LaunchError
from engine.diagnostics.site import call_span
from engine.frontend import Captures, UserFunc, result_types
from engine.lang.generics import is_open
from engine.lang.structs import ARRAYS, COMPOUND, ElementType, TupleType, UserType, has_float
from engine.lang.types import BOOL, FLOAT32, INT32, ScalarType, scalar_of
from engine.lang.values import value_class
from engine.runtime.annotation import ArrayAnnotation, describe
from engine.runtime.array import array
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.generated import define, functions_of, identity
from engine.runtime.indexed import IndexedArrayAnnotation, indexedarray
from engine.runtime.kernel import Kernel
from engine.runtime.launch import launch
from engine.runtime.transfer import remake

_KEPT = 512


class MapError(LaunchError, TypeError):
    """`map` was given a function, inputs or outputs that do not fit each other."""


def refused(message: str, help: str = "", code: str = "E206") -> MapError:
    """The error to raise, at the user's call."""
    return MapError(Diagnostic(code, message, call_span(), help))


class _Made:
    """What one kind of call needs: its kernel, and the types of the results.

    captures: what its function reads from Python, which may change; that of builtins does not.
    """

    def __init__(
        self, kernel: Kernel, inputs: list[UserType], results: tuple[Any, ...],
        captures: list[Captures],
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.inputs = inputs
        self.results = results
        self._captures = captures

    def holds(self) -> bool:
        """Whether it would be made the same now."""
        return all(c.hold() for c in self._captures)


# By function, types of inputs and how they are broadcast; the latest last.
_made: OrderedDict[Any, _Made] = OrderedDict()


def map(
    func: Any,
    *inputs: Any,
    out: Any = None,
    return_kernel: bool = False,
    block_dim: int | None = None,
    device: DeviceLike = None,
) -> Any:
    """Calls a function for the elements of arrays, all at once, and gives an array of the results.

    ::

        wp.map(wp.clamp, xs, -0.5, 0.5, out=xs)
        y = wp.map(lambda a, b: a + 2.0 * b, x1, x2)

    On a tape gradients flow as through any other launch.

    Args:
        func: a function made by `@func`, a builtin, a type, or a Python function or lambda in the
            kernel language. What it captures is taken as it is at the call.
        inputs: an array at least; what is no array is the same for all elements. Shapes are
            broadcast as NumPy does.
        out: an array, or a list of one for each result of the function; made where left out, and
            with a gradient where an input has one.
        return_kernel: gives the kernel alone: its parameters are the inputs, then the outputs.
        block_dim: accepted for GPU code; it means nothing on the CPU.
        device: where to run, that of the arrays where left out.

    Returns `out`; a list where the function has several results.
    Raises MapError (a LaunchError, so a ValueError, and a TypeError) E202 for types, E206 for
    shapes; KernelError where the function is not in the kernel language.
    """
    del block_dim
    arrays = [a for a in inputs if isinstance(a, (array, indexedarray))]
    if not arrays:
        raise refused("map: at least one input must be an array")
    shape = _broadcast(arrays)
    given = None if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
    indexed = tuple(isinstance(a, indexedarray) for a in given or ())
    made = _kernel(func, inputs, shape, indexed)
    place = _first_array(arrays).device if device is None else get_device(device)
    if return_kernel:
        return made.kernel
    if given is None:
        wanted = any(_first_array([a]).requires_grad for a in arrays)
        results = [_result(shape, kind, wanted, place) for kind in made.results]
    else:
        results = given
        _check_outputs(results, made.results, shape)
    values = [_argument(v, t) for v, t in zip(inputs, made.inputs, strict=True)]
    launch(made.kernel, shape, inputs=values, outputs=results, device=place)
    if out is not None:
        return out
    return results[0] if len(results) == 1 else results


def _first_array(arrays: Sequence[Any]) -> array:
    first = arrays[0]
    found: array = first.data if isinstance(first, indexedarray) else first
    return found


def _broadcast(arrays: Sequence[Any]) -> tuple[int, ...]:
    shape: tuple[int, ...] = arrays[0].shape
    for a in arrays[1:]:
        try:
            shape = np.broadcast_shapes(shape, a.shape)
        except ValueError:
            raise refused(f"map: shapes {shape} and {a.shape} cannot be broadcast to one "
                          "another") from None  # fmt: skip
    return shape


def _result(shape: tuple[int, ...], kind: ElementType, wanted: bool, place: Any) -> array:
    made = array._allocate(shape, kind, False, place)
    if wanted and has_float(kind):
        made.requires_grad = True
        remake(made)
    return made


def _check_outputs(given: list[Any], kinds: Sequence[Any], shape: tuple[int, ...]) -> None:
    if len(given) != len(kinds):
        raise refused(f"map: the function has {len(kinds)} results, but `out` has {len(given)} "
                      f"arrays")  # fmt: skip
    for k, (a, kind) in enumerate(zip(given, kinds, strict=True)):
        which = f"output {k}" if len(kinds) > 1 else "the output"
        if not isinstance(a, (array, indexedarray)):
            raise refused(f"map: {which} is an array, got {type(a).__name__}", code="E202")
        if a.shape != shape:
            raise refused(f"map: {which} needs shape {shape}, got {a.shape}")
        if _first_array([a])._ir.element != kind:
            raise refused(f"map: {which} needs elements of {describe(kind)}, "
                          f"got {a.dtype.__name__}", code="E202")  # fmt: skip


# ---- kernels


def _kernel(
    func: Any, inputs: Sequence[Any], shape: tuple[int, ...], indexed: tuple[bool, ...]
) -> _Made:
    ndim = len(shape)
    patterns = tuple(_pattern(v, shape) for v in inputs)
    own = tuple(_type(v) for v in inputs)
    forms = tuple("indexed" if isinstance(v, indexedarray) else _spelled(v) for v in inputs)
    indexed = indexed if any(indexed) else ()
    key = (identity(func), own, patterns, ndim, forms, indexed)
    found = _made.get(key)
    if found is None or not found.holds():
        found = _made[key] = _make(func, inputs, own, patterns, ndim, indexed)
        while len(_made) > _KEPT:
            _made.popitem(last=False)
    else:
        _made.move_to_end(key)
    return found


def _pattern(value: Any, shape: tuple[int, ...]) -> str:
    """How an input is read: a letter for each of its dimensions, `1` where it is repeated."""
    if not isinstance(value, (array, indexedarray)):
        return "-"
    wide = shape[len(shape) - value.ndim :]
    return "".join("1" if n == 1 != m else "n" for n, m in zip(value.shape, wide, strict=True))


def _type(value: Any) -> UserType:
    """The type of an input: of an array's elements."""
    if isinstance(value, (array, indexedarray)):
        kind: UserType = _first_array([value])._ir.element
        return kind
    found = getattr(type(value), "__ir_type__", None)
    if found is not None:
        if isinstance(found, ARRAYS):
            raise refused("map: arrays of arrays are not supported", code="E202")
        return found  # type: ignore[no-any-return]
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, np.integer)):
        return INT32
    if isinstance(value, (float, np.floating)):
        return FLOAT32
    raise refused(f"map: {value!r} is not an array, number, vector, matrix or struct", code="E202")


def _spelled(value: Any) -> bool:
    """Whether an input is a plain number, whose type follows from the arrays beside it."""
    return type(value) in (int, float)


def _guesses(inputs: Sequence[Any], own: Sequence[UserType]) -> list[list[UserType]]:
    """Types of the inputs, the likeliest first: plain numbers are what arrays have, or 32 bits."""
    scalars = {scalar_of(t) for v, t in zip(inputs, own, strict=True)
               if isinstance(v, (array, indexedarray)) and not isinstance(t, COMPOUND)}  # fmt: skip
    floats = [s for s in scalars if s.kind == "f"]
    whole = [s for s in scalars if s.kind in "iu"]

    def adapted(value: Any, t: UserType, ints: list[ScalarType]) -> UserType:
        if not _spelled(value):
            return t
        of = floats if isinstance(value, float) else ints
        return of[0] if len(of) == 1 else t

    out: list[list[UserType]] = []
    for ints in (whole, whole or floats):
        guess = [adapted(v, t, ints) for v, t in zip(inputs, own, strict=True)]
        if guess not in out:
            out.append(guess)
    if list(own) not in out:
        out.append(list(own))
    return out


def _make(
    func: Any, inputs: Sequence[Any], own: Sequence[UserType], patterns: Sequence[str], ndim: int,
    indexed: Sequence[bool],
) -> _Made:  # fmt: skip
    if any(isinstance(v, (array, indexedarray)) and is_open(v.dtype) for v in inputs):
        raise refused("map: an input has no type", code="E202")
    name, called = functions_of(func, len(inputs))
    names = [f"a{k}" for k in range(len(inputs))]
    call = f"f({', '.join(names)})"
    probe = UserFunc(define("probe", [f"def probe({', '.join(names)}):", f"    return {call}"],
                            {"f": called}))  # fmt: skip
    first: EngineError | None = None
    for types in _guesses(inputs, own):
        captures: list[Captures] = []
        try:
            results = result_types(probe, types, captures)
        except EngineError as e:
            first = first or e
            continue
        break
    else:
        assert first is not None
        raise _placed(first, name, types)
    if not results:
        raise refused(f"map: `{name}` gives no value", "let it return one", "E202")
    outs = []
    for k, kind in enumerate(results):
        if isinstance(kind, (TupleType, *ARRAYS)):
            what = "a tuple in a tuple" if isinstance(kind, TupleType) else "an array"
            raise refused(f"map: `{name}` gives {what}, which is not an element", code="E202")
        special = k < len(indexed) and indexed[k]
        form: Any = IndexedArrayAnnotation if special else ArrayAnnotation
        outs.append(form(value_class(kind), ndim))
    kernel = _define(name, called, inputs, types, patterns, outs, ndim)
    fixed = isinstance(func, (Builtin, type))
    return _Made(kernel, types, results, [] if fixed else captures)


def _placed(error: EngineError, name: str, types: Sequence[UserType]) -> EngineError:
    """An error of the line that calls the function, which the user never wrote: at the `map`."""
    found = error.diagnostics[0]
    if found.span is None or not found.span.file.startswith("<probe"):
        return error
    given = ", ".join(describe(t) for t in types)
    message = f"map: `{name}` does not take ({given}): {found.message}"
    return KernelError(Diagnostic(found.code, message, call_span(), found.help, notes=found.notes))


def _define(
    name: str, called: Any, inputs: Sequence[Any], types: Sequence[UserType],
    patterns: Sequence[str], outs: Sequence[Any], ndim: int,
) -> Kernel:  # fmt: skip
    places = [f"i{d}" for d in range(ndim)]
    parameters, given = [], []
    names: dict[str, Any] = {"f": called, "tid": BUILTINS["tid"]}
    for k, (value, kind, pattern) in enumerate(zip(inputs, types, patterns, strict=True)):
        parameters.append(f"a{k}: A{k}")
        names[f"A{k}"] = _annotation(value, kind, len(pattern))
        if pattern == "-":
            given.append(f"a{k}")
            continue
        at = places[ndim - len(pattern) :]
        index = ["0" if p == "1" else i for p, i in zip(pattern, at, strict=True)]
        given.append(f"a{k}[{', '.join(index)}]")
    for k, annotation in enumerate(outs):
        parameters.append(f"out{k}: Out{k}")
        names[f"Out{k}"] = annotation
    values = ", ".join(f"r{k}" for k in range(len(outs)))
    lines = [
        f"def map_{name}({', '.join(parameters)}):",
        f"    {', '.join(places)} = tid()",
        f"    {values} = f({', '.join(given)})",
        *(f"    out{k}[{', '.join(places)}] = r{k}" for k in range(len(outs))),
    ]
    return Kernel(define(f"map_{name}", lines, names), f"map_{name}", "unique")


def _annotation(value: Any, kind: Any, ndim: int) -> Any:
    if isinstance(value, indexedarray):
        return IndexedArrayAnnotation(value_class(kind), ndim)
    if isinstance(value, array):
        return ArrayAnnotation(value_class(kind), ndim)
    return value_class(kind)


def _argument(value: Any, kind: UserType) -> Any:
    """A plain number as the type that was found for it."""
    if _spelled(value) and isinstance(kind, ScalarType):
        make: Callable[[Any], Any] = value_class(kind)
        return make(value)
    return value
