"""Kernels and functions: the decorators and their results."""

from __future__ import annotations

import re
import typing
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from engine import config, hooks
from engine.diagnostics import Diagnostic, KernelError, Span
from engine.frontend import (
    Bindings,
    FunctionText,
    NativeFunc,
    Signature,
    Snippets,
    UserFunc,
    bindings,
    declared_text,
    defined_before,
    function_changes,
    lower_kernel,
    on_function_change,
    signature_of,
)
from engine.lang.definition import Definition
from engine.locks import Lock
from engine.runtime import instances, modules
from engine.runtime.launch_errors import fail

if TYPE_CHECKING:
    from engine.compile.pipeline import Variants
    from engine.frontend import Captures
    from engine.ir import nodes as n
    from engine.runtime.parameters import Parameters
    from engine.runtime.plan import Plan

P = ParamSpec("P")
R = TypeVar("R")
_lock = Lock()
# What `@func` makes; as an annotation, a parameter of a function that takes a function.
Function = UserFunc


class Kernel(Definition):
    """A Python function that `launch` runs once for every thread of a grid.

    `@kernel` makes one of a function; so does a call, `Kernel(func, key=..., module=...)`.

    Args:
        func: the Python function.
        key: its name in messages, masks and `gradcheck_tape`, by default the function's own.
        module: the group that it is compiled with (a `Module`, a name, "unique"), by default
            that of the function.
        options: `enable_backward` decides on gradients, `deterministic` on GPUs as the setting of
            that name; others are kept, and mean nothing here.
        types: of an instance of a generic kernel, those of its parameters.
        text: what was there to read when the function was decorated.

    Raises KernelError E103 for what is no Python function.
    """

    __slots__ = ("_plan",)  # at one place in all of them, for native functions

    def __init__(
        self,
        func: Callable[..., Any],
        key: str | None = None,
        module: Any = None,
        options: dict[str, Any] | None = None,
        *,
        types: instances.Types | None = None,
        text: FunctionText | None = None,
    ) -> None:
        _check_function(func, "kernel")
        self.func = func
        # As it is now: files change while programs run.
        self.text = text or declared_text(func)
        self.key = key_of(func) if key is None else key
        group = func.__module__ if module is None else module
        self.module = modules.find(group, func, self.key, self.text)
        self.options: dict[str, Any] = {} if options is None else options
        # Of an instance of a generic kernel: the types of its parameters.
        self.types = types
        self.generic: Kernel | None = None  # the kernel that it is an instance of
        self._signature: Signature | None = None
        # Instances of a generic kernel, by the types of their parameters.
        self.overloads: dict[instances.Types, Kernel] = {}
        # None until the first launch, and while nobody knows whether `_latest` is still right.
        self._plan: Plan | None = None
        self._latest: Plan | None = None
        self._bindings: Bindings | None = None
        self.__name__ = func.__name__
        self.__qualname__ = func.__qualname__
        self.__module__ = func.__module__
        self.__doc__ = func.__doc__
        self.__wrapped__ = func
        hooks.prepare()
        self.module.add(self)

    def _made(self) -> tuple[Any, ...] | None:
        if self.types is None or self.generic is None:
            return None
        return Kernel._instance, (self.generic, self.types)

    def _option(self, name: str) -> Any:
        """The kernel's own option, else its module's; None for what config says."""
        own = self.options.get(name)
        return self.module.options.get(name) if own is None else own

    @property
    def enable_backward(self) -> bool:
        """Whether gradients flow through launches of this kernel.

        The kernel's own setting counts, else its module's, else the global one.
        """
        found = self._option("enable_backward")
        return config.enable_backward if found is None else bool(found)

    def in_order(self) -> bool:
        """Whether GPUs run its threads one after the other where their order matters.

        The kernel's own option "deterministic" counts, else its module's, else the global one.
        """
        found = self._option("deterministic")
        return bool(config.deterministic if found is None else found)

    @property
    def signature(self) -> Signature:
        """Its parameters, as far as annotations tell their types."""
        if self._signature is None:
            self._signature = signature_of(self.func, kernel=True)
        return self._signature

    @property
    def adj(self) -> Parameters:
        """Its parameters by the name that programs written for Warp ask for them.

        `kernel.adj.args` has for each a `label` and a `type`: an annotation.
        """
        from engine.runtime.parameters import parameters_of

        return parameters_of(self)

    @property
    def is_generic(self) -> bool:
        """Whether launches decide on the types of its parameters (and it has no instance yet)."""
        return self.types is None and self.signature.is_generic

    def add_overload(self, types: Any) -> Kernel:
        """The instance of a generic kernel for types, made if it is not there yet.

        types: one for each parameter, or a dictionary with one for each open parameter.
        Raises LaunchError: E106 (not generic), E201 (count, names), E202 (types).
        """
        return self._instance(instances.resolve(self, types))

    def for_arguments(self, args: Sequence[Any]) -> Kernel:
        """What a launch with these arguments runs: the kernel, or its instance for them.

        Raises LaunchError E201 or E202 where arguments do not tell the types.
        """
        return self._instance(instances.infer(self, args)) if self.is_generic else self

    def _instance(self, types: instances.Types) -> Kernel:
        found = self.overloads.get(types)
        if found is None:
            with _lock:
                made = Kernel(self.func, self.key, self.module, self.options, types=types,
                              text=self.text)  # fmt: skip
                made.generic = self
                found = self.overloads.setdefault(types, made)
        return found

    @property
    def variants(self) -> Variants:
        """The kernel's passes and compiled forms."""
        return self.plan.variants

    @property
    def ir(self) -> n.Function:
        """The lowered kernel."""
        return self.plan.variants.ir

    @property
    def span(self) -> Span:
        """The place of the definition."""
        return self.plan.variants.facts.span

    @property
    def plan(self) -> Plan:
        """The lowered kernel; made at the first launch. Raises KernelError.

        It is made anew at a launch after a function that it calls was redefined, or was
        given a gradient or a replay.
        """
        return self.planned()

    def planned(self, given: list[Any] | None = None) -> Plan:
        """The same. given: the arguments of a launch on a tape; see `plan_of`."""
        found = self._plan
        if found is not None:
            return found
        from engine.runtime.plans import plan_of  # late: programs that launch nothing need none

        with _lock:
            start = function_changes()
            names = bindings(self.func, self.text)
            plan = self._latest
            if plan is None or names != self._bindings:
                plan = plan_of(self, given)
                self._latest, self._bindings = plan, names
            with _swap:
                if function_changes() == start:
                    self._plan = plan
                    _planned.add(self)
            return plan

    def forget(self) -> None:
        """Makes the next launch lower it again, with what it captures as it is then."""
        with _swap:
            self._plan = self._latest = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise fail("E106", f"kernel {self.key!r} cannot be called",
                   help=f"use launch({self.key}, dim=..., inputs=[...])")  # fmt: skip

    def __repr__(self) -> str:
        return f"<kernel {self.key}>"


# Kernels that have a plan. The lock is never held for long: decorators wait for it.
_planned: weakref.WeakSet[Kernel] = weakref.WeakSet()
_swap = Lock()


def _doubt() -> None:
    """Makes every kernel look, at its next launch, at what its calls mean now."""
    with _swap:
        for kernel in list(_planned):
            kernel._plan = None
        _planned.clear()


on_function_change(_doubt)


def lower(kernel: Kernel, captures: list[Captures] | None = None) -> n.Function:
    """The kernel's IR. Raises KernelError. captures: gets what was read from Python."""
    types = None
    if kernel.types is not None:
        types = dict(zip(kernel.signature.types, kernel.types, strict=True))
    return lower_kernel(kernel.func, types, kernel.text, assertions=debugging(kernel),
                        captures=captures)  # fmt: skip


def debugging(kernel: Kernel) -> bool:
    """Whether its `assert` statements mean something, and its accesses are looked at."""
    return (kernel.module.options.get("mode") or config.mode) == "debug"


def overload(kernel: Any, arg_types: Any = None) -> Kernel:
    """An instance of a generic kernel for types, compiled with the others of its module.

    `overload(kernel, [types])` and `overload(kernel, {name: type})` return the instance,
    which can be launched. `@overload` on a function of the kernel's name, with annotated
    parameters and `...` as its body, adds the instance and gives the kernel itself.

    Raises LaunchError: E102 (no such kernel), E106 (not generic, or a stub with a body),
    E201 (count, names), E202 (types).
    """
    if isinstance(kernel, Kernel):
        return kernel.add_overload(arg_types)
    _check_function(kernel, "overload")
    return instances.from_stub(kernel)


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
    **for_gpus: Any,
) -> Any:
    """Makes a kernel of a Python function: `@kernel`, or `@kernel(enable_backward=False)`.

    Args:
        f: the function; every parameter needs an annotation.
        name: the key, the function's own name where left out.
        enable_backward: False where the kernel needs no adjoint; what the module and
            `config.enable_backward` say where left out.
        module: a name (or "unique") of another group to compile it with.
        module_options: options for that group (see `Module`), where it is "unique".
        for_gpus: `launch_bounds`, `grid_stride` and other options of GPU code, which
            `Kernel.options` keeps; they mean nothing on the CPU.

    Raises LaunchError (E202) for options that there are not.
    """
    unknown = [k for k in for_gpus if k not in _FOR_GPUS]
    if unknown:
        raise fail("E202", f"@kernel has no option {unknown[0]!r}")
    options = {k: v for k, v in for_gpus.items() if v is not None}
    if enable_backward is not None:
        options["enable_backward"] = enable_backward

    def make(func: Callable[..., Any]) -> Kernel:
        _check_function(func, "kernel")
        key = name or key_of(func)
        own: Mapping[str, Any] = {}
        if module_options is not None:
            if module != "unique":
                message = f"kernel {key!r}: module_options would apply to other kernels too"
                help = 'write `module="unique"`, or call set_module_options(...)'
                raise fail("E202", message, help=help)
            own = modules.check_options(module_options, f"kernel {key!r}")
        text = declared_text(func)
        place = func.__module__ if module is None else module
        group = modules.find(place, func, key, text, {**own, **options})
        group.options.update(own)
        return Kernel(func, key, group, dict(options), text=text)

    return make if f is None else make(f)


_FOR_GPUS = (
    "launch_bounds", "grid_stride", "cuda_max_registers", "enable_cuda_smem_spilling",
    "cluster_dim", "entry_point_abi",
)  # fmt: skip


@typing.overload
def func(
    f: Callable[P, R],
    *,
    name: str | None = None,
    module: Any = None,
    inline: bool | None = None,
) -> Callable[P, R]: ...


@typing.overload
def func(
    f: None = None,
    *,
    name: str | None = None,
    module: Any = None,
    inline: bool | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def func(
    f: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    module: Any = None,
    inline: bool | None = None,
) -> Any:
    """Makes a Python function callable from kernels.

    Where the name stands for such a function already, with another signature, and in the
    same scope, the new one is an overload: calls choose by the types of their arguments, the
    most specific one, in whatever order they were defined. The same signature again replaces
    the function. So does anything where a text runs again: a module that is reloaded has the
    functions of its new text alone; and a cell of a notebook replaces the functions of other
    cells whose calls it takes all, as `f(x: Any)` does with `f(x: float)`, while `f(x: float)`
    beside `f(x: Any)` is a special case of it.
    """
    del inline

    def make(function: Callable[..., Any]) -> UserFunc:
        _check_function(function, "func")
        made = UserFunc(function, defined_before(function))
        group = modules.find(function.__module__ if module is None else module, function)
        made.module = group
        group.define(group.functions, name or key_of(function), made)
        return made

    return make if f is None else make(f)


def func_grad(forward: Any) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function as the adjoint of `forward`, a function made by `@func`.

    It takes the inputs and the adjoints of the results, and adds to `adjoint[input]`.
    """
    _check_forward(forward, "func_grad")

    def make(function: Callable[..., Any]) -> Any:
        forward.grad_func = UserFunc(function)
        return forward.grad_func

    return make


def func_replay(forward: Any) -> Callable[[Callable[..., Any]], Any]:
    """Marks a function as what the backward pass runs in place of `forward`."""
    _check_forward(forward, "func_replay")

    def make(function: Callable[..., Any]) -> Any:
        forward.replay_func = UserFunc(function)
        return forward.replay_func

    return make


def func_native(
    snippet: str, adj_snippet: str | None = None, replay_snippet: str | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function of the kernel language whose body is C++: the decorated one is a stub.

    Args:
        snippet: the body. It names the parameters; arrays are indexed `a[i]`, `a[i][j]` or
            `a(i, j)`. It returns a value where the stub has an annotated result.
        adj_snippet: its adjoint. For a float parameter `x`, `adj_x` is the adjoint to add to,
            for a float array `a`, `adj_a[i]` is its gradient, and `adj_ret` is the cotangent
            of the result. It is the whole adjoint: the gradient of an element that the
            snippet overwrites stays as it is unless `adj_snippet` sets it to zero. Without
            it, gradients stop at the function, with a warning and a finding in checks.
        replay_snippet: what the backward pass runs in place of `snippet` to get at the values
            that it needs again. Without one, it takes them from the launch.

    `engine/codegen/native/snippet.h` lists the types and functions that snippets can use.
    """
    for what, text in (("snippet", snippet), ("adj_snippet", adj_snippet),
                       ("replay_snippet", replay_snippet)):  # fmt: skip
        if not isinstance(text, str) and (text is not None or what == "snippet"):
            raise KernelError(
                Diagnostic("E103", f"@func_native: {what} must be a string, got {text!r}")
            )

    def make(function: Callable[..., Any]) -> Any:
        _check_function(function, "func_native")
        snippets = Snippets(snippet, adj_snippet, replay_snippet)
        return NativeFunc(function, snippets, defined_before(function))

    return make


class _Adjoint:
    """`adjoint[x]` in a function made by `@func_grad`: the derivative of its input `x`."""

    __builtin_name__ = "adjoint"

    def __getitem__(self, key: object) -> Any:
        raise fail("E106", "adjoint[...] is valid only in a function with @func_grad")

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
