"""What a kernel tells the host: `print`, `printf`, `assert`, and `expect_eq` and its kin.

All become messages. A test is an `if` around one, in plain operations, so that code
generators and differentiation know messages alone, which have no adjoint.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from engine.frontend.context import STMT, Context
from engine.frontend.modes import asserts
from engine.frontend.operands import BAD, Bad, Operand, Several, Value, unify
from engine.frontend.ops import apply, compare, condition, indices
from engine.frontend.typenames import type_name
from engine.ir.builder import const
from engine.ir.nodes import Atom, Message
from engine.lang.types import (
    BOOL,
    SCALARS,
    ArrayType,
    MatrixType,
    ScalarType,
    VectorType,
    is_float,
)


def _text_of(node: ast.expr) -> str | None:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else None  # type: ignore[attr-defined]


class _Text:
    """The text of a message under construction."""

    def __init__(self, cx: Context) -> None:
        self.cx = cx
        self.text = [""]
        self.formats: list[str] = []
        self.args: list[Atom] = []
        self.bad = False

    def write(self, words: str) -> None:
        self.text[-1] += words

    def value(self, node: ast.expr, form: str = "") -> None:
        """The value of an expression, or of each, where it has several."""
        got = self.cx.expr(node)
        items = got.items if isinstance(got, Several) else (got,)
        for k, item in enumerate(items):
            if k:
                self.write(" ")
            self.one(node, self.cx.one(node, item), form)

    def one(self, node: ast.expr, got: Value | Bad, form: str = "") -> None:
        if isinstance(got, Value) and isinstance(got.type, ArrayType):
            got = self.cx.error(
                "E104", node, "an array cannot be printed", "print an element: `a[i]`"
            )
        if isinstance(got, Bad):
            self.bad = True
            return
        self.args.append(got.atom)
        self.formats.append(form)
        self.text.append("")

    def formatted(self, node: ast.JoinedStr) -> None:
        """An f-string."""
        for part in node.values:
            words = _text_of(part)
            if words is not None:
                self.write(words)
                continue
            assert isinstance(part, ast.FormattedValue)
            spec = part.format_spec
            form = ""
            if isinstance(spec, ast.JoinedStr):
                fixed = [_text_of(v) for v in spec.values]
                if None in fixed or part.conversion >= 0:
                    self.cx.error("E101", part, "this format is not supported in kernels",
                                  "write a fixed format: `{x:.3f}`")  # fmt: skip
                    self.bad = True
                    continue
                form = ":" + "".join(f for f in fixed if f)
            self.value(part.value, form)

    def done(self, kind: str, thread: Atom | None = None) -> Message | None:
        if self.bad:
            return None
        return Message(
            kind,  # type: ignore[arg-type]
            tuple(self.text),
            tuple(self.formats),
            tuple(self.args),
            thread,
            self.cx.b.span,
        )


def lower_print(cx: Context, node: ast.Call) -> Operand:
    """`print(a, b, ...)`: values and strings, with blanks between, and a new line."""
    between = {"sep": " ", "end": "\n"}
    for word in node.keywords:
        given = _text_of(word.value)
        if word.arg not in between or given is None:
            return cx.error("E106", word.value, f"`print` takes no argument `{word.arg}` like this",
                            "in kernels it takes `sep` and `end`, plain strings")  # fmt: skip
        between[word.arg] = given
    text = _Text(cx)
    for k, a in enumerate(node.args):
        if k:
            text.write(between["sep"])
        words = _text_of(a)
        if words is not None:
            text.write(words)
        elif isinstance(a, ast.JoinedStr):
            text.formatted(a)
        else:
            text.value(a)
    text.write(between["end"])
    return _say(cx, text)


def _say(cx: Context, text: _Text) -> Operand:
    made = text.done("print")
    if made is None:
        return BAD
    cx.b.add(made)
    return Several(())


# %[flags][width][.precision][length]conversion
_SPEC = re.compile(r"%(?P<form>[-+ #0]*\d*(?:\.\d*)?)(?P<length>hh|h|ll|l|L|z|j|t)?(?P<kind>.)?")
_KINDS = {"d": "i", "i": "i", "u": "i", "x": "i", "X": "i", "o": "i", "c": "i",
          "f": "f", "F": "f", "e": "f", "E": "f", "g": "f", "G": "f"}  # fmt: skip
_PLAIN = {"u": "d", "i": "d"}


def lower_printf(cx: Context, node: ast.Call) -> Operand:
    """`printf(format, ...)`, with a format of C."""
    usage = f'write `{cx.api}.printf("x = %f\\n", x)`'
    form = _text_of(node.args[0]) if node.args else None
    if form is None or node.keywords:
        return cx.error("E106", node, "`printf` takes a format, a string, and values", usage)
    text = _Text(cx)
    rest = list(node.args[1:])
    at = 0
    for spec in _SPEC.finditer(form):
        text.write(form[at : spec.start()])
        at = spec.end()
        kind = spec["kind"]
        if kind == "%":
            text.write("%")
            continue
        if kind != "s" and kind not in _KINDS:
            return cx.error("E106", node.args[0], f"`{spec[0]}` is no format of a kernel's value",
                            "use %d, %u, %x, %f, %e or %g, and %% for a percent sign")  # fmt: skip
        if not rest:
            return cx.error("E109", node, f"nothing is given for `{spec[0]}`",
                            "pass as many values as the format has places")  # fmt: skip
        _place(cx, text, rest.pop(0), spec)
    text.write(form[at:])
    if rest:
        return cx.error("E109", rest[0], "the format has no place for this value",
                        "pass as many values as the format has places")  # fmt: skip
    return _say(cx, text)


def _place(cx: Context, text: _Text, node: ast.expr, spec: re.Match[str]) -> None:
    """One value at its place in a format."""
    kind, words = spec["kind"], _text_of(node)
    if kind == "s" and words is not None:
        text.write(f"%{spec['form']}s" % words)
        return
    got = cx.value(node)
    if isinstance(got, Bad):
        text.bad = True
        return
    whole = isinstance(got.type, ScalarType) and got.type.kind in "iub"
    fits = isinstance(got.type, ScalarType) and (_KINDS.get(kind, "s") == ("i" if whole else "f"))
    if kind != "s" and not fits:
        wanted = "an integer" if _KINDS[kind] == "i" else "a float"
        cx.error("E104", node, f"`{spec[0]}` prints {wanted}, but this is {type_name(got.type)}",
                 "use %d for integers and %f for floats, or convert the value")  # fmt: skip
        text.bad = True
        return
    if kind in "uxXo" and isinstance(got.type, ScalarType) and got.type.kind == "i":
        got = Value(cx.b.op("cast", got.atom, result=SCALARS[f"u{got.type.name}"]))
    text.one(node, got, "" if kind == "s" else f"%{spec['form']}{_PLAIN.get(kind, kind)}")


# ---- tests


def _thread(cx: Context) -> Atom:
    return cx.b.op("thread")


def _unless(cx: Context, holds: Atom, kind: str, text: Sequence[str | Value]) -> None:
    """A message where a condition does not hold."""
    words = _Text(cx)
    with cx.nested() as inner:
        for part in text:
            if isinstance(part, str):
                words.write(part)
            else:
                words.one(ast.Constant(0), part)
        made = words.done(kind, _thread(cx))
        assert made is not None
        inner.add(made)
    cx.branch(cx.b.op("lnot", holds), inner.block())


def lower_expect(cx: Context, node: ast.Call, name: str) -> Operand:
    """`expect_eq(a, b)`, `expect_neq(a, b)`, `expect_near(a, b, tolerance)`."""
    counts = (2, 3) if name == "expect_near" else (2,)
    if len(node.args) not in counts:
        more = ", tolerance" if name == "expect_near" else ""
        return cx.error("E109", node, f"`{name}` got {len(node.args)} arguments",
                        f"write `{cx.api}.{name}(a, b{more})`")  # fmt: skip
    got = [cx.scalar_value(a) for a in node.args]
    values = [v for v in got if isinstance(v, Value)]
    if len(values) != len(got):
        return BAD
    pair = unify(values[:2])
    if pair is None:
        return apply(cx, node, "==", values[:2])  # says that the types differ
    a, b = pair
    said: list[str | Value]
    if name == "expect_near":
        near = _near(cx, node, a, b, values[2] if len(values) > 2 else None)
        if near is None:
            return BAD
        holds, tolerance = near
        said = [f"Error, {name}() failed with tolerance ", tolerance, "\n"]
    else:
        same = compare(cx, node, "==", a, b)
        if isinstance(same, Bad):
            return BAD
        holds = same.atom if name == "expect_eq" else cx.b.op("lnot", same.atom)
        said = [f"Error, {name}() failed:\n"]
    said += ["\t Expected: ", b, "\n\t Actual: ", a, "\n"]
    _unless(cx, holds, "expect", said)
    return Several(())


def _near(
    cx: Context, node: ast.Call, a: Value, b: Value, tolerance: Value | None
) -> tuple[Atom, Value] | None:
    """Whether no component differs by more than the tolerance (NaN does), and the tolerance."""
    t = a.type
    if isinstance(t, ArrayType) or not is_float(t):
        cx.error("E104", node, f"`expect_near` compares floats, but these are {type_name(t)}",
                 f"write `{cx.api}.expect_eq(a, b)`")  # fmt: skip
        return None
    scalar = t if isinstance(t, ScalarType) else t.scalar
    limit = Value(const(1e-6, scalar))
    if tolerance is not None:
        found = unify([limit, tolerance])
        if found is None:
            cx.error(
                "E104",
                node.args[2],
                f"the tolerance must be {type_name(scalar)}, but this is "
                f"{type_name(tolerance.type)}",
                "convert it",
            )
            return None
        limit = found[1]
    holds: Atom = const(True, BOOL)
    pairs: list[tuple[Atom, Atom]] = [(a.atom, b.atom)]
    if isinstance(t, (VectorType, MatrixType)):
        pairs = [
            (cx.b.op("extract", a.atom, *at), cx.b.op("extract", b.atom, *at)) for at in indices(t)
        ]
    for x, y in pairs:
        apart = cx.b.op("abs", cx.b.op("sub", x, y))
        # Infinities of one sign are equal, though their difference is NaN.
        close = cx.b.op("lor", cx.b.op("le", apart, limit.atom), cx.b.op("eq", x, y))
        holds = cx.b.op("land", holds, close)
    return holds, limit


def lower_assert(cx: Context, node: ast.stmt) -> None:
    """`assert cond, "text"`: checked but not compiled, unless asked for."""
    assert isinstance(node, ast.Assert)
    with cx.nested() as inner:
        holds = condition(cx, node.test)
    if isinstance(holds, Bad) or not asserts():
        return
    cx.b.stmts += inner.stmts
    words = _text_of(node.msg) if node.msg is not None else None
    shown = words if words is not None else cx.source.text(node.test)
    _unless(cx, holds.atom, "assert", [f"Assertion failed: {shown}\n"])
    cx.b.assume(holds.atom, True)


STMT[ast.Assert] = lower_assert
