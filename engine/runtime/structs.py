"""`@struct`: classes whose values kernels can take, hold and return."""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from engine.diagnostics import Diagnostic, KernelError, LaunchError
from engine.diagnostics.site import call_span
from engine.lang.stand_ins import stand_in_of
from engine.lang.structs import (
    ARRAYS,
    FieldType,
    StructType,
    record_dtype,
)
from engine.lang.types import UINT64, ScalarType, scalar_of
from engine.lang.values import to_ir_type, uint64, value_class
from engine.lang.vectors import Components, vector_class
from engine.logger import log_warning
from engine.runtime import modules
from engine.runtime.annotation import ArrayAnnotation, describe
from engine.runtime.base import ArrayBase
from engine.runtime.foreign import is_foreign
from engine.runtime.launch_errors import fail
from engine.runtime.links import descriptor
from engine.runtime.pack import Mismatch, packer, shown_value

_SHARED = (ScalarType, *ARRAYS)
_RESERVED = ("assign", "numpy_dtype", "numpy_value", "to")


class Struct:
    """Base of the classes that `@struct` makes.

    Construction takes fields by position or by name; those that are left out are zero
    (None for arrays). Setting a field converts the value, or raises LaunchError E202; None sets
    zero. A field that is a struct or a vector takes a copy; one for an array refers to it. A
    field for a handle (uint64) takes an object with an `id` too.
    """

    __ir_type__: ClassVar[StructType]
    # What fields start as, and what makes those that each value has for itself.
    __zeros__: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    __made__: ClassVar[tuple[tuple[str, Callable[[], Any]], ...]] = ()
    # Classes of vectors and matrices whose values are copied as they are, by field.
    __copied__: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, *args: Any, **named: Any) -> None:
        own = self.__dict__
        own.update(self.__zeros__)
        for name, make in self.__made__:
            own[name] = make()
        if args or named:
            _fill(self, args, named)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__copied__.get(name)
        if own is not None and value.__class__ is own:
            self.__dict__[name] = own.from_buffer_copy(value)
            return
        kind = self.__ir_type__
        if name not in kind.fields:
            raise _no_field(kind, name)
        if name in kind.missing:
            if value is not None:
                raise kind.missing[name].error()
            return
        try:
            self.__dict__[name] = _converted(value, kind.fields[name])
        except Mismatch as e:
            raise fail(
                e.code, f"Struct field {name!r} expects {e.wanted or describe(kind.fields[name])}"
                f"{', got' if e.wanted else ' but got'} {e.got}", f"a field of {kind.name}",
                help=e.help,
            ) from None  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_missing(self.__ir_type__, name))

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"fields of {self.__ir_type__.name} cannot be deleted")

    def __repr__(self) -> str:
        shown = ", ".join(f"{f}={self.__dict__[f]!r}" for f in self.__ir_type__.fields)
        return f"{self.__ir_type__.name}({shown})"

    @classmethod
    def numpy_dtype(cls) -> np.dtype[Any]:
        """The NumPy dtype of one value, laid out as C does."""
        return record_dtype(cls.__ir_type__)

    def numpy_value(self) -> tuple[Any, ...]:
        """The fields as numbers, lists and tuples, fit for `numpy.array(..., numpy_dtype())`."""
        return tuple(_plain(self.__dict__[f], t) for f, t in self.__ir_type__.fields.items())

    def __ctype__(self) -> Any:
        """The value as C sees it: a structure, with the addresses of its arrays."""
        from engine.runtime.descriptors import ctype_of

        return ctype_of(self)

    def assign(self, other: Any) -> None:
        """Takes over every field of another value of the struct."""
        if getattr(type(other), "__ir_type__", None) is not self.__ir_type__:
            raise fail("E202", f"a {self.__ir_type__.name} cannot take the fields of {other!r}")
        for f in self.__ir_type__.fields:
            setattr(self, f, other.__dict__[f])

    def to(self, device: Any) -> Any:
        """A copy of the value, with its arrays on a device."""
        out = copy.copy(self)
        for f, v in self.__dict__.items():
            if isinstance(v, (Struct, ArrayBase)):
                out.__dict__[f] = v.to(device)  # type: ignore[union-attr]
        return out

    def __copy__(self) -> Any:
        out = type(self)()
        out.assign(self)
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        out = type(self)()
        memo[id(self)] = out
        for f in self.__ir_type__.fields:
            out.__dict__[f] = copy.deepcopy(self.__dict__[f], memo)
        return out

    def __reduce__(self) -> Any:
        return (type(self), (), dict(self.__dict__))

    def __setstate__(self, state: dict[str, Any]) -> None:
        for f, v in state.items():
            setattr(self, f, v)


def _fill(made: Struct, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Sets the fields of a new value. Raises LaunchError E201, E202."""
    kind = made.__ir_type__
    if len(args) > len(kind.fields):
        raise fail("E201", f"{kind.name} has {len(kind.fields)} fields, got {len(args)} values",
                   help=f"its fields are {', '.join(kind.fields)}")  # fmt: skip
    given = dict(zip(kind.fields, args, strict=False))
    for name, value in named.items():
        if name in given:
            raise fail("E201", f"field {name!r} of {kind.name} is given twice")
        if name not in kind.fields:
            raise _no_field(kind, name)
        given[name] = value
    for name, value in given.items():
        setattr(made, name, value)


def struct(cls: Any = None, *, module: Any = None) -> Any:
    """Makes a struct of a class with annotated fields: `@struct`.

    Fields are scalars, vectors, matrices, arrays (`array(dtype=float)`) and other structs; there
    may be none. A class attribute that is no field stays one. What the class has as the value
    of a field is ignored, with a warning (UserWarning).
    Raises KernelError E103 for a field without a type of the language.
    """
    names: Any = sys._getframe(1).f_locals

    def make(found: Any) -> Any:
        made = _make(found, names)
        group = modules.find(made.__module__ if module is None else module, made)
        group.define(group.structs, made.__qualname__, made)
        return made

    return make if cls is None else make(cls)


def _make(cls: Any, names: dict[str, Any]) -> type[Struct]:
    if not isinstance(cls, type):
        raise _bad(f"@struct takes a class, got {cls!r}", "write `@struct` above a class")
    parents = [b.__name__ for b in cls.__bases__ if getattr(b, "__ir_type__", None) is not None]
    if parents:
        raise _bad(f"struct {cls.__name__} cannot inherit from struct {parents[0]}",
                   f"make a field of it: `base: {parents[0]}`")  # fmt: skip
    found = inspect.get_annotations(cls)
    around = {**vars(sys.modules.get(cls.__module__, object())), **names} if _text(found) else {}
    missing = {f: m for f, a in found.items() if (m := stand_in_of(_evaluated(a, around)))}
    fields = {
        f: _place_of(_evaluated(a, around)) if f in missing else _field(cls, f, a, around)
        for f, a in found.items()
    }
    kind = StructType(cls.__name__, fields, missing)
    valued = [f for f in fields if f in vars(cls)]
    if valued:
        names_of = ", ".join(valued)
        text = (f"struct {cls.__name__}: values that its class gives to fields ({names_of}) mean "
                "nothing: all fields start as zero")  # fmt: skip
        log_warning(text)
    skip = ("__dict__", "__weakref__", "__init__", "__doc__", *fields)
    members: dict[str, Any] = {"key": cls.__name__, "vars": MappingProxyType(fields)}
    members |= {k: v for k, v in vars(cls).items() if k not in skip}
    members |= {"__ir_type__": kind, "__doc__": cls.__doc__, "__zeros__": _zeros(fields, found)}
    members["__made__"] = tuple(
        (f, partial(_zero, t) if isinstance(t, StructType) else vector_class(t))
        for f, t in fields.items() if not isinstance(t, _SHARED)
    )  # fmt: skip
    members["__copied__"] = {
        f: c for f, c in members["__made__"] if getattr(c, "_layout", None) is not None
    }
    made = type(cls.__name__, (Struct,), members)
    kind.cls = made
    if "cls" not in members:
        made.cls = made  # type: ignore[attr-defined]
    return made


def _place_of(annotation: Any) -> FieldType:
    """Where a field of a type that is not here stands: it is nothing, and no kernel reads it."""
    if isinstance(annotation, ArrayAnnotation):
        return to_ir_type(ArrayAnnotation(uint64, annotation.ndim))
    return UINT64


def _evaluated(annotation: Any, around: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    with contextlib.suppress(Exception):  # what is wrong with it is said later
        return eval(annotation, around)
    return None


def _zeros(fields: Mapping[str, FieldType], annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Zeros of all fields, in their order; None for what each value has to have for itself.

    Those of scalars are of the engine's classes where the annotation is one, else Python's.
    """
    out: dict[str, Any] = {}
    for f, t in fields.items():
        note = annotations[f]
        python = note in (int, float, bool) if not isinstance(note, str) else note in _PYTHON
        out[f] = _zero(t) if isinstance(t, _SHARED) else None
        if isinstance(t, ScalarType) and not python:
            out[f] = value_class(t)(0)
    return out


_PYTHON = ("int", "float", "bool")


def _text(annotations: dict[str, Any]) -> bool:
    return any(isinstance(a, str) for a in annotations.values())


def _field(cls: type, name: str, annotation: Any, around: dict[str, Any]) -> FieldType:
    """The type of a field. Raises KernelError (E103)."""
    where = f"field {name!r} of struct {cls.__name__}"
    if name in _RESERVED or name.startswith("__"):
        raise _bad(f"{where}: the name is reserved", "choose another name")
    if isinstance(annotation, str):
        try:
            annotation = eval(annotation, around)
        except Exception as e:
            raise _bad(f"{where}: the annotation `{annotation}` cannot be evaluated ({e})",
                       "annotate with a type") from None  # fmt: skip
    try:
        kind: FieldType = to_ir_type(annotation)
        return kind
    except LaunchError:
        shown = getattr(annotation, "__name__", None) or repr(annotation)
        raise _bad(
            f"{where}: {shown} is not a type of the kernel language",
            "use float, int, bool, a vector, a matrix, array(dtype=...) or another struct",
        ) from None


def _bad(message: str, help: str) -> KernelError:
    return KernelError(Diagnostic("E103", message, call_span(), help))


def _missing(kind: StructType, name: str) -> str:
    import difflib  # late: for messages alone

    close = difflib.get_close_matches(name, list(kind.fields), 1)
    return f"{kind.name} has no field {name!r}" + (f", did you mean {close[0]!r}?" if close else "")


def _no_field(kind: StructType, name: str) -> LaunchError:
    return fail("E202", _missing(kind, name), help=f"its fields are {', '.join(kind.fields)}")


# ---- values of fields


def _zero(t: FieldType) -> Any:
    if isinstance(t, StructType):
        return t.cls()
    if isinstance(t, ScalarType):
        return {"f": 0.0, "b": False}.get(t.kind, 0)
    if isinstance(t, ARRAYS):
        return None
    return vector_class(t)()


def _converted(value: Any, t: FieldType) -> Any:
    """A value as a field holds it. Raises Mismatch."""
    if value is None:
        return _zero(t)
    if isinstance(t, ScalarType):
        # Most are plain numbers that fit.
        if value.__class__ is float and t.kind == "f":
            return value
        if value.__class__ is int and t.kind == "i" and abs(value) < 1 << (t.bits - 1):
            return value
    elif isinstance(value, Components) and value.__ir_type__ == t:
        return vector_class(t)._of(value._data)
    if isinstance(t, StructType):
        if getattr(type(value), "__ir_type__", None) is not t:
            raise Mismatch("E202", shown_value(value), f"pass {t.name}(...)")
        return copy.copy(value)
    if isinstance(t, ARRAYS):
        if getattr(value, "_ir", None) == t:
            return value
        if isinstance(value, np.ndarray):
            raise Mismatch("E202", "a NumPy array", "make an array of it: array(data, dtype=...)")
        have = getattr(value, "_ir", None)
        if is_foreign(value):
            raise Mismatch("E202", f"a {type(value).__name__}",
                           "make an array of it first, with from_torch(t) or a similar "
                           "function")  # fmt: skip
        if have is None:
            raise Mismatch("E202", shown_value(value))
        if have.element != t.element:
            names = [value_class(x.element).__name__ for x in (have, t)]
            if len(set(names)) == 2:
                raise Mismatch("E202", names[0], wanted=f"dtype {names[1]}")
        elif have.ndim != t.ndim:
            wanted = f"an array with {t.ndim} dimension(s)"
            raise Mismatch("E202", f"{have.ndim} dimension(s)", wanted=wanted)
        raise Mismatch("E202", describe(have))
    if t == UINT64 and type(getattr(value, "id", None)) is int:
        value = value.id
    number = isinstance(value, (int, float)) and not isinstance(value, (bool, np.generic))
    if number and not isinstance(t, ScalarType):
        help_text = f"make one of it: {describe(t)}(...)"
        raise Mismatch("E202", f"a single value of type {type(value).__name__}", help_text)
    if isinstance(t, ScalarType) and getattr(type(value), "__ir_type__", None) == t:
        return value
    packed = packer(t)(value)  # says what does not fit
    if isinstance(t, ScalarType):
        kind = {"f": float, "b": bool}.get(t.kind, int)
        return kind(value)
    data = np.frombuffer(packed, scalar_of(t).numpy, count=t.size // scalar_of(t).size)
    return vector_class(t)._of(data)


def _plain(value: Any, t: FieldType) -> Any:
    if isinstance(value, Struct):
        return value.numpy_value()
    if isinstance(t, ScalarType):
        return value
    if isinstance(t, ARRAYS):
        return descriptor(value)
    return value._data.tolist()
