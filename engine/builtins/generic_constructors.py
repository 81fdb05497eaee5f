"""Constructors that take their type from arguments, on the host: `vector(1.0, 2.0)`.

Kernels have these in `engine.frontend.calls.generic_constructors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.builtins.resolve import ways_to_type
from engine.diagnostics import Diagnostic, LaunchError
from engine.lang import factories
from engine.lang.types import FLOAT32, ScalarType, Type, scalar_of
from engine.lang.values import SCALAR_CLASSES

GENERIC_CONSTRUCTORS: dict[str, str] = {
    "vector": "vector(x, y, ..., length=n, dtype=t): a vector of its arguments, or of one number "
    "repeated, or of zeros.",
    "matrix": "matrix(a, b, ..., shape=(rows, cols), dtype=t): a matrix of its arguments, row by "
    "row, or of one number repeated, or of zeros.",
    "quaternion": "quaternion(x, y, z, w, dtype=t): a quaternion of its components, or of (vector "
    "part, w), or zero.",
    "transformation": "transformation(p, q, dtype=t): a transform of a translation and a rotation "
    "(the identity where left out), or of 7 numbers, or zero.",
}
IDENTITIES: dict[str, str] = {
    "quat_identity": "quat_identity(dtype=float): the rotation by angle 0: (0, 0, 0, 1).",
    "transform_identity": "transform_identity(dtype=float): no translation and no rotation.",
}
_PARTS = {"quaternion": ("ijk", "real"), "transformation": ("p", "q")}
_SIZES = {"vector": "length", "matrix": "shape"}


def _fail(name: str, problem: str) -> LaunchError:
    text = {**GENERIC_CONSTRUCTORS, **IDENTITIES}[name]
    return LaunchError(Diagnostic("E104", f"{name}(): {problem}", help=text))


def _scalar(name: str, dtype: Any) -> ScalarType:
    kind = factories.kind_of(dtype)
    if not isinstance(kind, ScalarType):
        raise _fail(name, f"{dtype!r} is not a scalar type")
    return kind


def _common(name: str, types: Sequence[Type], weak: Sequence[bool]) -> ScalarType:
    """The scalar type that all arguments have or take."""
    for casts in ways_to_type(types, weak):
        found = {scalar_of(t if c is None else c) for t, c in zip(types, casts, strict=True)}
        if len(found) == 1:
            return found.pop()
    raise _fail(name, f"the arguments have several types ({', '.join(map(str, types))})")


def make(
    name: str, args: Sequence[Any], named: dict[str, Any], types: list[Type], weak: list[bool]
) -> Any:
    """A call of one of `GENERIC_CONSTRUCTORS`. types, weak: of args and then of the named parts."""
    size = named.pop(_SIZES.get(name, ""), None)
    dtype = named.pop("dtype", None)
    if named:
        raise _fail(name, f"there is no argument {next(iter(named))!r}")
    scalar = _scalar(name, dtype) if dtype is not None else FLOAT32
    if dtype is None and types and not (name in _PARTS and all(weak)):
        scalar = _common(name, types, weak)
    cls = SCALAR_CLASSES[scalar]
    if name in _PARTS:
        return getattr(factories, name)(cls)(*_neutral_if_empty(name, args))
    if size is None and len(args) == 1 and hasattr(args[0], "__len__"):
        size = args[0]._shape if name == "matrix" else len(args[0])
    if size is None and (name == "matrix" or not args):
        raise _fail(name, f"the {_SIZES[name]} is missing")
    return getattr(factories, name)(len(args) if size is None else size, cls)(*args)


def _neutral_if_empty(name: str, args: Sequence[Any]) -> Sequence[Any]:
    # As in kernels: all components are 0.
    return (0.0,) if name == "transformation" and not args else args


def part_names(name: str) -> tuple[str, ...]:
    """Arguments of one of `GENERIC_CONSTRUCTORS` that may be given by name, in order."""
    return _PARTS.get(name, ())


def neutral(name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A call of one of `IDENTITIES`."""
    if len(args) + len(named) > 1 or not set(named) <= {"dtype"}:
        raise _fail(name, "it takes a dtype or nothing")
    dtype = [*args, *named.values(), None][0]
    scalar = FLOAT32 if dtype is None else _scalar(name, dtype)
    if scalar.kind != "f":
        raise _fail(name, "the dtype is a float type")
    factory = factories.quaternion if name == "quat_identity" else factories.transformation
    made = factory(SCALAR_CLASSES[scalar])
    return made(*[0.0] * (made._shape[0] - 1), 1.0)
