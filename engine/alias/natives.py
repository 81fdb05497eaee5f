"""Warp's native functions, which some programs call past its Python: by names such as
`wp_builtin_transform_point_transformf_vec3f`, with a reference to the result as last argument.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from engine.lang.stand_ins import make_stand_in

_PREFIX = "wp_builtin_"
_INTERNAL = ("internals of Warp", "use the public names of `engine`")


class Core:
    """Finds builtins by such names; what else is asked for is a stand-in."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        builtin = _builtin_of(name)
        if builtin is None:
            return make_stand_in(name, *_INTERNAL)
        return _native(builtin)


def _builtin_of(name: str) -> Callable[..., Any] | None:
    """The builtin of the longest name that this one begins with: types of arguments follow."""
    from engine.builtins.stubs import BUILTINS

    words = name.removeprefix(_PREFIX).split("_") if name.startswith(_PREFIX) else []
    names = ("_".join(words[:n]) for n in range(len(words), 0, -1))
    return next((BUILTINS[n] for n in names if n in BUILTINS), None)


def _native(builtin: Callable[..., Any]) -> Callable[..., None]:
    def call(*args: Any) -> None:
        *given, out = args
        result = builtin(*(getattr(a, "value", a) for a in given))
        target = getattr(out, "_obj", out)  # of `ctypes.byref`
        if hasattr(target, "__ir_type__"):
            target[:] = result
        else:
            target.value = result

    return call


RUNTIME = types.SimpleNamespace(core=Core())
