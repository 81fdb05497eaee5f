"""Converts frozen dataclasses to strict JSON and back, and validates their types.

NaN and infinities travel as the strings "nan", "inf" and "-inf". A fact travels with the name of
its class. Reading builds only the dataclasses named by the annotations and the engine's classes of
facts: no text can make it run anything.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

from adtool.fitting import Unfit, fit, hints_of
from adtool.indented import indented
from engine.autograd import Fact, fact_named
from engine.characters import of_json

T = TypeVar("T")

_TIMES, _LEAST = 16, 32 << 20  # of a text's size, and bytes: what its data may take
_CLASS = "class"  # no field has that name
_DEPTH = 3000  # frames; a few hundred bytes of the machine's stack each

_PLAIN = {int, str, bool, NoneType}
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class CodecError(ValueError):
    """The text is no strict JSON, or does not have the expected form."""


def dumps(value: object, indent: int | None = None, lines: frozenset[str] = frozenset()) -> str:
    """Strict JSON (ASCII) of a dataclass or of plain data, keys in the order of the fields.

    lines: names of fields of which each item is one line, where there is an indentation.
    """
    with _deep():
        data = encode(value, {})
        if indent is None:
            return json.dumps(data, allow_nan=False)
        return of_json(indented(data, indent, lines))


def loads(kind: type[T], text: str) -> T:
    """The value of type `kind` written in `text`.

    Unknown keys are ignored, missing ones take the field's default.

    Raises:
        CodecError: naming the place in the text that does not fit.
    """
    value: T = decode(kind, parse(text, kind))
    return value


def parse(text: str, kind: Any = None) -> Any:
    """Plain data of strict JSON, in at most 16 times the text's memory (32 MiB at least).

    kind: of what type it is to be. A large text that is not is refused before it takes any.

    Raises:
        CodecError: it is none, or so little of it is text that its data would take more.
    """
    if kind is not None and len(text) > _LEAST // _TIMES:
        _require(kind, text)
    # Of each container and comma, what Python's objects take at most.
    parts = 240 * text.count("{") + 96 * text.count("[") + 40 * text.count(",")
    if parts > max(_LEAST, _TIMES * len(text)):
        raise CodecError("not usable JSON: it consists of brackets only")
    try:
        with _deep():
            return json.loads(text, parse_constant=_no_constant)
    except CodecError:
        raise
    except json.JSONDecodeError as error:
        raise CodecError(f"not JSON: {error}") from None
    except RecursionError:
        raise CodecError("not JSON: it is nested too deeply") from None
    except ValueError:  # integers of thousands of digits
        raise CodecError("not JSON: a number is too long") from None
    except MemoryError:
        raise CodecError("there is not enough memory for it") from None


def _require(kind: Any, text: str) -> None:
    try:
        with _deep():
            fit(kind, text)
    except Unfit as found:
        raise CodecError(_placed(found.path, found.what)) from None
    except RecursionError:
        raise CodecError("not JSON: it is nested too deeply") from None


@contextmanager
def _deep() -> Iterator[None]:
    """Lets data be nested as deeply as kernels are: a long `elif` nests once for each branch."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def brief(value: object) -> str:
    """The same as `dumps`, without fields that hold their defaults: for results on their way."""
    with _deep():
        data = encode(value, {}, brief=True)
        return json.dumps(data, separators=(",", ":"), allow_nan=False, check_circular=False)


def encode(value: object, known: dict[int, list[Any]] | None = None, brief: bool = False) -> Any:
    """Plain JSON data (dict, list, str, int, float, bool, None) of a value.

    known: the data of tuples that came, by identity: those that come again are not encoded again.
    None to have data that share nothing. brief: fields that hold their defaults are left out.
    """
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if kind is float and math.isfinite(value):  # type: ignore[arg-type]
        return value
    if (own := _fields(kind)) is not None:
        out: dict[str, Any] = {_CLASS: kind.__name__} if isinstance(value, Fact) else {}
        for name, default in own:
            if not brief:
                out[name] = encode(getattr(value, name), known)
                continue
            x = getattr(value, name)
            if x is not default and (type(x) is not type(default) or x != default):
                # Most are plain: a call for each would take as long again.
                out[name] = x if type(x) in _PLAIN else encode(x, known, brief)
        return out
    if isinstance(value, (tuple, list)):
        if set(map(type, value)) <= _PLAIN:
            return list(value)
        if known is None:
            return [encode(v) for v in value]
        found = known.get(id(value))
        if found is None:
            found = known[id(value)] = [encode(v, known, brief) for v in value]
        return found
    if isinstance(value, dict):
        return {str(k): encode(v, known, brief) for k, v in value.items()}
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if hasattr(value, "item"):  # a scalar of numpy
        return encode(value.item(), known, brief)
    raise TypeError(f"{kind.__name__} has no JSON form")


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any], ...] | None:
    """The fields of a dataclass and their defaults; None for other types."""
    return tuple((f.name, f.default) for f in fields(kind)) if is_dataclass(kind) else None


def decode(kind: Any, data: Any) -> Any:
    """The value of the annotated type `kind` that `data` (from JSON) stands for.

    Raises:
        CodecError: naming the place in the data that does not fit.
    """
    try:
        with _deep():
            return _decoder(kind)(data)
    except Unfit as found:
        raise CodecError(_placed(found.path, found.what)) from None
    except RecursionError:
        raise CodecError("$: it is nested too deeply") from None
    except MemoryError:
        raise CodecError("there is not enough memory for it") from None


def prepare(kind: Any) -> None:
    """Looks up the types of a dataclass's fields, and of theirs, before its values are read."""
    todo: list[Any] = [kind]
    seen: set[Any] = set()
    while todo:
        found = todo.pop()
        todo += get_args(found)
        if found not in seen and _fields(found) is not None:
            seen.add(found)
            todo += hints_of(found).values()


def _placed(path: list[str], what: str) -> str:
    place = "".join(reversed(path))
    place = place if len(place) <= 200 else f"{place[:100]}...{place[-97:]}"
    return f"${place}: {what}"


Decoder = Callable[[Any], Any]


@cache
def _decoder(kind: Any) -> Decoder:
    """What reads values of a type. Raises Unfit."""
    if is_dataclass(kind):
        return _of_dataclass(kind)
    if kind is Fact:
        return _fact
    origin = get_origin(kind)
    if origin is Literal:
        return _of_literal(get_args(kind))
    if origin in (Union, UnionType):
        return _of_optional(get_args(kind))
    if origin is tuple:
        return _of_tuple(get_args(kind))
    if kind is float:
        return _float
    if kind in (int, str, bool, NoneType):
        return _of_plain(kind)
    raise TypeError(f"no decoder for {kind!r}")


def _of_plain(kind: type) -> Decoder:
    def decoded(data: Any) -> Any:
        if type(data) is not kind:  # `True` is an int to Python, not to JSON
            _fail(kind.__name__, data)
        return data

    return decoded


def _of_literal(words: tuple[Any, ...]) -> Decoder:
    def decoded(data: Any) -> Any:
        if isinstance(data, (bool, list, dict)) or data not in words:
            _fail(f"one of {', '.join(map(repr, words))}", data)
        return data

    return decoded


def _of_dataclass(kind: Any) -> Decoder:
    hints = hints_of(kind)
    required = [
        f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING
    ]
    inner: dict[str, Decoder] = {}  # made when it is first needed: types may name themselves

    def decoded(data: Any) -> Any:
        if type(data) is not dict:
            _fail("an object", data)
        if not inner:
            inner.update((f.name, _decoder(hints[f.name])) for f in fields(kind))
        values = {}
        name = ""
        try:
            for name, read in inner.items():
                if name in data:
                    values[name] = read(data[name])
        except Unfit as found:
            found.path.append(f".{name}")
            raise
        for name in required:
            if name not in values:
                raise Unfit(f"`{name}` is missing")
        return kind(**values)

    return decoded


def _fact(data: Any) -> Any:
    name = data.get(_CLASS) if type(data) is dict else None
    kind: Any = fact_named(name) if isinstance(name, str) else None
    if kind is None:
        _fail("a fact", data if name is None else name)
    read: Decoder = _decoder(kind)
    return read(data)


def _of_optional(options: tuple[Any, ...]) -> Decoder:
    rest = [o for o in options if o is not NoneType]
    if len(rest) != 1:
        raise TypeError(f"no decoder for a union of {options!r}")
    read = _decoder(rest[0])
    return lambda data: None if data is None else read(data)


def _of_tuple(items: tuple[Any, ...]) -> Decoder:
    if len(items) == 2 and items[1] is Ellipsis:
        return _of_many(items[0])
    every = [_decoder(k) for k in items]

    def decoded(data: Any) -> Any:
        if type(data) is not list or len(data) != len(every):
            _fail(f"a list of {len(every)}", data)
        return tuple(_at(i, read, v) for i, (read, v) in enumerate(zip(every, data, strict=True)))

    return decoded


def _of_many(item: Any) -> Decoder:
    read, plain = _decoder(item), {item} if item in (int, str) else set()

    def decoded(data: Any) -> Any:
        if type(data) is not list:
            _fail("a list", data)
        if set(map(type, data)) <= plain:
            return tuple(data)  # most of what is read, and fast
        return tuple(_at(i, read, v) for i, v in enumerate(data))

    return decoded


def _at(place: int, read: Decoder, data: Any) -> Any:
    try:
        return read(data)
    except Unfit as found:
        found.path.append(f"[{place}]")
        raise


def _float(data: Any) -> float:
    if type(data) is float and math.isfinite(data):
        return data
    if isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if isinstance(data, bool) or not isinstance(data, (int, float)):
        _fail("a number", data)
    try:
        value = float(data)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        _fail("a finite number", data)
    return value


def _no_constant(name: str) -> NoReturn:
    raise CodecError(f"{name} is not strict JSON")


def _fail(expected: str, got: Any) -> NoReturn:
    if isinstance(got, (list, dict)):  # may be all of a large text
        kind = "a list" if isinstance(got, list) else "an object"
        raise Unfit(f"expected {expected}, got {kind} of {len(got)}")
    if isinstance(got, int) and got.bit_length() > 100:
        raise Unfit(f"expected {expected}, got a number of {got.bit_length()} bits")
    shown = repr(got[:40] if isinstance(got, str) else got)
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    raise Unfit(f"expected {expected}, got {shown}")
