"""Functions that kernels call: `@func`, with instances by argument types."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend.context import Prepared
from engine.frontend.kinds import Kind
from engine.frontend.modes import asserts
from engine.frontend.operands import Operand
from engine.frontend.scope import describe, operand_of
from engine.frontend.typenames import type_name, type_names
from engine.ir.nodes import Function
from engine.lang.generics import FUNCTION, Pattern
from engine.lang.structs import UserType

# Instances being lowered right now, outermost first: a second visit is recursion.
_active: ContextVar[tuple[tuple[UserFunc, tuple[Kind, ...]], ...]] = ContextVar(
    "_active", default=()
)
# How often one function may be under way, each time for other arguments.
_MAX_DEPTH = 8

# Called when a function was made, or given a gradient or a replay.
listeners: list[Callable[[], None]] = []
_changes = 0


def changes() -> int:
    """How often `listeners` were called. Bindings can differ only where this does."""
    return _changes


def _changed() -> None:
    global _changes
    _changes += 1
    for listener in listeners:
        listener()


class UserFunc:
    """A Python function that kernels can call, and Python too.

    func: the Python function. In Python a call runs it on host values. overloads: the
    functions of this name that were defined with it, in order, itself being the last.
    """

    library = False  # True for those that come with the engine and never change
    __ir_pattern__ = FUNCTION  # as an annotation: a parameter that takes a function

    def __init__(self, func: Callable[..., Any], before: UserFunc | None = None) -> None:
        self.func = func
        self.overloads: tuple[UserFunc, ...] = (*(before.overloads if before else ()), self)
        self.name = getattr(func, "__name__", "func")
        self._grad: Callable[..., Any] | None = None
        self._replay: Callable[..., Any] | None = None
        self._instances: dict[tuple[Kind, ...], Function | KernelError] = {}
        self._prepared: Prepared | None = None
        # What the instances were made with, and `changes()` when that was last looked at.
        self._bindings: object = None
        self._seen = -1
        self._asserts = False  # whether the instances were made with assertions
        functools.update_wrapper(self, func)
        if not self.library:
            _changed()

    def __repr__(self) -> str:
        return f"<engine function {self.name}>"

    def __call__(self, *args: Any, **named: Any) -> Any:
        if len(self.overloads) > 1:
            from engine.frontend.overloads import for_host

            return for_host(self, args, named).func(*args, **named)
        return self.func(*args, **named)

    @property
    def grad_func(self) -> Callable[..., Any] | None:
        """The user's own adjoint (a Python function, or one made by `@func`), if any."""
        return self._grad

    @grad_func.setter
    def grad_func(self, function: Callable[..., Any] | None) -> None:
        self._grad = function
        self.clear()
        _changed()

    @property
    def replay_func(self) -> Callable[..., Any] | None:
        """The user's own forward code for the backward pass, if any."""
        return self._replay

    @replay_func.setter
    def replay_func(self, function: Callable[..., Any] | None) -> None:
        self._replay = function
        self.clear()
        _changed()

    def clear(self) -> None:
        """Forgets all instances: values captured from Python are read anew."""
        self._instances.clear()
        self._prepared = None

    def _refresh(self) -> None:
        """Forgets the instances if a function that they call was defined anew."""
        now = _changes
        if self._asserts != asserts():
            self._asserts = asserts()
            self._instances.clear()
        if self._seen != now:
            from engine.frontend.bindings import bindings

            found = bindings(self)
            if found != self._bindings:
                self._bindings = found
                self.clear()
            self._seen = now

    def prepared(self) -> Prepared:
        """The function after the stages without types. Raises KernelError E111."""
        from engine.frontend.lower import prepare

        self._refresh()
        if self._prepared is None:
            self._prepared = prepare(self.func, is_kernel=False)
        return self._prepared

    def parameters(self) -> list[str]:
        """Names of the parameters, in order. Raises KernelError E111."""
        return list(self.prepared().annotated)

    def annotated(self) -> dict[str, UserType | None]:
        """Types of the parameters, None where the call decides."""
        return self.prepared().annotated

    def patterns(self) -> dict[str, Pattern]:
        """What parameters take that have no type."""
        return self.prepared().patterns

    def candidates(self) -> list[UserFunc]:
        """The overloads that a call may mean: of those with one signature, the last."""
        out: dict[tuple[object, ...], UserFunc] = {}
        for f in self.overloads:
            patterns = f.patterns() if len(self.overloads) > 1 else {}
            key = tuple(t or patterns.get(n) for n, t in f.annotated().items())
            out.pop(key, None)
            out[key] = f
        return list(out.values())

    def parameter_text(self) -> str:
        """The parameters with their types, for messages."""
        open_ = self.patterns()
        return ", ".join(
            f"{n}: {type_name(t) if t is not None else open_.get(n, 'Any')}"
            for n, t in self.annotated().items()
        )

    def place(self) -> str:
        """File and line of the definition."""
        span = self.prepared().source.header()
        return f"{span.file}:{span.line}"

    def defaults(self) -> dict[str, Operand]:
        """Default values that kernels can use, by parameter. Raises KernelError E107."""
        out: dict[str, Operand] = {}
        for p in inspect.signature(self.func).parameters.values():
            if p.default is inspect.Parameter.empty:
                continue
            got = operand_of(p.default)
            if got is None:
                what, help_text = describe(p.default)
                raise KernelError(
                    Diagnostic(
                        "E107",
                        f"the default of parameter `{p.name}` of `{self.name}` is {what}",
                        self.prepared().source.header(),
                        help_text,
                    )
                )
            out[p.name] = got
        return out

    def instance(self, types: Sequence[Kind], at: Span | None = None) -> Function:
        """The IR for kinds of arguments; made once. `at` is the place of the call.

        Raises KernelError with every problem of the function, or E108 for recursion.
        """
        self._refresh()
        key = tuple(types)
        found = self._instances.get(key)
        if isinstance(found, KernelError):
            raise KernelError(*found.diagnostics)
        if found is not None:
            return found
        active = _active.get()
        if (self, key) in active or sum(f is self for f, _ in active) >= _MAX_DEPTH:
            raise self._recursion([f for f, _ in active], at)
        token = _active.set((*active, (self, key)))
        try:
            made = self._lower(key)
        except KernelError as error:
            told = self._traced(error, key, at)
            self._instances[key] = told
            raise told from None
        finally:
            _active.reset(token)
        self._instances[key] = made
        return made

    def _traced(self, error: KernelError, types: Sequence[Kind], at: Span | None) -> KernelError:
        """The error, with the call that chose the types of a function without annotations."""
        if at is None or self._prepared is None or None not in self._prepared.annotated.values():
            return error
        note = f"in `{self.name}({type_names(types)})`, called from {at}"
        return KernelError(*(replace(d, notes=(*d.notes, note)) for d in error.diagnostics))

    def _recursion(self, active: list[UserFunc], at: Span | None) -> KernelError:
        cycle = [f.name for f in active[active.index(self) :]] + [self.name]
        return KernelError(
            Diagnostic(
                "E108",
                f"`{self.name}` calls itself ({' -> '.join(cycle)})",
                at,
                "write the recursion as a loop, with the pending work in local variables",
            )
        )

    def _lower(self, types: tuple[Kind, ...]) -> Function:
        from engine.frontend.lower import lower_types

        return self._with_custom(lower_types(self.prepared(), self.name, types), types)

    def _with_custom(self, primal: Function, types: tuple[Kind, ...]) -> Function:
        """The function with the user's own gradient and replay, if there are any."""
        from engine.frontend.custom import lower_gradient, lower_replay

        made = self.prepared()
        if self.grad_func is None and self.replay_func is None:
            return primal
        # The adjoint may call the function itself: that call has no custom adjoint.
        self._instances[types] = primal
        try:
            grad, replay = primal.grad, primal.replay
            if self.grad_func is not None:
                grad = lower_gradient(self.grad_func, primal, made, types)
            if self.replay_func is not None:
                replay = lower_replay(self.replay_func, primal, types)
        finally:
            self._instances.pop(types, None)
        return replace(primal, grad=grad, replay=replay)
