"""`torch_kernel`: an operator of PyTorch made from a kernel in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from engine.interop.ops.program import Program
from engine.interop.ops.tensors import checked, inner_of, number
from engine.interop.ops.torch_ops import Operators, operators
from engine.lang.definition import Definition
from engine.lang.types import ScalarType
from engine.runtime.device import HOST
from engine.runtime.foreign import plain
from engine.runtime.kernel import Kernel
from engine.runtime.launch import grid
from engine.runtime.launch_errors import fail
from engine.runtime.plan_parts import Param

Dims = int | Sequence[int]


def torch_kernel(
    kernel: Kernel,
    num_outputs: int = 1,
    launch_dims: Dims | None = None,
    output_dims: Dims | Mapping[str, Dims] | None = None,
    in_out_argnames: Iterable[str] = (),
    order: int = 1,
    name: str | None = None,
) -> TorchKernel:
    """An operator of PyTorch that launches a kernel, with its adjoint kernel as backward.

    Args:
        kernel: its last array parameters are outputs: the operator makes and returns them.
            What the kernel does not write of them is zero. Vectors and matrices are the last
            axes of tensors. All that it writes must be outputs, or named as `in_out_argnames`.
        num_outputs: how many results there are, those of `in_out_argnames` included.
        launch_dims: the grid; the shape of the first array where left out.
        output_dims: the shape of the outputs, or a dictionary with some of them; the grid where
            left out, or the shape of the first array where the grid has other dimensions. Axes of
            components may be left out. Both can be given in a call, too.
        in_out_argnames: parameters that the kernel changes. The tensor that is passed stays as
            it is, and a changed copy is a result, before the outputs.
        order: how often it can be differentiated.
        name: of the operator, as "namespace::name"; one of its own where left out.

    The result is called with the kernel's arguments up to the outputs, tensors and numbers, by
    position or by name, and gives a tensor, or a tuple of several. It works under
    `torch.compile(fullgraph=True)`, `torch.func` (grad, vjp, jvp, jacrev, jacfwd, vmap), forward
    mode, checkpointing. Values that the kernel overwrites and its adjoint needs are saved by a
    second run in the backward pass.

    Raises LaunchError: E202 for a kernel, names or an order that will not do, E201 for a number of
    outputs that it cannot have. A call raises E201 (count), E202 (type), E203 (shape), E204
    (device), E205 (grid).

    ::

        square = torch_kernel(square_kernel)
        y = square(x)
        y.sum().backward()
    """
    if not isinstance(kernel, Kernel):
        raise fail("E202", f"torch_kernel takes a kernel, got {kernel!r:.80}",
                   help="decorate the function with @kernel")  # fmt: skip
    return TorchKernel(kernel, num_outputs, launch_dims, output_dims, in_out_argnames, order, name)


class TorchKernel(Definition):
    """A kernel as a function of tensors; see `torch_kernel`. `op` is the operator itself."""

    def __init__(
        self, kernel: Kernel, num_outputs: int, launch_dims: Dims | None,
        output_dims: Dims | Mapping[str, Dims] | None, in_out_argnames: Iterable[str],
        order: int, name: str | None,
    ) -> None:  # fmt: skip
        if kernel.is_generic:
            raise fail("E202", f"kernel {kernel.key!r} is generic, and an operator has one type",
                       help="make one of an instance: `overload(kernel, [types])`")  # fmt: skip
        if isinstance(order, bool) or not isinstance(order, int) or order < 1:
            raise fail(
                "E202", f"an operator can be differentiated once or more, got order={order!r}"
            )
        plan = kernel.plan.on(HOST.backend)
        if plan.arguments is not None:
            raise fail("E202", f"kernel {kernel.key!r} takes structs or queries geometry, and "
                       "arguments of an operator are tensors and numbers",
                       help="pass the fields as parameters of their own")  # fmt: skip
        changed = _names(in_out_argnames)
        if isinstance(num_outputs, bool) or not isinstance(num_outputs, int):
            raise fail("E201", f"num_outputs is a number, got {num_outputs!r:.80}")
        self.kernel = kernel
        self._settings = num_outputs, launch_dims, output_dims, changed, order, name
        self._outputs = _outputs(kernel, plan.params, num_outputs, changed)
        written = [p.name for p in plan.params if p.index in plan.writes]
        loose = [k for k in written if k not in changed and k not in self._outputs]
        if loose:
            raise fail("E202", f"kernel {kernel.key!r} writes its input {loose[0]!r}",
                       help=f"name it in in_out_argnames=[{loose[0]!r}], or declare "
                            f"more outputs: num_outputs={num_outputs + len(loose)}")  # fmt: skip
        self._program = Program(plan, changed, self._outputs)
        self._operators: Operators = operators(self._program, order, name)
        self._given = tuple(p for p in plan.params if p.name not in self._outputs)
        self._order = [
            *(self._given.index(p) for p in self._program.inputs),
            *(self._given.index(p) for p in self._program.numbers),
        ]
        self._flat = [p.array_kind is None and not isinstance(p.kind, ScalarType)
                      for p in self._given]  # fmt: skip
        self._ndims = [p.array_kind.ndim for p in self._program.outputs if p.array_kind]
        arrays = [p for p in self._given if p.array_kind is not None]
        self._first = self._given.index(arrays[0]) if arrays else -1
        self._first_ndim = arrays[0].array_kind.ndim if arrays and arrays[0].array_kind else 0
        self._launch_dims = None if launch_dims is None else list(grid(launch_dims, kernel))
        self._output_dims = self._shapes(output_dims)
        self.__name__ = kernel.__name__
        self.__doc__ = kernel.__doc__

    def _made(self) -> tuple[Any, ...]:
        return torch_kernel, (self.kernel, *self._settings)

    @property
    def op(self) -> Any:
        """The operator, for `torch.library.opcheck` and graphs."""
        return self._operators.overload

    def __repr__(self) -> str:
        return f"<operator {self._operators.name}>"

    def __call__(
        self, *args: Any, launch_dims: Dims | None = None, output_dims: Any = None, **named: Any
    ) -> Any:
        import torch

        if named:
            args = self._in_order(args, named)
        compiling = torch.compiler.is_compiling()
        if not compiling:
            self._check(args)
        dim = self._dim(args) if launch_dims is None else list(grid(launch_dims, self.kernel))
        found = self._output_dims if output_dims is None else self._shapes(output_dims)
        shapes = []
        for shape, ndim in zip(found, self._ndims):  # noqa: B905 (compiled graphs know no strict)
            if shape is None:
                shape = dim
                if len(dim) != ndim:
                    shape = self._first_shape(args)
                    if len(shape) != ndim:
                        raise self._no_shape(dim)
            shapes += list(shape)
        flat = [_components(args[k]) if self._flat[k] else args[k] for k in self._order]
        return self._operators.forward(*flat, dim, shapes)

    def _in_order(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Arguments by position and by name in the order of the parameters."""
        names = [p.name for p in self._given]
        free = names[len(args) :]
        why = [f"{k!r} is given twice" if k in names else f"it has no {k!r}"
               for k in named if k not in free]  # fmt: skip
        why += [f"it lacks {k!r}" for k in free if k not in named]
        if why:
            made = any(k in named for k in self._outputs)
            raise fail("E201", f"the operator of kernel {self.kernel.key!r} cannot take these "
                       f"arguments: {why[0]}", f"its parameters are {', '.join(names)}",
                       help="outputs are made, and not passed" if made else "")  # fmt: skip
        return (*args, *[named[k] for k in free])

    def _check(self, args: Sequence[Any]) -> None:
        if len(args) != len(self._given):
            names = ", ".join(p.name for p in self._given)
            raise fail("E201", f"the operator of kernel {self.kernel.key!r} got the wrong number "
                       "of arguments", f"expected {len(self._given)} ({names}), got {len(args)}",
                       help="outputs are made, and not passed" if len(args) > len(self._given)
                       else "")  # fmt: skip
        for p, v in zip(self._given, args, strict=True):
            if p.array_kind is not None:
                checked(self._program, p, v)
            else:
                number(self._program, p, v)

    def _dim(self, args: Sequence[Any]) -> list[Any]:
        if self._launch_dims is not None:
            return self._launch_dims
        if self._first < 0:
            raise fail("E205", f"the operator of kernel {self.kernel.key!r} has no tensor to take "
                       "its grid from", help="give `launch_dims`")  # fmt: skip
        return self._first_shape(args)

    def _first_shape(self, args: Sequence[Any]) -> list[Any]:
        """The shape of the first array, without the axes of components."""
        return list(args[self._first].shape[: self._first_ndim]) if self._first >= 0 else []

    def _shapes(self, given: Any) -> list[list[int] | None]:
        """The shape of each output, None where it is the grid."""
        outputs = self._program.outputs
        if isinstance(given, Mapping):
            unknown = [k for k in given if k not in self._outputs]
            if unknown:
                raise fail("E202", f"kernel {self.kernel.key!r} has no output {unknown[0]!r}",
                           f"its outputs are {', '.join(self._outputs)}")  # fmt: skip
            return [self._shape(p, given.get(p.name)) for p in outputs]
        return [self._shape(p, given) for p in outputs]

    def _shape(self, p: Param, given: Any) -> list[int] | None:
        if given is None:
            return None
        shape = list(grid(given, self.kernel))
        assert p.array_kind is not None
        inner, ndim = inner_of(p.array_kind), p.array_kind.ndim
        if inner and len(shape) == ndim + len(inner) and tuple(shape[ndim:]) == inner:
            return shape[:ndim]
        if len(shape) != ndim:
            more = " (axes of components are not counted)" if inner else ""
            raise fail(
                "E203", f"kernel {self.kernel.key!r}: output {p.name!r} has {p.array_kind.ndim} "
                f"dimensions{more}, got output_dims={given!r}",
            )  # fmt: skip
        return shape

    def _no_shape(self, dim: Sequence[Any]) -> Exception:
        return fail("E203", f"the operator of kernel {self.kernel.key!r}: the grid {tuple(dim)} "
                            "is not a valid shape for its outputs",
                    help="give `output_dims`")  # fmt: skip


def _names(given: Any) -> tuple[Any, ...]:
    """The names in `in_out_argnames`. Raises LaunchError (E202)."""
    if isinstance(given, str):
        return (given,)
    found = tuple(given) if isinstance(given, Iterable) else None
    if found is None or len(set(map(repr, found))) < len(found):
        raise fail("E202", "in_out_argnames is a list of names of parameters, each once",
                   f"got {given!r:.80}")  # fmt: skip
    return found


def _outputs(
    kernel: Kernel, params: Sequence[Param], num_outputs: int, changed: Sequence[str]
) -> list[str]:
    """The names of the parameters that are outputs alone. Raises LaunchError E201, E202."""
    named = {p.name: p for p in params}
    for k in changed:
        if k not in named or named[k].array_kind is None:
            raise fail("E202", f"kernel {kernel.key!r} has no array parameter {k!r}",
                       "it is named in in_out_argnames")  # fmt: skip
    count = num_outputs - len(changed)
    rest = [p for p in params if p.name not in changed]
    last = rest[len(rest) - count :] if 0 <= count <= len(rest) else None
    if last is None or num_outputs < 1 or any(p.array_kind is None for p in last):
        arrays = sum(p.array_kind is not None for p in params)
        raise fail("E201", f"kernel {kernel.key!r} cannot have num_outputs={num_outputs}",
                   f"it has {arrays} array parameters, and its last ones are outputs")  # fmt: skip
    return [p.name for p in last]


def _components(value: Any) -> list[Any]:
    """A vector or matrix as a flat list of its components."""
    if not (isinstance(value, (list, tuple)) or hasattr(value, "__ir_type__")):
        seen = value if isinstance(value, np.ndarray) else plain(value)
        if isinstance(seen, np.ndarray):
            found: list[Any] = seen.ravel().tolist()
            return found
    out: list[Any] = []
    for v in value:
        out += _components(v) if hasattr(v, "__len__") else [v]
    return out
