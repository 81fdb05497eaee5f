"""The PyTorch operators of a program: itself and its adjoint, each with a derivative.

Their arguments are tensors (a program's inputs), numbers, the grid and the shapes of the outputs,
those one after the other; the adjoint's are the same, then the cotangents of float results (None
where there is none), and for each float input whether its gradient is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from engine.cached import cached_property
from engine.interop.ops.program import Program
from engine.interop.ops.tensors import (
    array_of,
    checked,
    copied,
    inner_of,
    number,
    packable,
    packed,
    torch_dtype,
    zeros,
)
from engine.interop.ops.torch_formulas import Backward, Formula, Forward
from engine.lang.types import BOOL, ScalarType, Type, is_float, scalar_of
from engine.locks import Lock
from engine.runtime.launch_errors import fail
from engine.runtime.plan_parts import Param

# A namespace and a name, but none of PyTorch's own.
_NAME = re.compile(r"(?!(?:aten|prims?|quantized|profiler)::)[A-Za-z_]\w*::[A-Za-z_]\w*", re.ASCII)
_lock = Lock()
_made: dict[str, Operators] = {}


def operators(program: Program, order: int, name: str | None = None) -> Operators:
    """The operators of a program: the same for the same code, and a name of their own for other.

    Raises LaunchError (E202) for a name that other code has.
    """
    if name is not None and not (isinstance(name, str) and _NAME.fullmatch(name)):
        raise fail("E202", f"an operator cannot have the name {name!r:.80}",
                   help="give it a namespace of your own: name='mine::height'")  # fmt: skip
    full = name or f"engine::{_plain(program.key)}_{program.digest}" + f"_o{order}" * (order != 1)
    with _lock:
        found = _made.get(full)
        if found is None:
            if name is not None and _taken(name):
                raise fail("E202", f"the name {name!r} belongs to another operator of PyTorch",
                           help="leave `name` out, or choose another one")  # fmt: skip
            found = _made[full] = Operators(program, order, full)
    if found.program.digest != program.digest or found.order != order:
        raise fail("E202", f"the name {full!r} belongs to the operator of another kernel",
                   help="leave `name` out, or choose another one")  # fmt: skip
    return found


def _taken(name: str) -> bool:
    """Whether there is an operator of that name."""
    import torch

    space, _, own = name.partition("::")
    return hasattr(getattr(torch.ops, space), own)


class Operators:
    """Program and adjoint as operators, registered under a name."""

    def __init__(self, program: Program, order: int, name: str, whole: int = 0) -> None:
        self.program = program
        self.order = order
        self.whole = whole or order  # that of the operator which programs called
        self.name = name
        self.count = len(program.inputs)
        places = {p.name: k for k, p in enumerate(program.inputs)}
        self.float_inputs = tuple(places[p.name] for p in program.float_inputs)
        results = {p.name: k for k, p in enumerate(program.results)}
        self.float_results = tuple(results[p.name] for p in program.float_results)
        self._next: Operators | None = None
        if order > 1 and program.float_inputs and program.float_results:
            self._next = Operators(program.tangent, order - 1, f"{name}_tangent", self.whole)
        self._forward, self._forward_function = self._register(
            name, self._forward_schema, self._run_forward, self._fake_forward, Forward(self)
        )
        self._adjoint: Any = None
        if program.float_inputs and program.float_results:
            self._adjoint, self._adjoint_function = self._register(
                f"{name}_backward", self._adjoint_schema, self._run_adjoint, self._fake_adjoint,
                Backward(self),
            )  # fmt: skip

    @property
    def overload(self) -> Any:
        """The operator itself, as `torch.ops` has it."""
        return self._forward._opoverload

    def forward(self, *args: Any) -> Any:
        """Calls the program, so that every mode of derivatives goes through it."""
        return (self._forward_function if _functional() else self._forward)(*args)

    def adjoint(self, *args: Any) -> Any:
        """Calls the adjoint, in the same way."""
        return (self._adjoint_function if _functional() else self._adjoint)(*args)

    @cached_property
    def tangents(self) -> Operators:
        """Operators of the program of tangents, for forward mode."""
        if self._next is None:
            made = operators(self.program.tangent, max(self.order - 1, 1), f"{self.name}_tangent")
            self._next = made
        return self._next

    def _register(
        self, name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any],
        formula: Formula,
    ) -> tuple[Any, Any]:  # fmt: skip
        import torch

        op = torch.library.custom_op(name, run, mutates_args=(), schema=schema)
        op.register_fake(fake)
        op.register_autograd(formula.backward, setup_context=formula.setup_context)
        op.register_vmap(_one_by_one(op, fake))

        # With forward mode, which operators have not, and for `torch.func`.
        methods = {
            "forward": staticmethod(lambda *args: op(*args)),
            "setup_context": staticmethod(formula.setup_context),
            "backward": staticmethod(formula.backward),
            "jvp": staticmethod(formula.jvp),
            "vmap": staticmethod(_one_by_one(lambda *args: formula.call(*args), fake)),
        }
        function = type(name.rpartition("::")[2], (torch.autograd.Function,), methods)
        # Compiled graphs have no such functions: they end before, and go on after.
        free = torch.compiler.disable(
            function.apply,  # type: ignore[attr-defined]
            reason="torch_kernel: one graph cannot hold derivatives by torch.func or forward mode",
        )
        return op, free

    # ---- schemas

    @property
    def _arguments(self) -> list[str]:
        tensors = [f"Tensor {p.name}_" for p in self.program.inputs]
        numbers = [f"{_number_schema(p.kind)} {p.name}_" for p in self.program.numbers]
        return [*tensors, *numbers, "SymInt[] dim", "SymInt[] shapes"]

    @property
    def _forward_schema(self) -> str:
        return f"({', '.join(self._arguments)}) -> {_tensors(len(self.program.results))}"

    @property
    def _adjoint_schema(self) -> str:
        more = [f"Tensor? adj_{p.name}_" for p in self.program.float_results]
        every = ", ".join([*self._arguments, *more, "bool[] wanted"])
        return f"({every}) -> {_tensors(len(self.program.float_inputs))}"

    # ---- what they run

    def _packed(self, args: Sequence[Any]) -> tuple[list[bytes], list[Any], dict[str, Any]]:
        """The arguments but for the outputs; tensors to keep alive, and those by name."""
        program, params = self.program, self.program.plan
        parts = [b""] * params.count
        named: dict[str, Any] = {}
        for p, t in zip(program.inputs, args[: self.count], strict=True):
            checked(program, p, t)
            named[p.name] = packable(t, array_of(p))
            parts[p.index] = packed(named[p.name], array_of(p))
        for p, v in zip(program.numbers, args[self.count : -2], strict=True):
            parts[p.index] = number(program, p, v)
        return parts, list(named.values()), named

    def _results(self, parts: list[bytes], named: dict[str, Any], shapes: Any) -> list[Any]:
        """What the program writes: changed inputs as copies, and outputs that are zero."""
        made = [copied(named[p.name]) for p in self.program.changed]
        for p, shape in zip(self.program.outputs, self.split(shapes), strict=True):
            made.append(zeros(shape, scalar_of(p.kind)))
        for p, t in zip(self.program.results, made, strict=True):
            parts[p.index] = packed(t, array_of(p))
        return made

    def split(self, shapes: Sequence[Any]) -> list[tuple[Any, ...]]:
        out, at = [], 0
        for p in self.program.outputs:
            kind = array_of(p)
            out.append((*shapes[at : at + kind.ndim], *inner_of(kind)))
            at += kind.ndim
        return out

    def _run_forward(self, *args: Any) -> Any:
        parts, _alive, named = self._packed(args)
        made = self._results(parts, named, args[-1])
        self.program.forward(tuple(args[-2]), parts)
        return made[0] if len(made) == 1 else tuple(made)

    def _run_adjoint(self, *args: Any) -> Any:
        import torch

        program = self.program
        wanted, count = args[-1], len(program.float_results)
        given, args = args[-1 - count : -1], args[: -1 - count]
        dim = tuple(args[-2])
        parts, _alive, named = self._packed(args)
        cotangents = dict(zip((p.name for p in program.float_results), given, strict=True))
        inputs = [p for p, want in zip(program.float_inputs, wanted, strict=True) if want]
        # A result without a cotangent that nothing reads takes no part.
        results = [p for p in program.float_results if cotangents[p.name] is not None
                   or p.name in program.variants.read]  # fmt: skip
        names = {p.name for p in (*inputs, *results)}
        wrt = frozenset(names)
        program.check(dim, wrt)
        outer = dict(zip((p.name for p in program.outputs), self.split(args[-1]), strict=True))
        grads: dict[str, Any] = {}
        for p in program.plan.floats:
            if p.name not in wrt:
                continue
            c = cotangents.get(p.name)
            shape = outer[p.name] if p.name in outer else named[p.name].shape
            grads[p.name] = zeros(shape, scalar_of(p.kind)) if c is None else copied(c)
        journal = None
        if 0 not in dim:
            if program.touched(wrt):
                made = self._results(parts, named, args[-1])
                journal = program.recorded(dim, parts, wrt)
            else:
                made = self._shapes_only(parts, grads, outer)
            given_grads = [packed(g, array_of(p)) for p in program.plan.floats
                           if (g := grads.get(p.name)) is not None]  # fmt: skip
            program.adjoint(dim, parts, given_grads, wrt, journal)
            del made
        out = [
            grads[p.name] if want else torch.empty(0, dtype=torch_dtype(scalar_of(p.kind)))
            for p, want in zip(program.float_inputs, wanted, strict=True)
        ]
        return out[0] if len(out) == 1 else tuple(out)

    def _shapes_only(
        self, parts: list[bytes], grads: dict[str, Any], outer: dict[str, tuple[int, ...]]
    ) -> list[Any]:
        """Outputs of which the adjoint reads the shapes alone."""
        import torch

        made = []
        for p in self.program.outputs:
            t = grads.get(p.name)
            if t is None:
                t = torch.empty(outer[p.name], dtype=torch_dtype(scalar_of(p.kind)))
                made.append(t)
            parts[p.index] = packed(t, array_of(p))
        return made

    # ---- the same without numbers, for who compiles graphs

    def _fake_forward(self, *args: Any) -> Any:
        first = args[0] if self.count else None
        named = dict(zip((p.name for p in self.program.inputs), args, strict=False))
        for p in self.program.inputs:
            checked(self.program, p, named[p.name])
        made = [_empty(named[p.name], tuple(named[p.name].shape), p) for p in self.program.changed]
        made += [
            _empty(first, shape, p)
            for p, shape in zip(self.program.outputs, self.split(args[-1]), strict=True)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    def _fake_adjoint(self, *args: Any) -> Any:
        made = []
        for at, p, want in zip(self.float_inputs, self.program.float_inputs, args[-1],
                               strict=True):  # fmt: skip
            shape = tuple(args[at].shape) if want else (0,)
            made.append(_empty(args[at], shape, p))
        return made[0] if len(made) == 1 else tuple(made)


def _functional() -> bool:
    """Whether forward mode or a transform of `torch.func` is on, which operators leave out."""
    import torch

    moving = torch.autograd.forward_ad._current_level >= 0
    active = torch._C._are_functorch_transforms_active()
    if active and torch.compiler.is_compiling():  # an operator has a rule for batches
        return bool(moving or not _batch_alone())
    return bool(moving or active)


def _batch_alone() -> bool:
    """Whether the one transform that is on is `vmap`, as compiled graphs may ask it."""
    import torch

    inner = torch._C._functorch
    top = torch._functorch.pyfunctorch.coerce_cinterpreter(inner.peek_interpreter_stack())
    return bool(top.key() == inner.TransformType.Vmap and top.level() == 1)


def _one_by_one(call: Callable[..., Any], fake: Callable[..., Any]) -> Callable[..., Any]:
    """The rule of `vmap`: a call for each element of the batch. fake: makes results' shapes."""

    def rule(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
        import torch

        made = []
        if not info.batch_size:
            one = fake(*(a.new_empty([n for i, n in enumerate(a.shape) if i != d % a.dim()])
                         if isinstance(d, int) else a
                         for a, d in zip(args, in_dims, strict=True)))  # fmt: skip
            none = [t.new_empty((0, *t.shape)) for t in (one if isinstance(one, tuple) else [one])]
            return (tuple(none), (0,) * len(none)) if isinstance(one, tuple) else (none[0], 0)
        for k in range(info.batch_size):
            made.append(call(*(a.select(d, k) if isinstance(d, int) else a
                               for a, d in zip(args, in_dims, strict=True))))  # fmt: skip
        if not isinstance(made[0], tuple):
            return torch.stack(made), 0
        return tuple(torch.stack(ts) for ts in zip(*made, strict=True)), (0,) * len(made[0])

    return rule


def _empty(like: Any, shape: tuple[Any, ...], p: Param) -> Any:
    import torch

    dtype = torch_dtype(scalar_of(p.kind))
    return torch.empty(shape, dtype=dtype) if like is None else like.new_empty(shape, dtype=dtype)


def _number_schema(kind: Type) -> str:
    scalar = scalar_of(kind)
    word = "float" if is_float(kind) else "bool" if scalar == BOOL else "SymInt"
    return word if isinstance(kind, ScalarType) else f"{word}[]"


def _tensors(count: int) -> str:
    return "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)
