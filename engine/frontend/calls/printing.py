"""`print` and `printf` in kernels."""

from __future__ import annotations

import ast
import re

from engine.frontend.calls.messages import MessageText, say, text_of
from engine.frontend.context.context import Context
from engine.frontend.operands.operand import Bad, Operand, Value
from engine.frontend.operands.type_names import type_name
from engine.lang.types import (
    SCALARS,
    ScalarType,
)


def lower_print(cx: Context, node: ast.Call) -> Operand:
    """`print(a, b, ...)`: values and strings, with blanks between, and a new line."""
    between = {"sep": " ", "end": "\n"}
    for word in node.keywords:
        given = text_of(word.value)
        if word.arg not in between or given is None:
            return cx.error("E106", word.value, f"`print` takes no argument `{word.arg}` like this",
                            "in kernels it takes `sep` and `end`, plain strings")  # fmt: skip
        between[word.arg] = given
    text = MessageText(cx)
    for k, a in enumerate(node.args):
        if k:
            text.write(between["sep"])
        words = text_of(a)
        if words is not None:
            text.write(words)
        elif isinstance(a, ast.JoinedStr):
            text.formatted(a)
        else:
            text.value(a)
    text.write(between["end"])
    return say(cx, text)


# %[flags][width][.precision][length]conversion
_SPEC = re.compile(r"%(?P<form>[-+ #0]*\d*(?:\.\d*)?)(?P<length>hh|h|ll|l|L|z|j|t)?(?P<kind>.)?")
_KINDS = {"d": "i", "i": "i", "u": "i", "x": "i", "X": "i", "o": "i", "c": "i",
          "f": "f", "F": "f", "e": "f", "E": "f", "g": "f", "G": "f"}  # fmt: skip
_PLAIN = {"u": "d", "i": "d"}


def lower_printf(cx: Context, node: ast.Call) -> Operand:
    """`printf(format, ...)`, with a format of C."""
    usage = f'write `{cx.api}.printf("x = %f\\n", x)`'
    form = text_of(node.args[0]) if node.args else None
    if form is None or node.keywords:
        return cx.error("E106", node, "`printf` takes a format, a string, and values", usage)
    text = MessageText(cx)
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
            return cx.error("E106", node.args[0], f"`{spec[0]}` is not a format in kernels",
                            "use %d, %u, %x, %f, %e or %g, and %% for a percent sign")  # fmt: skip
        if not rest:
            return cx.error("E109", node, f"there is no value for `{spec[0]}`",
                            "pass as many values as the format has places")  # fmt: skip
        _place(cx, text, rest.pop(0), spec)
    text.write(form[at:])
    if rest:
        return cx.error("E109", rest[0], "the format has no place for this value",
                        "pass as many values as the format has places")  # fmt: skip
    return say(cx, text)


def _place(cx: Context, text: MessageText, node: ast.expr, spec: re.Match[str]) -> None:
    """One value at its place in a format."""
    kind, words = spec["kind"], text_of(node)
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
