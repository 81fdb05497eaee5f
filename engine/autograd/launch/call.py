"""A launch to differentiate, with its arguments in their roles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.autograd.variables.roles import Roles
from engine.autograd.variables.variable import Variable, element_width, variable
from engine.classes import dataclass
from engine.diagnostics import LaunchError
from engine.diagnostics.site import call_site
from engine.lang.structs import StructType, UserType
from engine.runtime.device import HOST, Device, DeviceLike, get_device
from engine.runtime.kernel import Kernel
from engine.runtime.launch import as_list, grid, launch
from engine.runtime.launch_errors import fail
from engine.runtime.plan import Plan
from engine.tape.records import LaunchRecord


class PresentLaunch(LaunchRecord):
    """A launch that was not run: its arguments are taken as they are now."""

    __slots__ = ()

    def inputs_at_record(self) -> list[Any]:
        """The arguments as they are, arrays as fresh NumPy copies."""
        pairs = zip(self.plan.params, self.values, strict=True)
        return [v if p.array_kind is None or v is None else np.array(v._host()) for p, v in pairs]


@dataclass(frozen=True)
class LaunchCall:
    """A launch to differentiate. device: where its arrays are. relaunch: runs it on these."""

    record: LaunchRecord
    roles: Roles
    device: Device = HOST
    given: tuple[Any, ...] = ()
    relaunch: Callable[[], None] | None = None


def launch_call(
    kernel: Kernel, dim: Any, inputs: Any, outputs: Any, device: DeviceLike
) -> LaunchCall:
    """A launch with these arguments. Raises what `launch` raises for arguments that do not fit.

    Arguments stand in the order of the kernel's parameters, inputs before outputs, as in
    `launch`. Where that makes no output of an array in `outputs`, arrays are matched by
    what the kernel does: it writes the outputs. Without `outputs`, what the kernel writes is
    output, at its position among the arguments.
    """
    place = get_device(device)
    if dim is None:
        raise fail("E205", f"kernel {kernel.key!r} needs launch dimensions", help="pass dim=")
    shape = grid(dim, kernel)
    ins, outs = as_list(kernel, inputs), as_list(kernel, outputs)
    given = [*ins, *outs]
    plan = kernel.for_arguments(given).plan
    order = _order(plan, shape, ins, outs)
    args = [given[k] for k in order]
    plan = kernel.for_arguments(args).plan.on(place.backend)
    values, blob = plan.bind(list(args), shape, place)
    aliased = plan.aliased(values)
    record = PresentLaunch(
        plan, shape, values, blob, len(ins), call_site(), aliased, plan.select(values, aliased)
    )
    roles = launch_roles(record, order, len(ins), explicit=bool(outs))

    def relaunch() -> None:
        launch(kernel, shape, inputs=args, device=place)

    return LaunchCall(record, roles, place, tuple(given), relaunch)


def _order(plan: Plan, shape: tuple[int, ...], ins: list[Any], outs: list[Any]) -> list[int]:
    """For each parameter, which of the given arguments it gets."""
    count = len(ins) + len(outs)
    straight = list(range(count))
    written = [_touches(plan, k, plan.variants.written) for k in range(len(_names(plan)))]
    if len(written) != count or not outs or all(written[len(ins) :]):
        return straight
    if sum(written) != len(outs):
        return straight
    sources = iter(range(len(ins))), iter(range(len(ins), count))
    by_role = [next(sources[1] if w else sources[0]) for w in written]
    given = [*ins, *outs]
    try:
        plan.bind([given[k] for k in by_role], shape)
    except LaunchError:
        return straight
    return by_role


def _names(plan: Plan) -> list[str]:
    return plan.given


def _place(plan: Plan, k: int) -> range:
    """The leaves of a parameter."""
    found = range(k, k + 1) if plan.arguments is None else plan.arguments.place(k)
    assert found is not None
    return found


def _touches(plan: Plan, k: int, names: frozenset[str]) -> bool:
    return any(plan.params[i].name in names for i in _place(plan, k))


def _kind(plan: Plan, k: int) -> UserType:
    if plan.arguments is None:
        return plan.params[k].kind
    return plan.arguments.arguments[k].type


def argument_widths(plan: Plan) -> tuple[list[str], list[int]]:
    """Names of a kernel's parameters, and how many scalars an element of each has."""
    names = _names(plan)
    return names, [element_width(_kind(plan, k)) for k in range(len(names))]


def launch_roles(
    record: LaunchRecord, order: Sequence[int] | None = None, inputs: int = -1,
    explicit: bool = True,
) -> Roles:  # fmt: skip
    """The inputs and outputs of a launch.

    order: for each parameter, its place among the arguments as given; inputs: how many of
    these are inputs. explicit: whether outputs were named; else they are what is written.
    """
    plan = record.plan
    names = _names(plan)
    order = range(len(names)) if order is None else order
    if inputs < 0:
        inputs = record.input_count
        explicit = inputs < len(names)
    ins: dict[int, tuple[str, Any, Variable | None]] = {}
    outs: dict[int, tuple[str, Any, Variable | None]] = {}
    for k, at in sorted(enumerate(order), key=lambda x: x[1]):
        leaves = _place(plan, k)
        values = [record.values[i] for i in leaves]
        kind = _kind(plan, k)
        dtype = kind.cls if isinstance(kind, StructType) else getattr(values[0], "dtype", None)
        if at < inputs:
            ins[at] = (names[k], dtype, variable(at, names[k], kind, _arrays(values)))
        output = at - inputs if explicit else at
        if (at >= inputs) if explicit else _touches(plan, k, plan.variants.written):
            outs[output] = (names[k], dtype, variable(output, names[k], kind, _arrays(values)))
    return Roles(record.kernel.key, ins, outs)


def _arrays(values: Sequence[Any]) -> list[Any]:
    return [v if hasattr(v, "requires_grad") and hasattr(v, "_info") else None for v in values]


def owners(call: LaunchCall, v: Variable) -> list[str]:
    """Names of the IR parameters of a variable's parts."""
    plan = call.record.plan
    names = _names(plan)
    k = names.index(v.label)
    return [plan.params[_place(plan, k)[p.leaf]].name for p in v.parts]
