"""The functions that a kernel calls, each lowered once for each list of argument kinds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from engine.diagnostics import UNKNOWN, Diagnostic, KernelError, Span
from engine.frontend.calls.library_calls import call_library
from engine.frontend.calls.user_operators import user_operator
from engine.frontend.context.context import Context
from engine.frontend.context.lowering import ExpressionHandler, StatementHandler
from engine.frontend.functions.native_function import NativeFunc
from engine.frontend.functions.user_function import UserFunc
from engine.frontend.lowering.custom_gradients import lower_gradient, lower_replay
from engine.frontend.lowering.handlers import EXPRESSIONS, STATEMENTS
from engine.frontend.lowering.native_functions import lower_native
from engine.frontend.lowering.rounds import lower_body
from engine.frontend.lowering.shared import Dependencies, Key, Shared, custom_of, defaults_of
from engine.frontend.operands.kinds import Kind
from engine.frontend.operands.operand import Operand, Value, View
from engine.frontend.operands.type_names import type_names
from engine.frontend.parsing.captures import Captures
from engine.frontend.parsing.parsed_function import ParsedFunction, parse_function
from engine.frontend.parsing.signature import Signature, signature_of
from engine.ir.nodes import Function
from engine.ir.rewrite import rewrite, with_span

# How often one function may be under way, each time for other arguments.
_MAX_DEPTH = 8
# Instances of one function that other kernels may use: there is one for each literal, too.
_MOST_KEPT = 256
# The library's own instances, which last: it captures nothing that changes.
_library: dict[Key, Function] = {}


class Instances:
    """A `Lowering`: the functions that one kernel calls, as they are when it is lowered.

    What functions capture is read for each kernel. An instance that another kernel had made is
    taken over where everything that it was made from would be found the same again.
    """

    def __init__(self, assertions: bool = False, captures: list[Captures] | None = None) -> None:
        # What was read from Python for all of them.
        self.captures: list[Captures] = [] if captures is None else captures
        self.expressions: Mapping[type[ast.AST], ExpressionHandler] = EXPRESSIONS
        self.statements: Mapping[type[ast.AST], StatementHandler] = STATEMENTS
        self.assertions = assertions
        self._parsed: dict[Callable[..., Any], ParsedFunction] = {}
        self._signatures: dict[UserFunc, Signature] = {}
        self._found: dict[Key, tuple[Function | KernelError, set[Key]]] = {}
        # Being lowered right now, outermost first: a second visit is recursion.
        self._active: list[Dependencies] = []
        # Looked at for taking over, perhaps right now: a custom gradient may lead back to it.
        self._compared: set[Key] = set()
        # Instances that are not the usual ones; see `_inside`.
        self._overridden: frozenset[Key] = frozenset()

    def signature(self, function: UserFunc) -> Signature:
        """The parameters of a function, with annotations as they are now."""
        if function not in self._signatures:
            self._signatures[function] = signature_of(function.func, kernel=False)
        found = self._signatures[function]
        if self._active:
            self._active[-1].overloads[function] = (found, defaults_of(function))
        return found

    def user_operator(
        self, cx: Context, node: ast.expr, op: ast.AST, given: Sequence[tuple[ast.expr, Operand]]
    ) -> Operand | None:
        """What an operator means where the user has a function for it; None for all else."""
        return user_operator(cx, node, op, given)

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
        made, overridden = self._instance(key, at)
        if isinstance(made, KernelError):
            raise KernelError(*made.diagnostics)
        if self._active and not function.library:
            self._active[-1].add_call(key, made, overridden)
        return made

    def _instance(self, key: Key, at: Span | None) -> tuple[Function | KernelError, set[Key]]:
        """The instance or what is wrong with it, and those behind it that are not the usual."""
        function = key[0]
        if key in _library:
            return _library[key], set()
        if key not in self._found and key not in self._compared:
            self._compared.add(key)
            shared = self._taken_over(key)
            if shared is not None:
                self._found.setdefault(key, (shared, set()))
        if key not in self._found:
            active = [d.key for d in self._active]
            names = [f for f, _ in active]
            if key in active or names.count(function) >= _MAX_DEPTH:
                raise _recursion(names, function, at)
            needs = Dependencies(key)
            self._active.append(needs)
            try:
                made = self._lower(key, needs)
            except KernelError as error:
                told = self._traced(error, key, at)
                if at is not None:  # else it is told, with its place, at the call
                    self._found[key] = told, set()
                return told, set()
            else:
                self._found[key] = made, needs.overridden
                self._keep(key, made, needs)
            finally:
                self._active.pop()
        return self._found[key]

    def _taken_over(self, key: Key) -> Function | None:
        """The instance that another kernel had made, if it would be made the same now."""
        function, kinds = key
        found = function.lowered.get((kinds, self.assertions))
        if not isinstance(found, Shared) or found.custom != custom_of(function):
            return None
        needs = found.needs
        if not all(c.hold() for c in needs.captures):
            return None
        for f, (signature, defaults) in needs.overloads.items():
            if self.signature(f) != signature or defaults_of(f) != defaults:
                return None
        try:
            same = all(self._instance(c, None) == (made, set()) for c, made in needs.calls.items())
        except KernelError:
            return None  # told at the call, when it is lowered anew
        if not same:
            return None
        self.captures += needs.captures
        return found.made

    def _keep(self, key: Key, made: Function, needs: Dependencies) -> None:
        """Offers an instance to other kernels."""
        function, kinds = key
        if function.library:
            _library.setdefault(key, made)
        elif not needs.overridden:
            if len(function.lowered) >= _MOST_KEPT:
                function.lowered.clear()
            function.lowered[kinds, self.assertions] = Shared(made, needs, custom_of(function))

    def _traced(self, error: KernelError, key: Key, at: Span | None) -> KernelError:
        """The error, with the call that chose the types of a function without annotations."""
        function, kinds = key
        parsed = self._parsed.get(function)
        if at is None or parsed is None or None not in parsed.annotated.values():
            return error
        note = f"in `{function.name}({type_names(kinds)})`, called from {at}"
        return KernelError(*(replace(d, notes=(*d.notes, note)) for d in error.diagnostics))

    def _parse(self, func: Callable[..., Any], needs: Dependencies) -> ParsedFunction:
        if func not in self._parsed:
            text = func.text if isinstance(func, UserFunc) else None
            self._parsed[func] = parse_function(func, text, is_kernel=False)
        parsed = self._parsed[func]
        needs.captures.append(parsed.scope.captures)
        if not getattr(func, "library", False):
            self.captures.append(parsed.scope.captures)
        return parsed

    def _lower(self, key: Key, needs: Dependencies) -> Function:
        function, kinds = key
        parsed = self._parse(function, needs)
        if isinstance(function, NativeFunc):
            return self._with_custom(key, lower_native(function, parsed, kinds), needs)
        types = dict(zip(parsed.annotated, kinds, strict=True))
        exact = function.is_plain and not function.library
        made = lower_body(parsed, function.name, types, self, exact=exact)
        if function.library:
            body = rewrite(made.body, lambda s: with_span(s, UNKNOWN))
            return replace(made, body=body, span=UNKNOWN)
        return self._with_custom(key, made, needs)

    def _with_custom(self, key: Key, primal: Function, needs: Dependencies) -> Function:
        """The function with the user's own gradient and replay, if there are any."""
        function, kinds = key
        grad, replay = primal.grad, primal.replay
        own = function.grad_func or function.replay_func
        if primal.tables and own is not None:
            raise KernelError(
                Diagnostic(
                    "E112",
                    f"`{function.name}` queries geometry and has a custom gradient or replay: "
                    "this is not supported",
                    primal.span,
                    "query in another function, and pass the results to this one",
                )
            )
        if own is not None and self._parsed[function].references:
            raise KernelError(
                Diagnostic(
                    "E110",
                    f"`{function.name}` takes a reference and has a custom gradient or replay",
                    primal.span,
                    "return the value instead",
                )
            )
        inside = self._inside(key, primal)
        if function.grad_func is not None:
            text, forward = self._parse(function.grad_func, needs), self._parsed[function]
            grad = lower_gradient(text, primal, forward, kinds, inside)
        if function.replay_func is not None:
            text = self._parse(function.replay_func, needs)
            replay = lower_replay(text, primal, kinds, inside)
        return replace(primal, grad=grad, replay=replay)

    def _inside(self, key: Key, primal: Function) -> Instances:
        """For the custom gradient of a function, which may call it: that call has none."""
        inside = Instances(self.assertions, self.captures)
        inside._parsed, inside._signatures = self._parsed, self._signatures
        inside._active = self._active
        inside._overridden = self._overridden | {key}
        inside._found = {k: v for k, v in self._found.items() if k in self._overridden}
        inside._found[key] = primal, {key}
        return inside


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
