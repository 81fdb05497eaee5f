"""Launches that are recorded once and run many times: `Launch`, or `launch(record_cmd=True)`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.accelerator import accelerator
from engine.lang.structs import ARRAYS, StructType, TupleType, UserType
from engine.lang.types import ScalarType, shape_of
from engine.lang.vectors import vector_class
from engine.runtime import adjoint_launch, events
from engine.runtime.array import array
from engine.runtime.descriptors import value_of
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.kernel import Kernel
from engine.runtime.launch import bind, grid, run
from engine.runtime.launch_errors import fail
from engine.runtime.pack import Mismatch, as_array, packer
from engine.runtime.streams import shaped

if TYPE_CHECKING:
    from engine.runtime.plan_parts import BoundLaunch


class Launch:
    """A kernel with a grid and arguments, launched by `launch()`. No tape records it.

    Arguments that are arrays, structs and vectors are referred to: each launch takes them as they
    are then. Those that nobody sets are zero, and None for arrays.

    Args:
        kernel: a kernel that is not generic, or an instance of one.
        device: where it runs, the current device for None.
        hooks, params_addr: accepted; compiled code is found by the kernel.
        params: the arguments, by position.
        bounds: the grid; empty where left out.
        max_blocks, block_dim: as of `launch`.
        adjoint: launches run the adjoint, as `launch(adjoint=True)` does.

    Raises LaunchError: E202 for what is no kernel, E205 for a bad grid; KernelError.
    """

    def __init__(
        self,
        kernel: Kernel,
        device: DeviceLike = None,
        hooks: Any = None,
        params: Sequence[Any] | None = None,
        params_addr: Any = None,
        bounds: Any = None,
        max_blocks: int = 0,
        block_dim: int = 256,
        adjoint: bool = False,
    ) -> None:
        del hooks, params_addr
        if not isinstance(kernel, Kernel):
            raise fail("E202", f"Launch takes a function decorated with @kernel, got {kernel!r}")
        self.kernel = kernel
        self.device = get_device(device)
        self.max_blocks = max_blocks
        self.block_dim = block_dim
        self.stream: object = None  # where launches go that name none; None for the current one
        self.adjoint = adjoint
        plan = kernel.plan
        self._plan = plan
        shown = plan.params if plan.arguments is None else plan.arguments.arguments
        shown = shown[: len(plan.given)]
        self._names = [p.name for p in shown]
        self._kinds: list[UserType] = [
            p.kind if plan.arguments is None else p.type  # type: ignore[union-attr]
            for p in shown
        ]
        self.params: list[Any] = [_zero(t) for t in self._kinds]
        # Of an adjoint: gradients by position, None for an argument's own.
        self.adjoints: list[Any] = [None] * len(self.params)
        self.dim: tuple[int, ...] = (0,)
        self._backend = self.device.backend
        if params is not None:
            self.set_params(params)
        if bounds is not None:
            self.set_dim(bounds)

    def set_dim(self, dim: Any) -> None:
        """Changes the grid. Raises LaunchError (E205)."""
        self.dim = grid(dim, self.kernel)

    def set_param_at_index(self, index: int, value: Any, adjoint: bool = False) -> None:
        """Changes one argument, or with `adjoint` its gradient.

        Raises LaunchError: E201 where there is none of that position, E202 and E203 for a value
        that does not fit.
        """
        k = self._position(index)
        if adjoint:
            self.adjoints[k] = value
            return
        self.params[k] = self._checked(k, value)

    def set_param_by_name(self, name: str, value: Any, adjoint: bool = False) -> None:
        """The same for the argument of a parameter."""
        self.set_param_at_index(self._index(name), value, adjoint)

    def set_param_at_index_from_ctype(self, index: int, value: Any, adjoint: bool = False) -> None:
        """The same for a number, or a C structure as `__ctype__()` of a struct or array gives it.

        What the structure has addresses of has to live as long as it is launched.
        """
        k = self._position(index)
        try:
            value = value_of(value, self._kinds[k])
        except Mismatch as e:
            raise self._mismatch(k, e) from None
        self.set_param_at_index(k, value, adjoint)

    def set_param_by_name_from_ctype(self, name: str, value: Any) -> None:
        """The same for the argument of a parameter."""
        self.set_param_at_index_from_ctype(self._index(name), value)

    def set_params(self, values: Sequence[Any]) -> None:
        """Changes the first arguments, or all of them, or none where one does not fit.

        Raises LaunchError as `set_param_at_index` does, and E201 for what is no sequence.
        """
        if isinstance(values, array) or not isinstance(values, Iterable):
            raise fail("E201", f"set_params takes a sequence of arguments, got {values!r}")
        checked = [self._checked(self._position(k), value) for k, value in enumerate(values)]
        self.params[: len(checked)] = checked

    def set_params_from_ctypes(self, values: Sequence[Any]) -> None:
        """The same for C structures and numbers."""
        for k, value in enumerate(values):
            self.set_param_at_index_from_ctype(k, value)

    def launch(self, stream: object = None) -> None:
        """Runs the kernel, or its adjoint. Raises what `launch` does.

        stream: where a GPU queues it; None for that of the recording, or else the current one.

        In the block of a tape it is not recorded either (`adtool check` tells of it: G004).
        """
        stream = self.stream if stream is None else stream
        shaped_so = stream is not None or self.max_blocks or self.block_dim != 256
        if shaped_so and not self._backend.on_host:
            with shaped(stream, self.block_dim, self.max_blocks):
                self._run()
        else:
            self._run()

    def _run(self) -> None:
        kernel, dim, params, device = self.kernel, self.dim, self.params, self.device
        if self.adjoint:
            bound = bind(kernel, dim, params, (), device, recorded=False, adjoint=True)
            adjoint_launch.launch(bound, list(self.adjoints))
            return
        if accelerator.try_run(kernel, dim, params, (), device, None, False):
            return
        before = events.here.get()
        try:
            events.here.set(events.passing_over("command"))
            run(bind(kernel, dim, params, (), device))
        finally:  # whatever a signal's handler interrupts
            events.here.set(before)

    def _position(self, index: Any) -> int:
        count = len(self.params)
        if not isinstance(index, int) or not -count <= index < count:
            raise fail("E201", f"kernel {self.kernel.key!r} has no parameter {index!r}",
                       f"expected 0 to {count - 1}")  # fmt: skip
        return index % count

    def _index(self, name: str) -> int:
        if name not in self._names:
            raise fail("E201", f"kernel {self.kernel.key!r} has no parameter {name!r}",
                       f"its parameters are {', '.join(self._names)}")  # fmt: skip
        return self._names.index(name)

    def _checked(self, k: int, value: Any) -> Any:
        kind = self._kinds[k]
        try:
            if self._plan.arguments is not None:
                self._plan.arguments.split(k, value)
            elif isinstance(kind, ARRAYS):
                as_array(value, self._plan.params[k].array_kind)  # type: ignore[arg-type]
            if not isinstance(kind, (StructType, TupleType, *ARRAYS)):
                packer(kind)(value)
        except Mismatch as e:
            raise self._mismatch(k, e) from None
        return value

    def _mismatch(self, k: int, e: Mismatch) -> Exception:
        plan = self._plan
        param = plan.params[k] if plan.arguments is None else plan.arguments.arguments[k]
        return plan.mismatch(param, e)

    def __repr__(self) -> str:
        return f"<launch of {self.kernel.key}, dim={self.dim}>"


def _zero(t: UserType) -> Any:
    if isinstance(t, StructType):
        return t.cls()
    if isinstance(t, TupleType):
        return tuple(_zero(item) for item in t.items)
    if isinstance(t, ScalarType):
        return {"f": 0.0, "b": False}.get(t.kind, 0)
    if isinstance(t, ARRAYS):
        return None
    return vector_class(t)._of(np.zeros(shape_of(t)))


def make_command(bound: BoundLaunch, device: DeviceLike, adjoints: Sequence[Any] | None) -> Launch:
    """A launch that is recorded in place of being run."""
    kernel, values = bound.plan.kernel, list(bound.given)
    out = Launch(kernel, device, bounds=bound.dim, adjoint=adjoints is not None)
    out.params = values
    if adjoints is not None:
        out.adjoints = [*adjoints, *out.adjoints][: len(values)]
    return out
