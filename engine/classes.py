"""Dataclasses that are built on first use, for a short start-up.

`dataclass` here is that of `dataclasses`, but for when its work is done: a method is written when
it is first called, so that a program pays for the classes that it makes objects of, and not for
the hundreds that it imports. To `fields`, `replace`, `is_dataclass` and `match`, and where one
inherits from the other, the classes are like those of `dataclasses`.

What nobody here needs is missing: order, unsafe hashes, fields that are no positional parameters,
variables of `__init__` alone, and docstrings of classes that have none.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import namedtuple
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "Protocol", "dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from typing import NamedTuple as NamedTuple
    from typing import Protocol as Protocol
else:

    class Protocol:
        """What a class has to look like: for type checkers alone, which nobody asks at run time."""

    class _Named(type):
        def __new__(cls, name: str, bases: tuple[type, ...], own: dict[str, Any]) -> type:
            if not bases:
                return type.__new__(cls, name, bases, own)
            kinds = own.pop("__annotations__", {})
            defaults = [own.pop(n) for n in kinds if n in own]
            made = namedtuple(name, kinds, defaults=defaults, module=own.pop("__module__"))
            made.__annotations__ = kinds
            for key, value in own.items():
                setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Named):
        """As that of `typing`, which compiles the text of every annotation, to no end here."""

    def dataclass(
        cls: type | None = None,
        /,
        *,
        eq: bool = True,
        repr: bool = True,
        frozen: bool = False,
        slots: bool = False,
    ) -> Any:
        """Makes a class a dataclass; see `dataclasses.dataclass`.

        Raises:
            TypeError: as there; for wrong defaults, or ValueError, when they are first looked at.
        """
        options = _Options(eq, repr, frozen, slots)
        return (lambda cls: _made(cls, options)) if cls is None else _made(cls, options)


class _Options:
    """What `dataclass` was told: the parameters of a class, as `dataclasses` calls them."""

    init = match_args = True
    order = unsafe_hash = kw_only = weakref_slot = False

    def __init__(self, eq: bool, repr: bool, frozen: bool, slots: bool) -> None:
        self.eq, self.repr, self.frozen, self.slots = eq, repr, frozen, slots


def _made(cls: Any, options: _Options) -> type:
    for base in cls.__mro__[1:]:
        known = base.__dict__.get("__dataclass_params__")
        if known is not None and known.frozen != options.frozen:
            this, that = ("non-frozen", "frozen") if known.frozen else ("frozen", "non-frozen")
            raise TypeError(f"cannot inherit {this} dataclass from a {that} one")
    kinds = {n: kind for n, kind in inspect.get_annotations(cls).items() if not _of_class(kind)}
    own = dict(cls.__dict__)
    defaults = {name: own[name] for name in kinds if name in own}
    if options.slots:
        cls = _slotted(cls, own, kinds)
        if options.frozen:
            cls.__getstate__, cls.__setstate__ = _state, _set_state
    else:
        for name, default in defaults.items():
            if isinstance(default, Field):
                if default.default is MISSING:
                    delattr(cls, name)
                else:
                    setattr(cls, name, default.default)
    cls.__dataclass_params__ = options
    cls.__dataclass_fields__ = _Fields(cls, kinds, defaults)
    if "__match_args__" not in own:
        cls.__match_args__ = _MatchArgs(cls)  # type: ignore[misc]
    if "__init__" not in own:
        cls.__init__ = _Late(cls, "__init__", _init)
    if options.repr and "__repr__" not in own:
        cls.__repr__ = _repr
    if options.eq:
        if "__eq__" not in own:
            cls.__eq__ = _Late(cls, "__eq__", _eq)
        # Python itself puts None there for a class with `__eq__`.
        if own.get("__hash__") is None and ("__eq__" in own or "__hash__" not in own):
            cls.__hash__ = _Late(cls, "__hash__", _hash) if options.frozen else None
    if options.frozen:
        for name in ("__setattr__", "__delattr__"):
            if name in own:
                raise TypeError(f"Cannot overwrite attribute {name} in class {cls.__name__}")
        cls.__setattr__, cls.__delattr__ = _guards(cls)
    return cls  # type: ignore[no-any-return]


def _of_class(kind: Any) -> bool:
    """Whether an annotation says that a name is the class's, and no field."""
    text = kind if isinstance(kind, str) else str(kind)
    return text.startswith(("ClassVar", "typing.ClassVar"))


def _slotted(cls: type, own: dict[str, Any], kinds: dict[str, Any]) -> type:
    """A class with slots for its fields, in place of one that can get none any more."""
    names = {n: v for n, v in own.items() if n not in kinds}
    for name in ("__dict__", "__weakref__"):
        names.pop(name, None)
    inherited = {s for base in cls.__mro__[1:-1] for s in base.__dict__.get("__slots__", ())}
    names["__slots__"] = tuple(name for name in kinds if name not in inherited)
    made = type(cls)(cls.__name__, cls.__bases__, names)
    made.__qualname__ = cls.__qualname__
    return made


class _Fields:
    """Stands for the fields of a class until somebody asks for them."""

    def __init__(self, cls: type, kinds: dict[str, Any], defaults: dict[str, Any]) -> None:
        self._cls, self._kinds, self._defaults = cls, kinds, defaults

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        cls: Any = self._cls
        found: dict[str, Field[Any]] = {}
        for base in cls.__mro__[-1:0:-1]:
            if "__dataclass_fields__" in base.__dict__:
                found |= base.__dataclass_fields__
        for name, kind in self._kinds.items():
            default = self._defaults.get(name, MISSING)
            field: Any = default if isinstance(default, Field) else dataclasses.field()
            if field is not default:
                field.default = default
            if field.default.__class__.__hash__ is None:
                raise ValueError(
                    f"mutable default {type(field.default)} for field {name} is not allowed: "
                    "use default_factory"
                )
            field.name, field.type, field.kw_only = name, kind, False
            field._field_type = dataclasses._FIELD  # type: ignore[attr-defined]
            found[name] = field
        cls.__dataclass_fields__ = found
        return found


class _MatchArgs:
    """Stands for the names of a class's parameters until a pattern asks for them."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> tuple[str, ...]:
        cls: Any = self._cls
        found = tuple(cls.__dataclass_fields__)
        setattr(cls, "__match_args__", found)  # noqa: B010  (mypy lets nobody set it)
        return found


# Makes a method of a class.
_Maker = Callable[[Any], Callable[..., Any]]


class _Late:
    """Stands for a method until somebody asks for it: one object, which exits have to look at."""

    __slots__ = ("_cls", "_maker", "_name")

    def __init__(self, cls: Any, name: str, maker: _Maker) -> None:
        self._cls, self._name, self._maker = cls, name, maker

    def make(self) -> Any:
        """The method, which has taken this place then."""
        cls, name = self._cls, self._name
        method = cls.__dict__[name]
        if method is self:
            method = self._maker(cls)
            method.__qualname__ = f"{cls.__qualname__}.{name}"
            method.__module__ = cls.__module__
            setattr(cls, name, method)
        return method

    def __get__(self, instance: object, owner: type) -> Any:
        return self.make().__get__(instance, owner)


def complete(*classes: type) -> None:
    """Writes the `__init__` of data classes, for which the first object of each would wait."""
    for cls in classes:
        getattr(cls.__dict__["__init__"], "make", lambda: None)()


def _written(name: str, text: str, names: dict[str, Any]) -> Callable[..., Any]:
    # Of the package, as its frames say: what calls in is looked for above them.
    space = {**names, "__name__": __name__}
    exec(text, space)
    method: Callable[..., Any] = space[name]
    return method


def _init(cls: Any) -> Callable[..., Any]:
    frozen = cls.__dataclass_params__.frozen
    names: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING}
    given = ["_self"]
    body = []
    for name, field in cls.__dataclass_fields__.items():
        value = name
        if field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            given.append(f"{name}=_default_{name}")
        elif field.default_factory is not MISSING:
            names[f"_new_{name}"] = field.default_factory
            given.append(f"{name}=_missing")
            value = f"_new_{name}() if {name} is _missing else {name}"
        elif "=" in given[-1]:
            raise TypeError(f"non-default argument {name!r} follows default argument")
        else:
            given.append(name)
        body.append(f"_set(_self, {name!r}, {value})" if frozen else f"_self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("_self.__post_init__()")
    lines = "\n ".join(body or ["pass"])
    return _written("__init__", f"def __init__({', '.join(given)}):\n {lines}\n", names)


def _tuple(of: str, names: list[str]) -> str:
    return "(" + "".join(f"{of}.{name}, " for name in names) + ")"


def _eq(cls: Any) -> Callable[..., Any]:
    names = [name for name, field in cls.__dataclass_fields__.items() if field.compare]
    text = (
        "def __eq__(self, other):\n"
        " if other.__class__ is self.__class__:\n"
        f"  return {_tuple('self', names)} == {_tuple('other', names)}\n"
        " return NotImplemented\n"
    )
    return _written("__eq__", text, {})


def _hash(cls: Any) -> Callable[..., Any]:
    names = [
        name
        for name, field in cls.__dataclass_fields__.items()
        if (field.compare if field.hash is None else field.hash)
    ]
    text = f"def __hash__(self):\n return hash({_tuple('self', names)})\n"
    return _written("__hash__", text, {})


@recursive_repr()
def _repr(self: Any) -> str:
    fields = self.__dataclass_fields__.items()
    shown = ", ".join(f"{name}={getattr(self, name)!r}" for name, field in fields if field.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _guards(cls: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """What keeps objects of a class as they are."""

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _set_state(self: Any, state: list[Any]) -> None:
    for name, value in zip(self.__dataclass_fields__, state, strict=True):
        object.__setattr__(self, name, value)
