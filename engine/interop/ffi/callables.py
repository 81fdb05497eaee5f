"""`jax_callable`: a Python function that launches kernels, as a function of JAX arrays."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from inspect import isfunction, ismethod
from typing import Any

from engine.frontend import signature_of
from engine.interop.ffi import modes, primitive
from engine.interop.ffi import signature as sig
from engine.interop.ffi.modes import JaxCallableGraphMode, JaxModulePreloadMode
from engine.interop.ffi.operation import Base, Compiled, Operation, Slot
from engine.interop.ffi.program import Shape
from engine.interop.ffi.signature import Signature
from engine.lang.definition import Definition
from engine.lang.strided import row_major
from engine.lang.types import ArrayType
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.device import HOST, ScopedDevice
from engine.runtime.launch_errors import fail
from engine.runtime.storage import Storage


def jax_callable(
    func: Callable[..., Any],
    num_outputs: int = 1,
    graph_mode: JaxCallableGraphMode | int = JaxCallableGraphMode.JAX,
    vmap_method: str | None = "broadcast_all",
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    stage_in_argnames: Sequence[str] | None = None,
    stage_out_argnames: Sequence[str] | None = None,
    graph_cache_max: int | None = modes.DEFAULT_GRAPH_CACHE_MAX,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    has_side_effect: bool = False,
    graph_compatible: bool | None = None,
) -> JaxCallable:
    """A function of JAX arrays that calls a Python function, which launches kernels.

    Args:
        func: its parameters are annotated like those of a kernel, and it returns nothing: it
            gets an array for each array parameter, inputs first, and fills the outputs. Arrays
            are JAX's own memory, and must not be kept; inputs cannot be written.
        num_outputs: how many parameters are outputs, those of `in_out_argnames` among them.
        graph_mode: how launches are captured on a GPU (see `JaxCallableGraphMode`).
        vmap_method: how `vmap` runs a batch, as of `jax_kernel`: by a call for each of it.
        output_dims: the shape of outputs, of all or by name; that of the first input array for
            None.
        in_out_argnames: inputs that it changes: each is an output, too, before the others.
        stage_in_argnames: of graphs with staged copies; it means nothing on the CPU.
        stage_out_argnames: the same.
        graph_cache_max: how many captured graphs are kept; none is captured on the CPU.
        module_preload_mode: accepted; kernels are compiled when the function launches them.
        has_side_effect: whether it must be called where its outputs are not used.
        graph_compatible: the older form of `graph_mode`: JAX for True, NONE for False.

    It has no derivative: write one by `jax.custom_vjp`, or use `jax_kernel`. A tape that is active
    around the call records nothing of it.

    Raises LaunchError: E201 (counts, names), E202 (types). Calls raise these, E203 (dimensions),
    E213 (a graph mode that the CPU does not have). What the function raises arrives as an error of
    JAX with the message.
    """
    sig.require_jax()
    what = f"jax_callable({getattr(func, '__name__', func)})"
    if not callable(func) or not hasattr(func, "__code__"):
        raise fail("E202", f"jax_callable takes a Python function, got {func!r:.80}")
    sig.check_method(what, vmap_method)
    if graph_compatible is not None:
        graph_mode = JaxCallableGraphMode.JAX if graph_compatible else JaxCallableGraphMode.NONE
    names = [
        tuple([x] if isinstance(x, str) else x or ())
        for x in (in_out_argnames, stage_in_argnames, stage_out_argnames)
    ]
    settings = (
        num_outputs, JaxCallableGraphMode(graph_mode), vmap_method, sig.hashable(output_dims),
        *names, JaxModulePreloadMode(module_preload_mode), bool(has_side_effect),
    )  # fmt: skip
    # Kept by the function itself, so that both go together.
    known: dict[Any, JaxCallable] = (
        func.__dict__.setdefault("__jax_callables__", {}) if isfunction(func) else {}
    )
    found = known.get(settings)
    if found is None:
        made = JaxCallable(
            func,
            num_outputs,
            settings[1],
            vmap_method,
            output_dims,
            names[0],
            bool(has_side_effect),
        )
        found = known.setdefault(settings, made)
        found.stage_in_argnames = frozenset(names[1]) or None
        found.stage_out_argnames = frozenset(names[2]) or None
    found.graph_cache_max = graph_cache_max
    return found


def clear_jax_callable_graph_cache(callable: JaxCallable | None = None) -> None:
    """Forgets graphs captured for one `jax_callable`, or for all; there are none on the CPU."""
    if callable is not None and not isinstance(callable, JaxCallable):
        raise fail("E202", f"clear_jax_callable_graph_cache takes a result of jax_callable, got "
                   f"{callable!r:.80}")  # fmt: skip


def get_jax_callable_default_graph_cache_max() -> int | None:
    """How many graphs each `jax_callable` keeps that is not told."""
    return modes.DEFAULT_GRAPH_CACHE_MAX


def set_jax_callable_default_graph_cache_max(cache_max: int | None) -> None:
    """Sets that, for those that are made from now on by `jax_callable(..., graph_cache_max=...)`.

    None is no limit. Graphs are of a GPU: on the CPU the number means nothing.
    """
    modes.DEFAULT_GRAPH_CACHE_MAX = cache_max  # type: ignore[assignment]


class JaxCallable(Definition):
    """What `jax_callable` makes. What it says of graphs means nothing on the CPU."""

    graph_cache_max: int | None = None
    stage_in_argnames: frozenset[str] | None = None
    stage_out_argnames: frozenset[str] | None = None
    graph_cache_size = 0

    def __init__(
        self, func: Callable[..., Any], num_outputs: Any, graph_mode: JaxCallableGraphMode,
        vmap_method: str | None, output_dims: Any, in_out: tuple[str, ...], effect: bool,
    ) -> None:  # fmt: skip
        self.func, self.num_outputs, self.graph_mode = func, num_outputs, graph_mode
        self.vmap_method, self.output_dims, self.has_side_effect = vmap_method, output_dims, effect
        self._given = in_out
        self.__name__ = func.__name__
        what = f"function {func.__name__!r}"
        types = dict(signature_of(func, kernel=False).types)
        if ismethod(func):
            del types[next(iter(types))]
        inputs, both = sig.split(what, tuple(types), num_outputs, in_out)
        missing = [n for n, t in types.items() if t is None]
        if missing:
            raise fail("E202", f"{what}: parameter {missing[0]!r} has no annotation that says its "
                       "type", help="annotate it like a kernel's: array(dtype=float)")  # fmt: skip
        self._signature = Signature(what, types, inputs, both)  # type: ignore[arg-type]
        sig.check_types(self._signature)
        self._bases: dict[Any, _CallableBase] = {}

    def _made(self) -> tuple[Any, ...]:
        return jax_callable, (
            self.func, self.num_outputs, self.graph_mode, self.vmap_method, self.output_dims,
            self._given, self.stage_in_argnames, self.stage_out_argnames, self.graph_cache_max,
            JaxModulePreloadMode.CURRENT_DEVICE, self.has_side_effect,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<jax_callable {self.func.__name__}>"

    def __call__(self, *args: Any, output_dims: Any = None, vmap_method: Any = None) -> list[Any]:
        """The outputs for these inputs. See `jax_callable`."""
        s = self._signature
        if output_dims is None:
            output_dims = self.output_dims
        if vmap_method is None:
            vmap_method = self.vmap_method
        sig.check_method(s.what, vmap_method)
        if self.graph_mode > JaxCallableGraphMode.JAX:
            mode = self.graph_mode.name
            raise fail("E213", f"{s.what}: graph_mode {mode} captures a graph of a GPU, and the "
                       "call is for the CPU",
                       help="pass JaxCallableGraphMode.JAX or NONE")  # fmt: skip
        if len(args) != s.inputs:
            names = ", ".join(s.names[: s.inputs])
            raise s.fail("E201", f"it expects {s.inputs} inputs ({names}), got {len(args)}")
        slots: dict[str, Slot] = {}
        static: list[Any] = []
        operands: list[Any] = []
        first: Shape | None = None
        for (name, kind), value in zip(s.types.items(), args, strict=False):
            if isinstance(kind, ArrayType):
                slots[name] = sig.input_slot(s, name, kind, value)
                if first is None:
                    first = slots[name].shape[: kind.ndim]
            elif sig.is_traced(value):
                slots[name], value = sig.scalar_slot(s, name, kind, value)
            else:
                static.append((name, value))
                continue
            operands.append(value)
        outputs = [slots[n] for n in s.names[: s.inputs] if n in s.in_out]
        outputs += sig.output_slots(s, output_dims, first)
        base = self._base(tuple(slots.values()), tuple(outputs), static)
        op = Operation(
            base, "value", leads=((),) * len(operands), outs=((),) * len(outputs), vmap=vmap_method
        )
        return primitive.bind(op, primitive.aligned(operands))

    def _base(
        self, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...], static: list[Any]
    ) -> _CallableBase:
        values = sig.static_key([v for _, v in static])
        key = None if values is None else (inputs, outputs, values)
        found = self._bases.get(key) if key is not None else None
        if found is None:
            found = _CallableBase(self, inputs, outputs, dict(static))
            if key is not None:
                self._bases[key] = found
        return found

    @property
    def signature(self) -> Signature:
        """Its parameters."""
        return self._signature


class _CallableBase(Base):
    """A Python function at fixed shapes, with its static values."""

    def __init__(
        self, made: JaxCallable, inputs: tuple[Slot, ...], outputs: tuple[Slot, ...],
        static: dict[str, Any],
    ) -> None:  # fmt: skip
        s = made.signature
        self.made, self.static, self.name = made, static, made.func.__name__
        self.inputs, self.outputs, self.effect = inputs, outputs, made.has_side_effect
        names = [slot.name for slot in outputs]
        self.in_out = {k: names.index(x.name) for k, x in enumerate(inputs) if x.name in s.in_out}
        # Of this process alone, so that no compiled function that JAX kept on disk has it.
        self.token = secrets.randbits(62)

    def check_differentiable(self) -> None:
        raise fail("E401", f"function {self.name!r} was made a JAX function without derivatives",
                   help="define one with jax.custom_vjp, or call its kernels with "
                        "jax_kernel(..., enable_backward=True)")  # fmt: skip

    def compiled(self, op: Operation) -> Compiled:
        results = tuple((s, op.batch) for s in self.outputs)
        return Compiled(_CallableProgram(self, op), results, dict(self.in_out), frozenset())


class _CallableProgram:
    """Calls the function, once for each element of a batch."""

    def __init__(self, base: _CallableBase, op: Operation) -> None:
        self.base, self.batch = base, op.batch
        self.leads = [*op.leads, *((op.batch,) * len(base.outputs))]

    def prepare(self) -> None:
        """Compiles nothing: the function launches what it will."""

    def number(self) -> int:
        """A number of this function, of its values and of this batch."""
        return self.base.token ^ hash((self.batch, tuple(self.leads))) & ((1 << 62) - 1)

    def run(self, pointers: tuple[int, ...]) -> None:
        """Calls it. Raises what it raises."""
        before = events.without_recording()
        try:
            with ScopedDevice(HOST):
                for index in itertools.product(*map(range, self.batch)):
                    self.base.made.func(*self._arguments(pointers, index))
        finally:
            events.restore(before)

    def _arguments(self, pointers: tuple[int, ...], index: Shape) -> list[Any]:
        base, s = self.base, self.base.made.signature
        inputs = {slot.name: k for k, slot in enumerate(base.inputs)}
        outputs = {slot.name: len(inputs) + k for k, slot in enumerate(base.outputs)}
        slots = [*base.inputs, *base.outputs]
        out: list[Any] = []
        for name, kind in s.types.items():
            if name in base.static:
                out.append(base.static[name])
                continue
            k = outputs.get(name, inputs.get(name, 0))
            slot, at = slots[k], pointers[k] + _offset(self.leads[k], index, slots[k].nbytes)
            writable = name in outputs
            if isinstance(kind, ArrayType):
                out.append(_array(at, slot.shape[: kind.ndim], kind.element, writable))
            else:
                out.append(_array(at, (1,), kind, False).numpy()[0])
        return out


def _offset(lead: Shape, index: Shape, nbytes: int) -> int:
    """Where the array of one element of the batch begins."""
    number = 0
    for n, i in zip(lead, index, strict=True):
        number = number * n + (i if n != 1 else 0)
    return number * nbytes


def _array(at: int, shape: Shape, kind: Any, writable: bool) -> array:
    """Memory of JAX as an array, which is nobody's after the call."""
    strides = row_major(shape, kind.size)
    nbytes = kind.size
    for n in shape:
        nbytes *= n
    storage = Storage(None, at, nbytes, HOST, external=True, writable=writable)
    return array._make(storage, at, shape, strides, kind)
