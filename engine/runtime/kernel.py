"""Kernels and functions: the decorators, and what they make of a Python function."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

from engine import config
from engine.compile.pipeline import Variants
from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend import userfunc
from engine.frontend.modes import asserting
from engine.frontend.userfunc import UserFunc
from engine.ir.nodes import Function
from engine.runtime import modules
from engine.runtime.errors import fail
from engine.runtime.plan import Plan

_lock = threading.RLock()


class Kernel:
    """A Python function that `launch` runs once for every thread of a grid.

    key: its name in messages, masks and `gradcheck_tape`. func: the Python
    function. module: the group that it is compiled with.
    """

    def __init__(
        self, func: Callable[..., Any], key: str, module: modules.Module, enable_backward: bool
    ) -> None:
        self.func = func
        self.key = key
        self.module = module
        self._enable_backward = enable_backward
        # None until the first launch, and while nobody knows whether `_latest` is still right.
        self._plan: Plan | None = None
        self._latest: Plan | None = None
        self._bindings: userfunc.Bindings | None = None
        self.__name__ = func.__name__
        self.__qualname__ = func.__qualname__
        self.__module__ = func.__module__
        self.__doc__ = func.__doc__
        self.__wrapped__ = func
        module.add(self)

    @property
    def enable_backward(self) -> bool:
        """Whether gradients flow through launches of this kernel."""
        return self._enable_backward and bool(self.module.options.get("enable_backward", True))

    @property
    def variants(self) -> Variants:
        """The kernel's passes and compiled forms."""
        return self.plan.variants

    @property
    def ir(self) -> Function:
        """The lowered kernel."""
        return self.plan.variants.ir

    @property
    def span(self) -> Span:
        """The place of the definition."""
        return self.ir.span

    @property
    def plan(self) -> Plan:
        """The lowered kernel; made at the first launch. Raises KernelError.

        It is made anew at a launch after a function that it calls was redefined, or was
        given a gradient or a replay.
        """
        found = self._plan
        if found is not None:
            return found
        with _lock:
            start = userfunc.changes()
            names = userfunc.bindings(self.func)
            plan = self._latest
            if plan is None or names != self._bindings:
                plan = Plan(self, lower(self))
                modules.compile_group(self.module, self, plan)
                self._latest, self._bindings = plan, names
            with _swap:
                if userfunc.changes() == start:
                    self._plan = plan
                    _planned.add(self)
            return plan

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise fail("E106", f"kernel {self.key!r} cannot be called",
                   help=f"use launch({self.key}, dim=..., inputs=[...])")  # fmt: skip

    def __repr__(self) -> str:
        return f"<kernel {self.key}>"


# Kernels that have a plan. The lock is never held for long: decorators wait for it.
_planned: weakref.WeakSet[Kernel] = weakref.WeakSet()
_swap = threading.Lock()


def _doubt() -> None:
    """Makes every kernel look, at its next launch, at what its calls mean now."""
    with _swap:
        for kernel in list(_planned):
            kernel._plan = None
        _planned.clear()


userfunc.listeners.append(_doubt)


def lower(kernel: Kernel) -> Function:
    """The kernel's IR. Raises KernelError."""
    from engine.frontend import lower_kernel

    debug = "debug" in (config.mode, kernel.module.options.get("mode"))
    with asserting(debug):
        return lower_kernel(kernel.func)


def key_of(func: Callable[..., Any]) -> str:
    """A kernel's name: its qualified name with `__` for dots."""
    return re.sub(r"\W", "", func.__qualname__.replace(".", "__"))


def kernel(
    f: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    enable_backward: bool | None = None,
    module: Any = None,
    module_options: dict[str, Any] | None = None,
    launch_bounds: Any = None,
    grid_stride: bool | None = None,
) -> Any:
    """Makes a kernel of a Python function: `@kernel`, or `@kernel(enable_backward=False)`.

    Args:
        f: the function; every parameter needs an annotation.
        name: the key, the function's own name where left out.
        enable_backward: False where the kernel needs no adjoint.
        module: a name (or "unique") of another group to compile it with.
        module_options: options for that group.
        launch_bounds: accepted for GPU code; it means nothing on the CPU.
        grid_stride: accepted for GPU code; it means nothing on the CPU.
    """
    del launch_bounds, grid_stride

    def make(func: Callable[..., Any]) -> Kernel:
        _check_function(func, "kernel")
        group = modules.find(func.__module__ if module is None else module, func)
        if module_options:
            group.options.update(module_options)
        return Kernel(func, name or key_of(func), group, enable_backward is not False)

    return make if f is None else make(f)


def func(
    f: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    module: Any = None,
    inline: bool | None = None,
) -> Any:
    """Makes a Python function callable from kernels."""
    del name, module, inline

    def make(function: Callable[..., Any]) -> UserFunc:
        _check_function(function, "func")
        return modules.add_function(UserFunc(function))

    return make if f is None else make(f)


def func_grad(forward: Any) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function as the adjoint of `forward`, a function made by `@func`.

    It takes the inputs and the adjoints of the results, and adds to `adjoint[input]`.
    """
    _check_forward(forward, "func_grad")

    def make(function: Callable[..., Any]) -> Any:
        forward.grad_func = modules.add_function(UserFunc(function))
        return forward.grad_func

    return make


def func_replay(forward: Any) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function as what the backward pass runs in place of `forward`."""
    _check_forward(forward, "func_replay")

    def make(function: Callable[..., Any]) -> Any:
        forward.replay_func = modules.add_function(UserFunc(function))
        return forward.replay_func

    return make


class _Adjoint:
    """`adjoint[x]` in a function made by `@func_grad`: the derivative of its input `x`."""

    __builtin_name__ = "adjoint"

    def __getitem__(self, key: object) -> Any:
        raise fail("E106", "adjoint[...] has a meaning only in a function made by @func_grad")

    def __setitem__(self, key: object, value: object) -> None:
        self[key]


adjoint = _Adjoint()


def _check_function(f: object, decorator: str) -> None:
    if not callable(f) or not hasattr(f, "__code__"):
        raise KernelError(Diagnostic("E103", f"@{decorator} takes a Python function, got {f!r}"))


def _check_forward(f: object, decorator: str) -> None:
    if not isinstance(f, UserFunc):
        raise KernelError(
            Diagnostic("E103", f"@{decorator}(f) takes a function made by @func, got {f!r}")
        )
