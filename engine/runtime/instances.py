"""Instances of generic kernels, one for each list of argument types."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from engine import hooks
from engine.diagnostics import EngineError
from engine.frontend import is_stub
from engine.itself import calling_frame
from engine.lang.generics import Pattern, pattern_of
from engine.lang.structs import UserType
from engine.lang.types import BOOL, BY_NAME, FLOAT32, INT32, ArrayType
from engine.lang.values import to_ir_type
from engine.runtime.annotation import array_type, describe
from engine.runtime.launch_errors import fail
from engine.runtime.pack import Mismatch

if TYPE_CHECKING:
    from engine.runtime.kernel import Kernel

Types = tuple[UserType, ...]


def type_of_argument(value: Any, pattern: Pattern) -> UserType | None:
    """The type of a launch argument; None where it does not tell. Plain numbers are 32 bits."""
    found = getattr(value, "__ir_type__", None)
    if found is None:
        found = getattr(value, "_ir", None)  # an array
    if found is not None:
        return found if isinstance(found, UserType) else None
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, int):
        return INT32
    if isinstance(value, float):
        return FLOAT32
    if isinstance(value, np.generic):
        return BY_NAME.get(value.dtype.name)
    if isinstance(value, np.ndarray) and value.ndim == pattern.ndim and pattern.role == "array":
        scalar = BY_NAME.get(value.dtype.name)
        return None if scalar is None else array_type(scalar, value.ndim)
    adapter = hooks.adapter(type(value))
    return None if adapter is None else cast("UserType | None", adapter.type_of(value, pattern))


def infer(kernel: Kernel, args: Sequence[Any]) -> Types:
    """Types for the arguments of a launch.

    Raises LaunchError E201 or E202, and KernelError where an annotation is wrong.
    """
    signature = kernel.signature
    _check_annotations(kernel)
    if len(args) != len(signature.types):
        names = ", ".join(signature.types)
        raise fail("E201", f"kernel {kernel.key!r} got the wrong number of arguments",
                   f"expected {len(signature.types)} ({names}), got {len(args)}")  # fmt: skip
    out: list[UserType] = []
    for (name, own), value in zip(signature.types.items(), args, strict=True):
        if own is not None:
            out.append(own)
            continue
        pattern = signature.patterns[name]
        try:
            found = type_of_argument(value, pattern)
        except Mismatch as e:
            raise fail(e.code, f"kernel {kernel.key!r}: argument {name!r} expects {pattern} "
                       f"but got {e.got}", help=e.help) from None  # fmt: skip
        if found is None or not pattern.accepts(found):
            got = describe(found) if found is not None else f"a {type(value).__name__}"
            raise fail(
                "E202", f"kernel {kernel.key!r}: argument {name!r} expects {pattern} "
                f"but got {'None' if value is None else got}",
                help="pass a value whose type selects the instance of the kernel",
            )  # fmt: skip
        out.append(found)
    return tuple(out)


def _check_annotations(kernel: Kernel) -> None:
    from engine.runtime.kernel import lower

    known = kernel.signature
    if any(t is None and n not in known.patterns for n, t in known.types.items()):
        lower(kernel)  # raises


def _checked(kernel: Kernel, name: str, given: Any) -> UserType:
    """The type that an overload gives a parameter. Raises LaunchError E202."""
    own, pattern = kernel.signature.types[name], kernel.signature.patterns.get(name)
    found: UserType | None
    try:
        found = None if pattern_of(given) is not None else to_ir_type(given)
    except EngineError:
        found = None
    fits = found is not None and (found == own if own else pattern and pattern.accepts(found))
    if not fits or found is None:
        shown = describe(found) if found else getattr(given, "__name__", None) or repr(given)
        raise fail("E202", f"kernel {kernel.key!r}: parameter {name!r} cannot have type {shown}",
                   f"expected {describe(own) if own else pattern}")  # fmt: skip
    if isinstance(found, ArrayType):
        return array_type(found.element, found.ndim)
    return found


def resolve(kernel: Kernel, given: Mapping[str, Any] | Sequence[Any] | None) -> Types:
    """Types of an explicit overload. Raises LaunchError: E106, E201 or E202."""
    signature = kernel.signature
    if not signature.is_generic:
        raise fail("E106", f"kernel {kernel.key!r} is not generic: it has no overloads",
                   help="annotate a parameter with Any to let launches decide on its type",
                   )  # fmt: skip
    _check_annotations(kernel)
    names = list(signature.types)
    if isinstance(given, Mapping):
        unknown = [n for n in given if n not in signature.types]
        missing = [n for n in signature.patterns if n not in given]
        if unknown or missing:
            what = f"has no parameter {unknown[0]!r}" if unknown else f"needs {missing[0]!r}"
            raise fail("E201", f"overload of kernel {kernel.key!r}: it {what}",
                       f"its open parameters are {', '.join(signature.patterns)}")  # fmt: skip
        own = signature.types
        return tuple(_checked(kernel, n, given.get(n, own[n])) for n in names)
    types = list(given or ())
    if len(types) != len(names):
        raise fail("E201", f"overload of kernel {kernel.key!r}: wrong number of types",
                   f"expected {len(names)} ({', '.join(names)}), got {len(types)}")  # fmt: skip
    return tuple(_checked(kernel, n, t) for n, t in zip(names, types, strict=True))


def from_stub(stub: Callable[..., Any]) -> Kernel:
    """The kernel that a stub (`...` as body) names, with the overload of its annotations."""
    from engine.runtime.kernel import Kernel

    name = stub.__name__
    frame = calling_frame()
    around = frame.f_locals if frame is not None else {}
    found = around.get(name) or stub.__globals__.get(name)
    if not isinstance(found, Kernel):
        raise fail("E102", f"@overload: there is no kernel `{name}` here",
                   help="define the generic kernel first, in the same place")  # fmt: skip
    _check_stub(stub)
    notes = {k: v for k, v in stub.__annotations__.items() if k != "return"}
    if stub.__annotations__.get("return") not in (None, type(None)):
        raise fail("E109", f"@overload: the stub of kernel `{name}` has a result",
                   help="remove the annotation of the result: kernels return nothing")  # fmt: skip
    globals_ = getattr(stub, "__globals__", {})
    for key, value in notes.items():
        if isinstance(value, str):
            notes[key] = eval(value, globals_, dict(around))
    found.add_overload(list(notes.values()))
    return found


def _check_stub(stub: Callable[..., Any]) -> None:
    """A stub has no statements. Raises LaunchError E106."""
    if not is_stub(stub):
        raise fail("E106", f"@overload: the stub of kernel `{stub.__name__}` has a body",
                   help="write `...` as its body: the generic kernel's is compiled",
                   )  # fmt: skip
