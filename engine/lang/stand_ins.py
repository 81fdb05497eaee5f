"""Stand-ins for names that a program mentions and the engine does not have.

A module may name it: as an annotation, a base class, a field of a struct, a default value. What
uses it (a call, a launch of a kernel with it) gets E112. Which names these are says
`engine.frontend.features`.
"""

from __future__ import annotations

import types
from typing import Any, NoReturn

from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.itself import ENGINE

# What decorators of missing modules are called: they are applied where functions are defined.
_DECORATORS = frozenset({"integrand", "dynamic_func", "dynamic_kernel", "jax_kernel",
                         "jax_callable"})  # fmt: skip


def plural(feature: str) -> str:
    """The feature with its verb: "tiles are", "this name of local arrays is"."""
    return f"{feature} {'is' if feature.startswith('this') else 'are'}"


class MissingFeature(LaunchError):
    """Something was used that the engine has not. feature, help: what, and what to do instead."""

    def __init__(self, name: str, feature: str, help: str) -> None:
        text = f"engine has no {name!r}: {plural(feature)} not supported"
        super().__init__(Diagnostic("E112", text, call_span(), help))
        self.feature = feature
        self.help = help


class StandIn(type):
    """The class of stand-ins: classes that can be mentioned wherever a type can.

    A call of one, of what it is asked for, or of a class derived from it raises MissingFeature.
    """

    missing_name: str
    missing_feature: str
    missing_help: str

    def __new__(
        mcs, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any
    ) -> StandIn:
        return super().__new__(mcs, name, bases, members)

    def __init__(
        cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any
    ) -> None:
        super().__init__(name, bases, members)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        last = cls.missing_name.rpartition(".")[2]
        if last in _DECORATORS:
            only = args[0] if len(args) == 1 and not kwargs else None
            made = getattr(only, "__name__", last) if callable(only) else last
            return make_stand_in(made, cls.missing_feature, cls.missing_help)
        raise cls.error()

    def error(cls) -> MissingFeature:
        """What a use of it raises."""
        return MissingFeature(cls.missing_name, cls.missing_feature, cls.missing_help)

    def __getattr__(cls, name: str) -> StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stand_in(f"{cls.missing_name}.{name}", cls.missing_feature, cls.missing_help)

    def __getitem__(cls, key: object) -> StandIn:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls  # of an annotation, or of flags: neither is of use without the feature

    __ror__ = __or__

    def __repr__(cls) -> str:
        return f"<{cls.missing_name}, which engine has not>"

    def __bool__(cls) -> bool:
        return True

    def _used(cls, *args: object) -> NoReturn:
        raise cls.error()

    __iter__ = __len__ = __contains__ = __int__ = __float__ = __index__ = __enter__ = __exit__ = (
        _used
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _used
    __truediv__ = __rtruediv__ = __neg__ = __lt__ = __gt__ = __le__ = __ge__ = _used


def make_stand_in(name: str, feature: str, help: str) -> StandIn:
    """A stand-in for `engine.NAME`."""
    found = _made.get((name, feature))
    if found is None:
        members = {"missing_name": name, "missing_feature": feature, "missing_help": help}
        found = _made[name, feature] = StandIn(name.rpartition(".")[2], (), members)
    return found


_made: dict[tuple[str, str], StandIn] = {}


def stand_in_of(annotation: object) -> StandIn | None:
    """The stand-in that an annotation names, in an array or a union too; None where it has none."""
    if isinstance(annotation, StandIn):
        return annotation
    inner = getattr(annotation, "dtype", None)
    if isinstance(inner, StandIn):
        return inner
    parts = getattr(annotation, "__args__", ()) if not isinstance(annotation, type) else ()
    return next((p for p in parts or () if isinstance(p, StandIn)), None)


class StandInModule(types.ModuleType):
    """A module that the engine has not, with all the names that it is asked for."""

    def __init__(self, name: str, feature: str, help: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__dict__["_missing"] = (feature, help)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        within = self.__name__.partition(".")[2]
        return make_stand_in(f"{within}.{name}", *self.__dict__["_missing"])


class FormerModule(StandInModule):
    """A module that was public in Warp once: what the engine has itself is there, too.

    Older programs call `wp.context.init()` and `wp.build.clear_kernel_cache()`.
    """

    def __getattr__(self, name: str) -> Any:
        if name in ENGINE.__all__:
            found = getattr(ENGINE, name)
            if not isinstance(found, (StandIn, StandInModule)):
                return found
        return super().__getattr__(name)
