"""A text for a kernel's meaning, equal for two kernels exactly if they lower alike.

It is made without a look at the syntax: of every word in the text of a kernel, and in the texts of
the functions that it leads to, it says what the word stands for outside of the function. That is
more than lowering reads. What cannot be told in words (an array, an object of the program's own) is
noted as such, so whoever lowered a kernel can ask whether the text covers what was read.
"""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import BuiltinFunctionType, CodeType, FunctionType, GenericAlias, ModuleType
from typing import Any

import numpy as np

from engine.frontend.functions.gradient import Gradient
from engine.frontend.functions.native_function import NativeFunc
from engine.frontend.functions.user_function import OPERATORS, UserFunc
from engine.frontend.parsing.captures import Captures
from engine.frontend.parsing.scope import MISSING, Scope, is_engine
from engine.frontend.parsing.text import FUTURE, FunctionText
from engine.hashing import is_whole
from engine.itself import ENGINE, is_of_engine, loaded
from engine.lang.definition import Definition
from engine.lang.generics import Pattern, pattern_of
from engine.lang.references import Reference
from engine.lang.stand_ins import StandIn
from engine.lang.structs import IndexedArrayType, StructArrayType, StructType, TupleType
from engine.lang.types import ArrayType, MatrixType, ScalarType, VectorType

_PLAIN = (int, float, bool, str, type(None), complex, bytes, type(...))
_VALUES = (ScalarType, VectorType, MatrixType)
_TYPES = (*_VALUES, ArrayType, StructType, StructArrayType, IndexedArrayType, TupleType)
_WORD = re.compile(r"[^\W\d]\w*")
_PATH = re.compile(r"[A-Za-z_][\w.]*")
# What these packages define is told by their versions.
_KNOWN = ("builtins", "math", "numpy", "typing", "engine")
_ALWAYS = ("config", "types")  # modules of the engine that each program has loaded
_DEEPEST = 8
_LONGEST = 64  # items of a table that are looked at
_UNKNOWN = ("?",)
_PLAIN_KINDS = (type, ModuleType, enum.EnumMeta)


class Unclear(Exception):
    """A kernel whose meaning cannot be told: there is no text, for example."""


class Meaning:
    """Of one kernel, as it is now. parts: all of it, in plain tuples. Raises Unclear.

    types: of the parameters of a generic kernel's instance.
    """

    def __init__(
        self, func: Callable[..., Any], text: FunctionText | None, types: Sequence[object] = ()
    ) -> None:
        self.parts: list[object] = []
        self._numbers: dict[int, int] = {}
        self._structs: dict[int, int] = {}
        self._todo: list[tuple[Any, FunctionText | None]] = []
        self._alive: list[object] = []  # what numbers by identity belong to
        self._engines: set[int] = set()
        # Whether words and members were told: by function or object, and name.
        self._told: dict[tuple[int, str], bool] = {}
        self._blocks: dict[int, str] = {}
        self._notes: set[tuple[int, str]] = set()  # annotations as text, by function
        self._unknown = 0
        self._function(func, text)
        self.parts.append(tuple(self._type(t) for t in types))
        for function, its in self._todo:  # grows
            self.parts.append(self._told_function(function, its))

    def covers(self, captures: Iterable[Captures]) -> bool:
        """Whether it tells everything that lowering read from Python."""
        return all(
            c.closed and _is_whole(c.text, self._blocks.get(id(c.owner), ""))
            and all(self._covers(c.owner, key) for key in c.keys)
            for c in captures
        )  # fmt: skip

    def _covers(self, owner: object, key: Any) -> bool:
        if key[0] == "name":
            return self._told.get((id(owner), key[1]), False)
        if key[0] == "member":
            return self._told.get(key[1:], key[1] in self._engines)
        if key[0] != "annotation":
            return False
        if (id(owner), key[1]) in self._notes:
            return True
        if not _PATH.fullmatch(key[1]):
            return False
        obj: Any = MISSING
        for word in key[1].split("."):
            if obj is MISSING:
                found, obj = self._told.get((id(owner), word), False), Scope(owner).find(word)  # type: ignore[arg-type]
            else:
                found = self._told.get((id(obj), word), id(obj) in self._engines)
                obj = getattr(obj, word, MISSING)
            if not found or obj is MISSING:
                return False
        return True

    # ---- functions

    def _function(self, f: Any, text: FunctionText | None) -> int:
        found = self._numbers.get(id(f))
        if found is None:
            found = self._numbers[id(f)] = len(self._todo)
            self._todo.append((f, text))
        return found

    def _reached(self, f: Any) -> int:
        """A function that kernels can call, with its text."""
        if type(f) not in (UserFunc, NativeFunc) or f.library:
            raise Unclear
        return self._function(f, f.text)

    def _told_function(self, f: Any, text: FunctionText | None) -> object:
        raw = inspect.unwrap(f)
        if _is_signed(f):
            raise Unclear
        lines = None if text is None else text.lines
        if not isinstance(raw, FunctionType) or text is None or lines is None:
            raise Unclear
        code = raw.__code__
        block = _block(lines, code)
        notes = getattr(raw, "__annotations__", {})
        texts = [block, *(x for x in notes.values() if isinstance(x, str))]
        words = {*_words("\n".join(texts)), *_OPERATORS}
        scope, seen = Scope(raw), _Seen(words)
        around: dict[str, object] = {}
        own, at = _own(code), id(raw)
        engine = vars(ENGINE)
        for word in seen.words:
            before, value = self._unknown, scope.find(word)
            if value is MISSING and word in engine:
                value = _of_engine(ENGINE, word)
            if value is not MISSING:
                # What hides behind a variable is hardly ever read.
                found = self._nothing() if word in own else self._value(value, seen, 0)
                around[word] = found
            self._told[at, word] = before == self._unknown
        self._alive.append(raw)
        self._blocks[id(raw)] = block
        names = raw.__globals__.get("__name__")
        return (
            text.file, code.co_firstlineno, raw.__name__, raw.__qualname__, raw.__module__,
            str(names), code.co_flags & FUTURE, block, tuple(around.items()),
            tuple((k, self._note(v, scope, seen)) for k, v in notes.items()),
            self._clear(raw.__defaults__, seen), self._clear(raw.__kwdefaults__, seen),
            tuple((at, self._clear(v, seen)) for at, v in sorted(text.statics.items(), key=repr)),
            self._custom(f),
        )  # fmt: skip

    def _custom(self, f: Any) -> object:
        """What a function has besides its text."""
        if not isinstance(f, UserFunc):
            return None
        own = [g if g is None else self._reached(g) for g in (f.grad_func, f.replay_func)]
        native = f.snippets if isinstance(f, NativeFunc) else None
        snippets = native and (native.forward, native.adjoint, native.replay)
        if not all(map(is_whole, filter(None, snippets or ()))):
            raise Unclear  # what the files contain, nobody here knows
        return f.name, [self._reached(o) for o in f.overloads], own, snippets

    def _note(self, note: Any, scope: Scope, seen: _Seen) -> object:
        for _ in range(2):
            if isinstance(note, str):
                try:
                    value = scope._evaluate(note)
                except Exception:
                    raise Unclear from None
                self._notes.add((id(scope.captures.owner), note))
                note = value
        return self._clear(note, seen)

    def _clear(self, value: object, seen: _Seen) -> object:
        """A value that is read, whatever the text says."""
        before = self._unknown
        out = self._value(value, seen, 0)
        if before != self._unknown:
            raise Unclear
        return out

    # ---- what words stand for

    def _value(self, obj: Any, seen: _Seen, depth: int) -> object:
        kind = type(obj)
        if kind in _PLAIN:
            return kind.__name__, repr(obj)
        if depth > _DEEPEST:
            return self._nothing()
        if isinstance(obj, UserFunc):
            return "function", self._reached(obj)
        if isinstance(obj, Definition):
            return ("kernel",)  # which no kernel can do anything with
        if kind is Gradient:
            return "grad", self._value(obj.target, seen, depth + 1)
        if isinstance(obj, ModuleType):
            return self._module(obj, seen, depth)
        if isinstance(obj, StandIn):
            return self._nothing()
        if isinstance(obj, enum.Enum):
            return self._member_of_enum(obj, seen, depth)
        if isinstance(obj, np.generic) and not obj.dtype.hasobject:
            return "numpy", obj.dtype.str, obj.tobytes().hex()
        if isinstance(obj, type):
            return self._class(obj, seen, depth)
        if isinstance(obj, (tuple, list)):
            if len(obj) > _LONGEST or kind not in (tuple, list):
                return self._nothing()
            return kind.__name__, tuple(self._value(x, seen, depth + 1) for x in obj)
        if kind is dict:
            if len(obj) > _LONGEST or not all(type(k) in (str, int) for k in obj):
                return self._nothing()
            return "dict", tuple((k, self._value(x, seen, depth + 1)) for k, x in obj.items())
        found = self._of_language(obj, seen, depth)
        return self._nothing() if found is None else found

    def _of_language(self, obj: Any, seen: _Seen, depth: int) -> object:
        """Values, types and functions of the language; None for all else."""
        cls = type(obj)
        ours = is_of_engine(cls)
        t = getattr(cls, "__ir_type__", None)
        if isinstance(t, _VALUES) and ours:
            return "value", self._type(t), cls.__qualname__, repr(np.asarray(obj).tolist())
        if isinstance(t, StructType):
            own = [(name, self._value(getattr(obj, name), seen, depth + 1)) for name in t.fields]
            return "struct", self._type(t), tuple(own)
        if isinstance(obj, (BuiltinFunctionType, FunctionType, np.ufunc)):
            return _by_name(obj)
        if isinstance(obj, np.dtype) and not obj.hasobject:
            return "dtype", obj.str
        if isinstance(obj, Reference):
            return "ref", self._value(obj.dtype, seen, depth + 1)
        if isinstance(obj, GenericAlias) and obj.__origin__ is tuple:
            return "tuple of", tuple(self._value(x, seen, depth + 1) for x in obj.__args__)
        if ours and isinstance(getattr(obj, "__builtin_name__", None), str):
            return "builtin", cls.__qualname__, obj.__builtin_name__
        if ours and isinstance(getattr(obj, "__ir_type__", None), _TYPES):
            return "of type", cls.__qualname__, self._type(obj.__ir_type__)
        if isinstance(obj, _TYPES):
            return "type", self._type(obj)
        if ours or cls.__module__ in ("typing", "collections.abc", "types"):
            pattern = pattern_of(obj)
            if pattern is not None and _is_plain(pattern):
                return "pattern", repr(pattern)
        return None

    def _nothing(self) -> object:
        self._unknown += 1
        return _UNKNOWN

    def _module(self, m: ModuleType, seen: _Seen, depth: int) -> object:
        if seen.known(m):
            return "module", m.__name__
        self._alive.append(m)
        inside, out = vars(m), []
        engine = is_engine(m)
        if engine:
            self._engines.add(id(m))
        for word in seen.words:
            value = inside.get(word, MISSING)
            if engine and value is not MISSING:
                value = _of_engine(m, word)
            if value is not MISSING:
                out.append((word, self._member(m, word, value, seen, depth)))
        return "module", m.__name__, tuple(out)

    def _class(self, cls: type, seen: _Seen, depth: int) -> object:
        t = getattr(cls, "__ir_type__", None)
        said: object = self._type(t) if isinstance(t, _TYPES) else _by_name(cls)
        if said is not None and not isinstance(t, StructType):
            return "class", cls.__qualname__, said
        if seen.known(cls):
            return "class", cls.__qualname__, self._number(cls)
        self._alive.append(cls)
        inside: Mapping[str, Any]
        if issubclass(cls, enum.Enum):
            inside = cls.__members__
        else:
            inside = {k: v for base in cls.__mro__[-2::-1] for k, v in vars(base).items()}
        out = tuple((w, self._member(cls, w, inside[w], seen, depth))
                    for w in seen.words if w in inside)  # fmt: skip
        return "class", cls.__module__, cls.__qualname__, self._number(cls), said, out

    def _member_of_enum(self, obj: enum.Enum, seen: _Seen, depth: int) -> object:
        cls, before = type(obj), self._unknown
        value = self._value(obj.value, seen, depth + 1)
        if isinstance(obj, int):  # it counts as such
            value = value, int(obj)
        self._alive.append(obj)
        self._told[id(obj), "value"] = before == self._unknown
        self._told[id(obj), "name"] = True
        return "enum", cls.__module__, cls.__qualname__, self._number(cls), obj.name, value

    def _member(self, owner: object, word: str, value: object, seen: _Seen, depth: int) -> object:
        before = self._unknown
        own = isinstance(owner, type) and not isinstance(value, (enum.Enum, type, UserFunc))
        if (own and hasattr(type(value), "__get__")) or not _is_looked_up(owner, word):
            value = object()  # what asks for it gets something else
        out = self._value(value, seen, depth + 1)
        self._told[id(owner), word] = before == self._unknown
        self._unknown = before  # who reads the owner has not read all that is in it
        return out

    # ---- types

    def _type(self, t: Any) -> object:
        if isinstance(t, StructType):
            new = id(t) not in self._structs
            number = self._structs.setdefault(id(t), len(self._structs))
            self._alive.append(t)
            if not new:
                return "struct", number
            fields = tuple((k, self._type(x), t.offsets[k]) for k, x in t.fields.items())
            return "struct", number, t.name, fields, tuple(t.missing), t.size, t.align
        if isinstance(t, (StructArrayType, IndexedArrayType)):
            return type(t).__name__, self._type(t.element), t.ndim
        if isinstance(t, TupleType):
            return "tuple", tuple(self._type(x) for x in t.items)
        return str(t)

    def _number(self, obj: object) -> int:
        """Tells classes apart that have one name."""
        self._alive.append(obj)
        return self._structs.setdefault(id(obj), len(self._structs))


class _Seen:
    """The words of a function, and the modules and classes that were looked at for them."""

    def __init__(self, words: set[str]) -> None:
        self.words = sorted(words)
        self._known: set[int] = set()

    def known(self, obj: object) -> bool:
        known = id(obj) in self._known
        self._known.add(id(obj))
        return known


def _of_engine(engine: ModuleType, word: str) -> object:
    """What stands in the engine under a name, if a program has put it there; modules too."""
    value = vars(engine).get(word, MISSING)
    if isinstance(value, ModuleType) and value.__name__.startswith("engine."):
        return value if word in _ALWAYS else MISSING  # others are there when something asked
    if value is MISSING:
        return value
    places = [loaded("engine.public"), loaded(ENGINE._LATE.get(word, ""))]
    if any(getattr(p, word, MISSING) is value for p in places if p is not None):
        return MISSING
    stubs: Any = loaded("engine.builtins.stubs")
    return MISSING if stubs and stubs.BUILTINS.get(word, MISSING) is value else value


def _is_looked_up(owner: object, word: str) -> bool:
    """Whether a module or class gives what is in it: nothing of its own kind comes in between."""
    kind = type(owner)
    if kind in _PLAIN_KINDS:
        return True
    base = type if isinstance(owner, type) else ModuleType
    return kind.__getattribute__ is base.__getattribute__ and not any(
        word in vars(c) for c in kind.__mro__ if c not in (*_PLAIN_KINDS, object)
    )


def _words(text: str) -> Iterable[str]:
    """The words of a text as Python has them as names: letters may be written in several ways."""
    found = _WORD.findall(text)
    if text.isascii():
        return found
    import unicodedata

    return [unicodedata.normalize("NFKC", word) for word in found]


_OPERATORS = frozenset(_words("\n".join(OPERATORS.values())))


def _by_name(obj: Any) -> object:
    """A function or class of a package whose version is known; None for others."""
    module = getattr(obj, "__module__", None)
    name = getattr(obj, "__qualname__", None) or getattr(obj, "__name__", "")
    if isinstance(obj, np.ufunc):
        module, name = "numpy", obj.__name__
    if not isinstance(module, str) or module.partition(".")[0] not in _KNOWN:
        return None
    if module.partition(".")[0] == "engine" and not is_of_engine(obj):
        return None
    found: Any = sys.modules.get(module)
    for part in str(name).split("."):
        found = getattr(found, part, None)
    return ("known", module, name) if found is obj else None


def _is_plain(pattern: Pattern) -> bool:
    return all(
        _is_plain(x) if isinstance(x, Pattern) else isinstance(x, (*_VALUES, ArrayType))
        for x in pattern.items
    )


def _is_signed(f: Any) -> bool:
    """Whether a function, or one that it wraps, says itself what its parameters are."""
    while f is not None:
        if "__signature__" in getattr(f, "__dict__", ()):
            return True
        f = getattr(f, "__wrapped__", None)
    return False


def _own(code: CodeType) -> set[str]:
    """Names that are the function's own alone."""
    outside: set[str] = set()
    todo = [code]
    while todo:
        c = todo.pop()
        outside |= {*c.co_names, *c.co_freevars}
        todo += [x for x in c.co_consts if isinstance(x, CodeType)]
    return {*code.co_varnames, *code.co_cellvars} - outside


def _block(lines: Sequence[str], code: CodeType) -> str:
    """The text of a function: what lowering reads, or less where it cannot be cut out so."""
    start = code.co_firstlineno - 1
    if start >= len(lines):
        raise Unclear
    edge, last = _indentation(lines[start]), start
    todo = [code]
    while todo:
        c = todo.pop()
        last = max(last, *(at - 1 for _, _, at in c.co_lines() if at is not None))
        todo += [x for x in c.co_consts if isinstance(x, CodeType)]
    for at in range(last + 1, len(lines)):
        line = lines[at]
        if line.strip() and not line.lstrip().startswith("#") and _indentation(line) <= edge:
            return "".join(lines[start:at]).rstrip()
    return "".join(lines[start:]).rstrip()


def _is_whole(read: str, block: str) -> bool:
    """Whether a block begins with the lines that were read, and there is nothing else in it."""
    if not read or not block.startswith(read.rstrip()):
        return False
    rest = block[len(read.rstrip()) :].splitlines()
    return all(not x.strip() or x.lstrip().startswith("#") for x in rest)


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))
