"""The functions that a kernel calls, each lowered once for each list of argument kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.diagnostics import UNKNOWN, Diagnostic, KernelError, Span
from engine.frontend.calls.library_calls import call_library
from engine.frontend.context.context import Context
from engine.frontend.context.lowering import ExpressionHandler, StatementHandler
from engine.frontend.functions.native_function import NativeFunc
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.lowering.custom_gradients import lower_gradient, lower_replay
from engine.frontend.lowering.handlers import EXPRESSIONS, STATEMENTS
from engine.frontend.lowering.native_functions import lower_native
from engine.frontend.lowering.rounds import lower_body
from engine.frontend.operands.kinds import Kind
from engine.frontend.operands.operand import Operand, Value, View
from engine.frontend.operands.type_names import type_names
from engine.frontend.parsing.parsed_function import ParsedFunction, parse_function
from engine.frontend.parsing.signature import Signature, signature_of
from engine.ir.nodes import Block, For, Function, If, Stmt, While

# How often one function may be under way, each time for other arguments.
_MAX_DEPTH = 8
_Key = tuple[UserFunc, tuple[Kind, ...]]
# The library's own instances, which last: it captures nothing that changes.
_library: dict[_Key, Function] = {}


class Instances:
    """A `Lowering`: what one kernel calls, as it is when the kernel is lowered.

    Nothing is shared between kernels but the library, which captures nothing: what a
    function captures is read for each kernel that calls it.
    """

    def __init__(self, assertions: bool = False) -> None:
        self.expressions: Mapping[type[ast.AST], ExpressionHandler] = EXPRESSIONS
        self.statements: Mapping[type[ast.AST], StatementHandler] = STATEMENTS
        self.assertions = assertions
        self._parsed: dict[Callable[..., Any], ParsedFunction] = {}
        self._signatures: dict[UserFunc, Signature] = {}
        self._found: dict[_Key, Function | KernelError] = {}
        # Being lowered right now, outermost first: a second visit is recursion.
        self._active: list[_Key] = []

    def signature(self, function: UserFunc) -> Signature:
        """The parameters of a function, with annotations as they are now."""
        if function not in self._signatures:
            self._signatures[function] = signature_of(function.func, kernel=False)
        return self._signatures[function]

    def call_library(
        self, cx: Context, name: str, args: Sequence[Value | View], nodes: Sequence[ast.expr] = ()
    ) -> Operand | None:
        """See `Lowering`."""
        return call_library(cx, name, args, nodes)

    def instance(
        self, function: UserFunc, kinds: Sequence[Kind], at: Span | None = None
    ) -> Function:
        """See `Lowering`."""
        key = (function, tuple(kinds))
        found = _library.get(key) or self._found.get(key)
        if isinstance(found, KernelError):
            raise KernelError(*found.diagnostics)
        if found is not None:
            return found
        active = [f for f, _ in self._active]
        if key in self._active or active.count(function) >= _MAX_DEPTH:
            raise _recursion(active, function, at)
        self._active.append(key)
        try:
            made = self._lower(*key)
        except KernelError as error:
            told = self._traced(error, key, at)
            self._found[key] = told
            raise told from None
        finally:
            self._active.pop()
        if function.library:
            return _library.setdefault(key, made)
        self._found[key] = made
        return made

    def _traced(self, error: KernelError, key: _Key, at: Span | None) -> KernelError:
        """The error, with the call that chose the types of a function without annotations."""
        function, kinds = key
        parsed = self._parsed.get(function.func)
        if at is None or parsed is None or None not in parsed.annotated.values():
            return error
        note = f"in `{function.name}({type_names(kinds)})`, called from {at}"
        return KernelError(*(replace(d, notes=(*d.notes, note)) for d in error.diagnostics))

    def _parse(self, func: Callable[..., Any]) -> ParsedFunction:
        if func not in self._parsed:
            self._parsed[func] = parse_function(func, is_kernel=False)
        return self._parsed[func]

    def _lower(self, function: UserFunc, kinds: tuple[Kind, ...]) -> Function:
        parsed = self._parse(function.func)
        if isinstance(function, NativeFunc):
            return self._with_custom(function, lower_native(function, parsed, kinds), kinds)
        types = dict(zip(parsed.annotated, kinds, strict=True))
        made = lower_body(parsed, function.name, types, self)
        if function.library:
            return replace(made, body=_placeless(made.body), span=UNKNOWN)
        return self._with_custom(function, made, kinds)

    def _with_custom(
        self, function: UserFunc, primal: Function, kinds: tuple[Kind, ...]
    ) -> Function:
        """The function with the user's own gradient and replay, if there are any."""
        grad, replay = primal.grad, primal.replay
        if function.grad_func is None and function.replay_func is None:
            return primal
        # The adjoint may call the function itself: that call has no custom adjoint.
        self._found[function, kinds] = primal
        try:
            if function.grad_func is not None:
                text, forward = self._parse(function.grad_func), self._parse(function.func)
                grad = lower_gradient(text, primal, forward, kinds, self)
            if function.replay_func is not None:
                replay = lower_replay(self._parse(function.replay_func), primal, kinds, self)
        finally:
            del self._found[function, kinds]
        return replace(primal, grad=grad, replay=replay)


def _recursion(active: Sequence[UserFunc], again: UserFunc, at: Span | None) -> KernelError:
    cycle = [f.name for f in active[active.index(again) :]] + [again.name]
    return KernelError(
        Diagnostic(
            "E108",
            f"`{again.name}` calls itself ({' -> '.join(cycle)})",
            at,
            "write the recursion as a loop, with the pending work in local variables",
        )
    )


def _placeless(block: Block) -> Block:
    return tuple(_without_place(s) for s in block)


def _without_place(s: Stmt) -> Stmt:
    if isinstance(s, If):
        return replace(s, then=_placeless(s.then), orelse=_placeless(s.orelse), span=UNKNOWN)
    if isinstance(s, For):
        return replace(s, body=_placeless(s.body), span=UNKNOWN)
    if isinstance(s, While):
        return replace(s, test=_placeless(s.test), body=_placeless(s.body), span=UNKNOWN)
    return replace(s, span=UNKNOWN)
