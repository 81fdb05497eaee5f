"""A whole batch as one launch: the kernel with one more axis, of its grid and of its arrays.

What it does not do is run as a launch for each element of the batch, which is the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from engine.compile.pipeline import Variants
from engine.interop.ffi.operation import KernelBase, Operation, Place, Slot
from engine.ir import nodes as n
from engine.ir.builder import Names
from engine.ir.rewrite import map_block, names_in, rewrite
from engine.lang.types import INT32, ArrayType
from engine.runtime.annotation import MAX_DIMS, array_type

# Batches of fewer elements are not worth a compiler run.
FEWEST = 5


def fused(
    op: Operation, size: int, batched: Sequence[bool]
) -> tuple[Operation, tuple[bool, ...]] | None:
    """An operation for a whole batch, and which operands have its extent in front.

    batched: which operands have it already. None where the kernel has no such form.
    """
    base = op.base
    if not isinstance(base, KernelBase) or size < FEWEST or any(op.leads) or any(op.outs):
        return None
    # A derivative or gradient has the shape of its array: all of them, or none.
    of = [*range(len(base.inputs)), *(i for group in op.directions for i in group)]
    wide = {i for i, b in zip(of, batched, strict=False) if b} | set(op.wrt) | set(base.in_out)
    found = _base(base, size, frozenset(wide))
    if found is None:
        return None
    full = tuple(i in wide for i in of) + (True,) * len(op.cotangents)
    return replace(op, base=found), full


def _base(base: KernelBase, size: int, wide: frozenset[int]) -> KernelBase | None:
    """The kernel where inputs of these numbers, and all outputs, have one more axis."""
    key = ("batched", len(base.dim), wide_names(base, wide))
    if key not in base.variants.derived:
        made = _kernel(base.variants.ir, len(base.dim), key[2])
        variants = None if made is None else Variants(made)
        if variants is not None:
            variants.name, variants.debug = base.variants.name, base.variants.debug
        base.variants.derived[key] = variants
    variants = base.variants.derived[key]
    if variants is None:
        return None
    places: list[bytes | Place] = []
    for place, p in zip(base.places, base.variants.ir.params, strict=True):
        if isinstance(place, Place) and p.name in key[2]:
            assert isinstance(p.type, ArrayType)
            words = struct.unpack(f"<{len(place.tail) // 8}q", place.tail)
            shape, steps = words[: p.type.ndim], words[p.type.ndim :]
            step = shape[0] * steps[0]
            tail = struct.pack(f"<{len(words) + 2}q", size, *shape, step, *steps)
            places.append(replace(place, tail=tail))
        else:
            places.append(place)
    return KernelBase.of(
        base.kernel, variants, (size, *base.dim), tuple(places),
        tuple(_wider(s, size) if i in wide else s for i, s in enumerate(base.inputs)),
        tuple(_wider(s, size) for s in base.outputs), base.backward, base.effect,
    )  # fmt: skip


def wide_names(base: KernelBase, wide: frozenset[int]) -> frozenset[str]:
    """The parameters that are these inputs, or outputs."""
    return frozenset(
        p.name
        for place, p in zip(base.places, base.variants.ir.params, strict=True)
        if isinstance(place, Place) and (place.output is not None or place.input in wide)
    )


def _wider(slot: Slot, size: int) -> Slot:
    return replace(slot, shape=(size, *slot.shape))


def _kernel(fn: n.Function, ndim: int, wide: frozenset[str]) -> n.Function | None:
    """The kernel with a further first axis; None where that cannot be had."""
    arrays = {p.name: p for p in fn.params if p.name in wide}
    if ndim >= MAX_DIMS or fn.tables or fn.apart or not arrays:
        return None
    if any(not isinstance(p.type, ArrayType) or p.type.ndim >= MAX_DIMS for p in arrays.values()):
        return None
    for s in n.walk(fn.body):
        if isinstance(s, n.Message) or (isinstance(s, n.Call) and not _apart(s)):
            return None
        if isinstance(s, n.Let) and not _known(s, ndim):
            return None
    wider: dict[n.Atom, n.Atom] = {
        p: n.Var(p.name, array_type(p.type.element, p.type.ndim + 1))  # type: ignore[union-attr]
        for p in arrays.values()
    }
    which = n.Var(Names(names_in(fn)).fresh("batch"), INT32)

    def step(s: n.Stmt) -> n.Stmt:
        if isinstance(s, (n.Load, n.Store, n.Atomic)) and s.array.name in wide:
            return replace(s, index=(which, *s.index))
        if isinstance(s, n.Let) and s.op == "tid":
            return replace(s, args=(_next(s.args[0]), _next(s.args[1])))
        if isinstance(s, n.Let) and s.op == "shape" and s.args[0] in wider.values():
            return replace(s, args=(s.args[0], _next(s.args[1])))
        return s

    body = rewrite(map_block(fn.body, lambda a: wider.get(a, a)), step)
    number = n.Let(which, "tid", (n.Const(0, INT32), n.Const(ndim + 1, INT32)), span=fn.span)
    params = tuple(wider.get(p, p) for p in fn.params)
    return replace(fn, params=params, body=(number, *body), arguments=())  # type: ignore[arg-type]


def _next(a: n.Atom) -> n.Const:
    assert isinstance(a, n.Const) and isinstance(a.value, int)
    return n.Const(a.value + 1, INT32)


def _known(s: n.Let, ndim: int) -> bool:
    """Whether an operation means the same in a grid with one more axis."""
    if s.op == "tid":
        return all(isinstance(a, n.Const) for a in s.args) and s.args[1].value == ndim  # type: ignore[union-attr]
    return s.op != "thread" and not (s.op == "shape" and not isinstance(s.args[1], n.Const))


def _apart(s: n.Call) -> bool:
    """Whether a function that is called has to do with no arrays, and with no threads."""
    if any(isinstance(a.type, ArrayType) for a in s.args):
        return False
    own = [f for f in (s.func, s.func.grad, s.func.replay) if f is not None]
    inside = [x for f in own for x in n.walk(f.body)]
    return not any(f.native is not None for f in own) and all(
        not isinstance(x, n.Message)
        and not (isinstance(x, n.Let) and x.op in ("tid", "thread"))
        and not (isinstance(x, n.Call) and not _apart(x))
        for x in inside
    )
