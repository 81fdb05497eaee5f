"""Kernels that assign arrays to fields of structs in arrays, and the work of their launches.

The tables of such fields say after the launch where the arrays lie that the structs refer to from
then on, in a pool: fields between which places were copied have one, and arguments that they are
made to hold lie there too. The descriptors in memory are written then, and the arrays kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.builtins.queries import ARGUMENTS
from engine.diagnostics import Diagnostic, KernelError, Span
from engine.ir import nodes as n
from engine.lang.structs import PLACES, StructType, descriptor_dtype, leaves
from engine.lang.types import INT32
from engine.runtime.array import array
from engine.runtime.base import ArrayBase, may_meet
from engine.runtime.launch_errors import fail
from engine.runtime.links import Gathered, Slot, descriptor, keep

if TYPE_CHECKING:
    from engine.runtime.plan import Plan


class Relinks:
    """Of a kernel: fields are named by the argument and their path in it.

    groups: numbers, the same for fields whose pools are one. tables: of fields that it may make
    hold other arrays, the positions of the parameters that are their tables. used: groups whose
    pools it reads or writes. named: arguments that fields may be made to hold, each with the group
    and the position of a parameter that it is, or a leaf of it.
    """

    def __init__(
        self, groups: Mapping[str, int], tables: Mapping[str, int], used: frozenset[int],
        named: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        self.groups = groups
        self.tables = tables
        self.used = used
        self.named = named


def relinks_of(ir: n.Function, read: frozenset[str], written: frozenset[str]) -> Relinks | None:
    """What is to be done for a kernel, of which these arrays are read and written.

    None for nearly all. Raises KernelError (E101) for what cannot be.
    """
    if not any(name.endswith(PLACES) for name in written):
        return None
    tables: dict[str, str] = {}
    pools: dict[str, str] = {}
    nested = set()
    for argument in ir.arguments:
        for leaf in leaves(argument.type):
            name = leaf.named(argument.name)
            if leaf.path and leaf.path[-1] == PLACES:
                field = ".".join((argument.name, *leaf.path[:-1]))
                tables[field] = name
                if leaf.pool:
                    nested.add(field)
            if leaf.pool:
                pools[name] = ".".join((argument.name, *leaf.pool))
    changed = {field: name for field, name in tables.items() if name in written}
    together = {field: {field} for field in changed}
    for a, b, span in ir.links.joined:
        first, second = pools[a], pools[b]
        if first in nested or second in nested:
            raise _nested(span)
        both = together.get(first, {first}) | together.get(second, {second})
        together.update(dict.fromkeys(both, both))
    for field in changed:
        if field in nested:
            raise _nested(_store_of(ir, changed[field]))
    numbers = {id(fields): k for k, fields in enumerate(together.values())}
    groups = {field: numbers[id(fields)] for field, fields in together.items()}
    touched = {pools[name] for name in read | written if name in pools}
    # What is in structs in a pool counts as the pool.
    used = {g for field, g in groups.items() for t in touched if f"{t}.".startswith(f"{field}.")}
    fields = {name: field for field, name in tables.items()}
    place = {p.name: k for k, p in enumerate(ir.params)}
    return Relinks(
        groups, {field: place[name] for field, name in changed.items()}, frozenset(used),
        [(groups[fields[name]], index) for name, index in ir.links.named],
    )  # fmt: skip


def _store_of(ir: n.Function, name: str) -> Span:
    stores = (s for s in n.walk(ir.body) if isinstance(s, n.Store) and s.array.name == name)
    return next((s.span for s in stores), ir.span)


def _nested(span: Span) -> KernelError:
    message = "an array in a struct in an array would hold other arrays, in its own structs"
    return KernelError(Diagnostic("E101", message, span, "build these structs on the host"))


# ---- before the launch


def add_arguments(gathered: Gathered, plan: Plan, given: Sequence[Any]) -> None:
    """Puts arguments that structs may be made to hold into the pools of their fields.

    Raises LaunchError (E202) for what is no array of the engine.
    """
    relinks = plan.relinks
    assert relinks is not None
    for group, index in relinks.named:
        a = _argument(plan, given, index)
        if isinstance(a, ArrayBase):
            gathered.held.setdefault(group, []).append(a)  # type: ignore[arg-type]
        elif a is not None:
            raise fail("E202", f"kernel {plan.kernel.key!r} makes structs refer to argument "
                               f"{plan.params[index].name!r}, which is not an array of the engine",
                       f"got {a!r:.80}", help="make an array from it: array(data)")  # fmt: skip
    gathered.given = tuple(given)


def starts_of(gathered: Gathered, plan: Plan) -> Any:
    """The table that says where in their pools the arguments lie that structs are to hold."""
    relinks = plan.relinks
    assert relinks is not None
    rows = []
    for group, index in relinks.named:
        a = _argument(plan, gathered.given, index)
        rows.append(0 if a is None else gathered.starts(group).get(id(a), 0))
    made = array(np.array(rows or [0], np.int32), dtype=INT32)
    return _data_class()(starts=made)


@cache
def _data_class() -> type:
    from engine.runtime.structs import Struct

    ARGUMENTS.cls = type("ArgumentData", (Struct,), {"__ir_type__": ARGUMENTS})
    found: type = ARGUMENTS.cls
    return found


def _argument(plan: Plan, given: Sequence[Any], index: int) -> Any:
    """What the user passed for the array that a parameter is a leaf of."""
    arguments = plan.arguments
    assert arguments is not None
    k = max(k for k, first in enumerate(arguments.first[:-1]) if first <= index)
    kind: Any = arguments.arguments[k].type
    path = leaves(kind)[index - arguments.first[k]].path
    value = given[k]
    for name in path:
        if not isinstance(kind, StructType):
            break
        value, kind = getattr(value, name), kind.fields[name]
    return value


def check(gathered: Gathered, plan: Plan) -> None:
    """Raises LaunchError (E206) where two fields that the kernel uses are one in memory."""
    assert plan.relinks is not None
    for field in plan.relinks.tables:
        own = gathered.slots.get(field)
        for slot in gathered.slots.values():
            if own is not None and own.root != slot.root and may_meet(own.owner, slot.owner):
                raise fail("E206", f"kernel {plan.kernel.key!r}: arguments {own.root!r} and "
                           f"{slot.root!r} share memory, and structs there are made to refer to "
                           "other arrays", help="pass arrays that do not overlap")  # fmt: skip


# ---- after it


def relink(gathered: Gathered, plan: Plan) -> None:
    """Lets structs refer to the arrays that a kernel gave them."""
    if plan.relinks is None:
        return
    for field in plan.relinks.tables:
        slot = gathered.slots.get(field)
        if slot is not None and slot.rows:
            _relink(slot)


def _relink(slot: Slot) -> None:
    now = np.asarray(slot.table._host()).reshape(len(slot.rows), -1)
    changed = np.flatnonzero((now != np.array(slot.rows, np.int32)).any(axis=1))
    if not changed.size:
        return
    owner, dtype = slot.owner, descriptor_dtype()
    inside = np.dtype({"names": ["at"], "formats": [dtype], "offsets": [slot.offset],
                       "itemsize": owner._info.size})  # fmt: skip
    fields = owner._parts.view(inside)["at"]
    for k in changed:
        index = np.unravel_index(k, owner.shape)
        at = owner.ptr + int(np.dot(index, owner.strides)) + slot.offset
        owner.storage.before_write(at, at + dtype.itemsize)
        one = np.array(descriptor(_array_of(now[k].tolist(), slot)), dtype)
        owner.device.backend.put(fields[tuple(slice(m, m + 1) for m in index)], one)
    keep(owner)


def _array_of(row: Sequence[int], slot: Slot) -> Any:
    """The array that a row means; None for none."""
    for a in slot.arrays:
        if slot.starts[id(a)] == row[0] and list(a.shape) == list(row[1:]):
            return a
    return None
