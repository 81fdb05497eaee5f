"""`jax_kernel`: a kernel as a function of JAX arrays."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.compile.pipeline import Variants
from engine.interop.ffi import primitive
from engine.interop.ffi import signature as sig
from engine.interop.ffi.loaded import loaded
from engine.interop.ffi.modes import JaxModulePreloadMode
from engine.interop.ffi.operation import KernelBase, Operation, Place, Slot
from engine.interop.ffi.program import Shape
from engine.interop.ffi.signature import Signature
from engine.lang.definition import Definition
from engine.lang.strided import row_major
from engine.lang.structs import StructType, leaves
from engine.lang.types import ArrayType, ScalarType
from engine.lang.values import value_class
from engine.runtime.annotation import array_type
from engine.runtime.array import array
from engine.runtime.device import HOST
from engine.runtime.kernel import Kernel
from engine.runtime.launch import grid
from engine.runtime.launch_errors import fail
from engine.runtime.storage import Storage


def jax_kernel(
    kernel: Any,
    num_outputs: int = 1,
    vmap_method: str | None = "broadcast_all",
    launch_dims: Any = None,
    output_dims: Any = None,
    in_out_argnames: Sequence[str] | None = None,
    module_preload_mode: JaxModulePreloadMode = JaxModulePreloadMode.CURRENT_DEVICE,
    enable_backward: bool = False,
    has_side_effect: bool = False,
    block_dim: int | None = None,
) -> JaxKernel:
    """A function of JAX arrays that launches a kernel, for use in any transformation of JAX.

    It is called with the kernel's inputs, and returns a list of its outputs, which are its last
    parameters. `f(*inputs, launch_dims=..., output_dims=..., vmap_method=...)` overrides what is
    said here. Components of vectors and matrices are the last dimensions of JAX arrays.

    Args:
        kernel: what `@kernel` made.
        num_outputs: how many parameters are outputs, those of `in_out_argnames` among them.
        vmap_method: how `vmap` runs a batch: "broadcast_all" and "expand_dims" by one launch with
            one more axis, or one call that makes a launch for each; "sequential" by a loop of JAX,
            "sequential_unrolled" by that written out. Results are the same.
        launch_dims: the grid; the shape of the first input array for None.
        output_dims: the shape of outputs, of all or by name, with or without components; for None
            that of the grid, or of the first input array where the grid has other dimensions.
        in_out_argnames: inputs that the kernel changes: each is an output, too, in its place
            before the others. JAX's own array stays as it is.
        module_preload_mode: when to compile; NONE waits for the first run.
        enable_backward: whether JAX may differentiate it, forward and in reverse, to any order.
        has_side_effect: whether it must run where its outputs are not used.
        block_dim: accepted for GPU code; it means nothing on the CPU.

    Scalars, vectors and structs that are no JAX arrays are part of the compiled program, as static
    arguments are; those that JAX computes are read when it runs, and have derivatives. Elements of
    outputs that the kernel does not write are zero.

    Raises LaunchError: E201 (counts, names), E202 (types). Calls raise these, E203 (dimensions),
    E205 (grid), KernelError and CompilerError, while JAX traces them; what fails while a kernel
    runs (E209, E210, E211) arrives as a JAX error with the message.
    """
    sig.require_jax()
    if not isinstance(kernel, Kernel):
        raise fail("E202", f"jax_kernel takes a kernel, got {kernel!r:.80}",
                   help="decorate the function with @kernel")  # fmt: skip
    what = f"jax_kernel({kernel.key})"
    sig.check_method(what, vmap_method)
    if block_dim is not None and (
        isinstance(block_dim, bool) or not isinstance(block_dim, (int, np.integer))
    ):
        raise fail("E202", f"{what}: block_dim must be an integer or None, got {block_dim!r}")
    if block_dim is not None and block_dim <= 0:
        raise fail("E202", f"{what}: block_dim must be positive, got {block_dim}")
    both = tuple([in_out_argnames] if isinstance(in_out_argnames, str) else in_out_argnames or ())
    settings: tuple[Any, ...] = (
        num_outputs, vmap_method, sig.hashable(launch_dims), sig.hashable(output_dims), both,
        JaxModulePreloadMode(module_preload_mode), bool(enable_backward), bool(has_side_effect),
        None if block_dim is None else int(block_dim),
    )  # fmt: skip
    # Kept by the kernel itself, so that both go together.
    known: dict[Any, JaxKernel] = kernel.__dict__.setdefault("_jax_functions", {})
    found = known.get(settings)
    if found is None:
        made = JaxKernel(kernel, launch_dims, output_dims, *settings[:2], *settings[4:])
        found = known.setdefault(settings, made)
    return found


class JaxKernel(Definition):
    """What `jax_kernel` makes."""

    def __init__(
        self, kernel: Kernel, launch_dims: Any, output_dims: Any, num_outputs: Any,
        vmap_method: str | None, in_out: tuple[str, ...], preload: JaxModulePreloadMode,
        enable_backward: bool, has_side_effect: bool, block_dim: int | None,
    ) -> None:  # fmt: skip
        self.kernel, self.num_outputs, self.vmap_method = kernel, num_outputs, vmap_method
        self.launch_dims, self.output_dims = launch_dims, output_dims
        self.enable_backward, self.has_side_effect = enable_backward, has_side_effect
        self.module_preload_mode, self.block_dim = preload, block_dim
        self._settings = (num_outputs, vmap_method, launch_dims, output_dims, in_out, preload,
                          enable_backward, has_side_effect, block_dim)  # fmt: skip
        self.__name__ = kernel.__name__
        self._what = f"kernel {kernel.key!r}"
        names = tuple(kernel.signature.types)
        self._inputs, self._in_out = sig.split(self._what, names, num_outputs, in_out)
        self._signatures: dict[Kernel, Signature] = {}
        if not kernel.is_generic:
            self._signature(kernel)
        # Operations by what decides on them: calls of one program are alike.
        self._operations: dict[Any, Operation] = {}

    def __repr__(self) -> str:
        return f"<jax_kernel {self.kernel.key}>"

    def _made(self) -> tuple[Any, ...]:
        return jax_kernel, (self.kernel, *self._settings)

    def _signature(self, kernel: Kernel) -> Signature:
        found = self._signatures.get(kernel)
        if found is None:
            types: Any = kernel.types or tuple(kernel.signature.types.values())
            if None in types:
                kernel.plan  # noqa: B018  raises what is wrong with its annotations
            found = Signature(
                self._what, dict(zip(kernel.signature.types, types, strict=True)),
                self._inputs, self._in_out,
            )  # fmt: skip
            sig.check_types(found)
            self._signatures[kernel] = found
        return found

    def __call__(
        self, *args: Any, output_dims: Any = None, launch_dims: Any = None, vmap_method: Any = None
    ) -> list[Any]:
        """The outputs for these inputs. See `jax_kernel`."""
        if launch_dims is None:
            launch_dims = self.launch_dims
        if output_dims is None:
            output_dims = self.output_dims
        if vmap_method is None:
            vmap_method = self.vmap_method
        else:
            sig.check_method(self._what, vmap_method)
        if len(args) != self._inputs:
            names = ", ".join(tuple(self.kernel.signature.types)[: self._inputs])
            raise fail("E201", f"{self._what} expects {self._inputs} inputs ({names}), "
                       f"got {len(args)}", help="outputs are not passed; num_outputs says how "
                       "many parameters are outputs")  # fmt: skip
        # The plan is another one after a function that it calls was redefined.
        plan = None if self.kernel.is_generic else self.kernel.plan
        key = (
            plan,
            sig.hashable(launch_dims),
            sig.hashable(output_dims),
            vmap_method,
            sig.static_key(args),
        )
        op = self._operations.get(key)
        operands = [x for x in args if sig.is_traced(x)]
        if op is None or len(operands) != len(op.leads):
            op, operands = self._operation(args, launch_dims, output_dims, vmap_method)
            if key[-1] is not None:
                self._operations[key] = op
        return primitive.bind(op, primitive.aligned(operands))

    def _operation(
        self, args: Sequence[Any], launch_dims: Any, output_dims: Any, method: str | None
    ) -> tuple[Operation, list[Any]]:
        """What a call runs, and its operands."""
        kernel = self._instance(args) if self.kernel.is_generic else self.kernel
        s = self._signature(kernel)
        slots: dict[str, Slot] = {}
        operands: list[Any] = []
        scalars: set[str] = set()
        first: Shape | None = None
        for (name, kind), value in zip(s.types.items(), args, strict=False):
            if isinstance(kind, ArrayType):
                slots[name] = sig.input_slot(s, name, kind, value)
                operands.append(value)
                if first is None:
                    first = slots[name].shape[: kind.ndim]
            elif sig.is_traced(value):
                slots[name], value = sig.scalar_slot(s, name, kind, value)
                operands.append(value)
                scalars.add(name)
        if launch_dims is not None:
            dim = grid(launch_dims, kernel)
        elif first is not None:
            dim = grid(first, kernel)
        else:
            raise s.fail("E205", "launch dimensions are unknown, because there is no input array",
                         help="pass launch_dims=...")  # fmt: skip
        outputs = [slots[n] for n in s.names[: s.inputs] if n in s.in_out]
        outputs += sig.output_slots(s, output_dims, dim, first)
        base = self._base(s, kernel, dim, args, slots, outputs, scalars)
        op = Operation(
            base, "value", leads=((),) * len(operands), outs=((),) * len(outputs), vmap=method
        )
        if self.module_preload_mode != JaxModulePreloadMode.NONE:
            primitive.prepared(op)
        return op, operands

    def _instance(self, args: Sequence[Any]) -> Kernel:
        """The instance of a generic kernel. Outputs have the elements of the first open input."""
        signature = self.kernel.signature
        known: Any = None
        given: list[Any] = []
        for k, name in enumerate(signature.types):
            pattern = signature.patterns.get(name)
            value = args[k] if k < len(args) else None
            if pattern is not None and pattern.role == "array":
                element = known if k >= len(args) else sig.element_of(pattern.ndim, value)
                if element is not None:
                    known = known or element
                    value = _fake(array_type(element, pattern.ndim), (0,) * pattern.ndim, k)
            elif sig.is_traced(value):
                element = sig.element_of(0, value)
                if element is not None:
                    value = value_class(element)()
            given.append(value)
        return self.kernel.for_arguments(given)

    def _base(
        self, s: Signature, kernel: Kernel, dim: Shape, args: Sequence[Any], slots: dict[str, Slot],
        outputs: list[Slot], scalars: set[str],
    ) -> KernelBase:  # fmt: skip
        plan = kernel.plan
        if plan.tables or (plan.arguments is not None and plan.arguments.linked):
            raise s.fail("E202", "it queries "
                                 "geometry, or "
                                 "changes the "
                                 "arrays of "
                                 "structs, which "
                                 "JAX does not see", help="call it by jax_callable")  # fmt: skip
        out_of = {slot.name: slot for slot in outputs}
        order = list(slots)
        arrays: dict[int, Place] = {}
        given: list[Any] = []
        for k, (name, kind) in enumerate(s.types.items()):
            if isinstance(kind, ArrayType):
                slot = slots.get(name) or out_of[name]
                shape = slot.shape[: kind.ndim]
                fake = _fake(kind, shape, k)
                output = list(out_of).index(name) if name in out_of else None
                own = order.index(name) if name in slots else None
                arrays[id(fake)] = Place(own, output, fake._packed[8:])
                given.append(fake)
            elif name in scalars:
                given.append(_placeholder(kind))
            else:
                value = args[k]
                _check_static(s, name, kind)
                given.append(value)
        values, _ = plan.bind(given, dim)
        places: list[bytes | Place] = []
        traced: dict[str, int] = {}
        for p, value in zip(plan.params, values, strict=True):
            if p.array_kind is not None:
                places.append(arrays[id(value)])
            elif p.name in scalars:
                traced[p.name] = len(places)
                assert not isinstance(p.kind, ArrayType)
                one = struct.pack("<2q", 1, p.kind.size)  # the shape and stride
                places.append(Place(order.index(p.name), None, one))
            else:
                places.append(p.packed(value))
        variants: Variants = loaded(plan.variants, frozenset(traced))
        return KernelBase.of(
            kernel, variants, dim, tuple(places), tuple(slots.values()), tuple(outputs),
            self.enable_backward, self.has_side_effect,
        )  # fmt: skip


def _fake(kind: ArrayType, shape: Shape, k: int) -> array:
    """An array that has no memory, far from others, to check a launch with."""
    at = (k + 1) << 44
    strides = row_major(shape, kind.element.size)
    storage = Storage(None, at, 1, HOST, external=True)
    return array._make(storage, at, shape, strides, kind.element)


def _placeholder(kind: Any) -> Any:
    if isinstance(kind, ScalarType):
        return 0.0 if kind.kind == "f" else 0
    return value_class(kind)()


def _check_static(s: Signature, name: str, kind: Any) -> None:
    if isinstance(kind, StructType) and any(isinstance(x.type, ArrayType) for x in leaves(kind)):
        raise s.fail("E202", "argument "
                             f"{name!r} "
                             "is "
                             "a "
                             "struct "
                             "that "
                             "holds "
                             "arrays, "
                             "which "
                             "JAX "
                             "does "
                             "not "
                             "see", help="pass the arrays as separate arguments")  # fmt: skip
