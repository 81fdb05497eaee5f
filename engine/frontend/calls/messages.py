"""Messages to the host under construction: text, values and their formats."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from engine.frontend.context.context import Context
from engine.frontend.operands.operand import BAD, Bad, Operand, Several, Value
from engine.ir.nodes import Atom, Message
from engine.lang.types import (
    ArrayType,
)


def text_of(node: ast.expr) -> str | None:
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return node.value if is_text else None  # type: ignore[attr-defined]


class MessageText:
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
            words = text_of(part)
            if words is not None:
                self.write(words)
                continue
            assert isinstance(part, ast.FormattedValue)
            spec = part.format_spec
            form = ""
            if isinstance(spec, ast.JoinedStr):
                fixed = [text_of(v) for v in spec.values]
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


def say(cx: Context, text: MessageText) -> Operand:
    made = text.done("print")
    if made is None:
        return BAD
    cx.b.add(made)
    return Several(())


def _thread(cx: Context) -> Atom:
    return cx.b.op("thread")


def message_unless(cx: Context, holds: Atom, kind: str, text: Sequence[str | Value]) -> None:
    """A message where a condition does not hold."""
    words = MessageText(cx)
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
