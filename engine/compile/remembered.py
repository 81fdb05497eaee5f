"""Facts and code locations of kernels that an earlier process compiled.

The IR stands in it as text (`written`), for whatever asks for more: derivatives, checks, a kernel
whose code is gone from the cache. So a kernel means what it meant when it was found, whatever
becomes of what it captured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, overload

from engine.compile.backend import Backend, Entry
from engine.compile.facts import Facts
from engine.diagnostics import Span
from engine.lang.structs import Argument, UserType
from engine.lang.types import BY_NAME, ArrayType, MatrixType, ScalarType, Type, VectorType

if TYPE_CHECKING:
    from engine.ad.threads import Collected
    from engine.compile.pipeline import Variants
    from engine.compile.threads import Threads
    from engine.ir.nodes import Function, Message

_NAMES = ("read", "written", "updated", "read_again", "rewritten", "replayed", "needed",
          "differentiable")  # fmt: skip
_ANSWERS = 64  # of one kernel
_LONGEST = 1 << 20  # characters of what the threads of a form touch
# The user's types of a kernel's parameters, by name: what a text cannot hold of structs.
Given = Mapping[str, UserType]


class Damaged(Exception):
    """A text that is not what was written."""


class Answers:
    """What was worked out of a kernel's IR, by questions: lists of words and sets of names.

    save: keeps them for later processes; None for a kernel that is not kept.
    """

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}
        self.save: Callable[[], None] | None = None
        # Whether what is compiled now is compiled as the kernel was that is kept.
        self.holds: Callable[[], bool] = bool

    def get(self, question: Sequence[object], kind: type) -> Any:
        """The answer, if it is of a kind; None where nobody has asked."""
        found = self.said.get(_question(question))
        return found if type(found) is kind else None

    def put(self, question: Sequence[object], answer: object) -> None:
        """Notes an answer."""
        if len(self.said) < _ANSWERS:
            self.said[_question(question)] = answer
            if self.save is not None:
                self.save()


def _question(words: Sequence[object]) -> str:
    return repr([sorted(w) if isinstance(w, frozenset) else w for w in words])


class Form:
    """A form of a kernel that was compiled: where its code is, and what its threads do.

    said: as `form_of` wrote it. Raises Damaged.
    """

    def __init__(self, said: dict[str, Any]) -> None:
        self.most: int | None = _of(said["most"], int, type(None))
        self.ends_soon = _of(said["soon"], bool)
        self._code, self._symbol = _of(said["code"], str), _of(said["symbol"], str)
        self._says, self._touches = _of(said["says"], bool), _of(said["touches"], str)
        self.params = tuple((_of(name, str), type_of(t)) for name, t in _of(said["params"], list))
        self.adjoints = _pairs(said["adjoints"])

    def collected(self) -> Collected:
        """What its threads touch."""
        from engine.ad.threads import Collected
        from engine.compile.written import read

        return read(self._touches, Collected, {})

    def entry(
        self, backend: Backend, threads: Threads, ir: Callable[[], Function], bound: bytes = b""
    ) -> Entry | None:
        """The compiled form; None where it is not in the cache any more."""
        found = backend.load(self._code, self._symbol)
        if found is None:
            return None
        said = _Messages(ir) if self._says else ()
        return Entry(found.symbol, found.code, said, bound, threads, found.key)


class Remembered:
    """One kernel. form: as written. Methods raise Damaged for a text that was tampered with."""

    def __init__(self, said: dict[str, Any], given: Given) -> None:
        self.said = said
        self.facts = _facts(said, given)
        self.form = Form(said["form"])
        self.answers = Answers()
        self.answers.said = _of(said["answers"], dict)
        self._ir = _of(said["ir"], str)
        self._given = given

    def ir(self) -> Function:
        """The kernel as lowered."""
        from engine.compile.written import read
        from engine.ir.nodes import Function
        from engine.ir.verify import VerifyError, verify

        found = read(self._ir, Function, self._given)
        try:
            verify(found)
        except (VerifyError, AttributeError, LookupError, TypeError, ValueError):
            raise Damaged from None
        return found


class _Messages(Sequence["Message"]):
    """Those of a kernel, looked for in its IR when there are any to be told."""

    def __init__(self, ir: Callable[[], Function]) -> None:
        self._ir = ir

    def _all(self) -> tuple[Message, ...]:
        from engine.ir.messages import messages_of

        return messages_of(self._ir())

    @overload
    def __getitem__(self, k: int) -> Message: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Message]: ...
    def __getitem__(self, k: int | slice) -> Message | Sequence[Message]:
        return self._all()[k]

    def __len__(self) -> int:
        return len(self._all())

    def __iter__(self) -> Iterator[Message]:
        return iter(self._all())


def said_of(variants: Variants, entry: Entry, given: Given) -> dict[str, Any] | None:
    """What is to be kept of a kernel as written that was compiled; None for what cannot be."""
    from engine.compile.written import NotWritten, write
    from engine.ir.nodes import Function

    facts = variants.facts
    form = form_of(variants.ir, entry)
    if form is None or facts.tables:
        return None
    try:
        said = {
            "name": facts.name,
            "span": _place(facts.span),
            "params": [[name, type_data(t)] for name, t in facts.params],
            "arguments": [_argument(a, given) for a in facts.arguments],
            "apart": [list(pair) for pair in facts.apart],
            **{name: sorted(getattr(facts, name)) for name in _NAMES},
            "form": form,
            "answers": variants.answers.said,
            "ir": write(variants.ir, Function, given),
        }
        again = Remembered(json.loads(json.dumps(said)), given)
        same = again.facts == facts and str(again.ir()) == str(variants.ir)
    except (NotWritten, Damaged, LookupError, TypeError, ValueError):
        return None
    return said if same else None


def form_of(fn: Function, entry: Entry) -> dict[str, Any] | None:
    """A compiled form as plain data; None for what cannot be kept."""
    from engine.ad.threads import Collected
    from engine.compile.written import NotWritten, write

    if not entry.key or entry.threads is None:
        return None
    try:
        touches = write(entry.threads.collected, Collected, {})
    except NotWritten:
        return None
    if len(touches) > _LONGEST:
        return None
    said = {
        "code": entry.key,
        "symbol": entry.symbol,
        "says": bool(entry.messages),
        "params": [[p.name, type_data(p.type)] for p in fn.params],
        "adjoints": [list(pair) for pair in fn.adjoints],
        "most": entry.threads.most,
        "soon": entry.threads.ends_soon,
        "touches": touches,
    }
    try:
        again = Form(json.loads(json.dumps(said)))
        same = again.collected() == entry.threads.collected
    except (Damaged, LookupError, TypeError, ValueError):
        return None
    return said if same else None


def read(text: str, given: Given) -> Remembered | None:
    """What `said_of` gave, as JSON; None where it is something else."""
    try:
        return Remembered(_of(json.loads(text), dict), given)
    except (Damaged, ValueError, KeyError, TypeError, RecursionError):
        return None


def _facts(said: dict[str, Any], given: Given) -> Facts:
    names = {name: frozenset(_of(x, str) for x in _of(said[name], list)) for name in _NAMES}
    return Facts(
        _of(said["name"], str), _span(said["span"]),
        tuple((_of(name, str), type_of(t)) for name, t in _of(said["params"], list)),
        tuple(Argument(_of(name, str), given[name] if t is None else type_of(t))
              for name, t in _of(said["arguments"], list)),
        (),
        _pairs(said["apart"]),
        **names,
    )  # fmt: skip


def _pairs(data: Any) -> tuple[tuple[str, str], ...]:
    return tuple((_of(a, str), _of(b, str)) for a, b in _of(data, list))


def _argument(a: Argument, given: Given) -> list[Any]:
    from engine.compile.written import NotWritten

    plain = isinstance(a.type, (ScalarType, VectorType, MatrixType, ArrayType))
    if not plain and given.get(a.name) != a.type:
        raise NotWritten
    return [a.name, type_data(cast(Type, a.type)) if plain else None]


def _place(span: Span) -> list[Any]:
    return [span.file, span.line, span.col, span.end_line, span.end_col]


def _span(data: Any) -> Span:
    file, *numbers = _of(data, list)
    line, col, end_line, end_col = (_of(x, int) for x in numbers)
    return Span(_of(file, str), line, col, end_line, end_col)


def type_data(t: Type) -> str:
    """A type as text, which is read once for all that have it."""
    if isinstance(t, ScalarType):
        return t.name
    if isinstance(t, VectorType):
        return f"vector {t.scalar.name} {t.length} {t.tag}"
    if isinstance(t, MatrixType):
        return f"matrix {t.scalar.name} {t.rows} {t.cols}"
    return f"array {t.ndim} {type_data(t.element)}"


def type_of(data: Any) -> Type:
    """A type from its text. Raises Damaged, and what comes of other data."""
    found = _TYPES.get(_of(data, str))
    if found is None:
        if len(_TYPES) >= _MANY:
            _TYPES.clear()
        found = _TYPES[data] = _read_type(data)
    return found


_TYPES: dict[str, Type] = {}  # by their texts
_MANY = 256


def _read_type(text: str) -> Type:
    if text in BY_NAME:
        return BY_NAME[text]
    kind, first, rest = text.split(" ", 2)
    if kind == "array":
        element = _read_type(rest)
        if isinstance(element, ArrayType):
            raise Damaged
        return ArrayType(element, _size(first, 4))
    size, _, more = rest.partition(" ")
    if kind == "vector" and more in ("", "quat", "transform"):
        tag = cast(Literal["", "quat", "transform"], more)
        return VectorType(BY_NAME[first], _size(size, 1 << 20), tag)
    if kind == "matrix":
        return MatrixType(BY_NAME[first], _size(size, 1 << 20), _size(more, 1 << 20))
    raise Damaged


def _size(x: str, most: int) -> int:
    if not (x.isascii() and x.isdigit() and int(x) <= most):  # vectors may have no components
        raise Damaged
    return int(x)


def _of(x: Any, *kinds: type) -> Any:
    if type(x) not in kinds:
        raise Damaged
    return x
