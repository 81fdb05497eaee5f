"""What a Jacobian is taken of: a kernel's launch, with its arguments in their roles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.autograd.metadata import FunctionMetadata, describe
from engine.autograd.variables import Variable, element_width, variable
from engine.diagnostics import Diagnostic, GradcheckError, LaunchError
from engine.diagnostics.site import call_site, call_span
from engine.lang.structs import StructType, UserType
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.errors import fail
from engine.runtime.kernel import Kernel
from engine.runtime.launch import as_list, grid
from engine.runtime.plan import Call, Plan
from engine.tape.records import LaunchRecord

Mask = Sequence[tuple[str | int, str | int]]


@dataclass(frozen=True)
class Pair:
    """An input and an output that a matrix is wanted for."""

    input: Variable
    output: Variable

    @property
    def key(self) -> tuple[int, int]:
        """The pair's key in the result."""
        return self.input.index, self.output.index


@dataclass(frozen=True)
class Roles:
    """Names of all inputs and outputs by index, and the variables among them."""

    key: str
    inputs: dict[int, tuple[str, Any, Variable | None]]
    outputs: dict[int, tuple[str, Any, Variable | None]]

    def metadata(self) -> FunctionMetadata:
        """For plots."""
        return describe(self.key, self.inputs, self.outputs)

    def pairs(self, mask: Mask | None) -> list[Pair]:
        """The pairs that a mask names; all for None and, as in Warp, for an empty one.

        Raises LaunchError (E405) for what is no input or output, or has no gradient;
        GradcheckError (E404) where nothing is left.
        """
        if mask is None or (isinstance(mask, Sized) and not len(mask)):
            sides = [
                [v for _, _, v in side.values() if v is not None]
                for side in (self.inputs, self.outputs)
            ]
            pairs = [Pair(a, b) for a in sides[0] for b in sides[1]]
        else:
            found = [Pair(self._one(i, False), self._one(o, True)) for i, o in _checked(mask)]
            pairs = list({p.key: p for p in found}.values())
        if not pairs:
            raise GradcheckError(
                Diagnostic("E404", f"{self.key!r} has no pair of an input and an output with "
                           "gradients", call_span(),
                           help="make the arrays that matter with requires_grad=True",
                           notes=(self._say(False), self._say(True)))
            )  # fmt: skip
        return pairs

    def chosen(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[Pair]:
        """The pairs of these inputs and outputs by name; empty means all. Raises as `pairs`."""
        wanted = [self._one(x, False).index for x in inputs]
        needed = [self._one(x, True).index for x in outputs]
        return [
            p
            for p in self.pairs(None)
            if (not wanted or p.input.index in wanted) and (not needed or p.output.index in needed)
        ]

    def _one(self, which: str | int, output: bool) -> Variable:
        side = self.outputs if output else self.inputs
        for k, (label, _, v) in side.items():
            if which == label or (which == k and not isinstance(which, bool)):
                if v is not None:
                    return v
                message = f"{label!r} of {self.key!r} has no gradient"
                raise self._unknown(message, "only float arrays with requires_grad=True have one")
        role = "output" if output else "input"
        raise self._unknown(f"{self.key!r} has no {role} {which!r}", self._say(output))

    def _unknown(self, message: str, help: str) -> LaunchError:
        return LaunchError(Diagnostic("E405", message, call_span(), help=help))

    def _say(self, output: bool) -> str:
        side = self.outputs if output else self.inputs
        names = ", ".join(f"{k}: {label}" for k, (label, _, _) in side.items())
        return f"its {'outputs' if output else 'inputs'} are {names or 'none'}"


def renamed(mask: Mask | None, names: FunctionMetadata | None) -> Mask | None:
    """A mask that uses the labels of the user's own metadata, with positions for these."""
    if names is not None and not isinstance(names, FunctionMetadata):
        raise fail("E202", f"metadata is a FunctionMetadata, got {names!r:.80}")
    if names is None or mask is None:
        return mask

    def place(which: str | int, labels: list[str] | None) -> str | int:
        known = isinstance(which, str) and which in (labels or ())
        return (labels or []).index(str(which)) if known else which

    return [
        (place(i, names.input_labels), place(o, names.output_labels)) for i, o in _checked(mask)
    ]


def _checked(mask: Mask) -> Iterable[tuple[str | int, str | int]]:
    if not hasattr(mask, "__iter__") or hasattr(mask, "encode"):  # a number, or a string
        raise LaunchError(
            Diagnostic("E405", f"input_output_mask is a list of pairs, got {mask!r}", call_span(),
                       help="write [('x', 'y'), (0, 1)]")
        )  # fmt: skip
    for entry in mask:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise LaunchError(
                Diagnostic("E405", f"input_output_mask takes pairs of an input and an output, got "
                           f"{entry!r}", call_span(), help="write [('x', 'y'), (0, 1)]")
            )  # fmt: skip
        yield entry[0], entry[1]


# ---- kernels


class PresentLaunch(LaunchRecord):
    """A launch that was not run: its arguments are taken as they are now."""

    __slots__ = ()

    def inputs_at_record(self) -> list[Any]:
        """The arguments as they are, arrays as fresh NumPy copies."""
        pairs = zip(self.plan.params, self.values, strict=True)
        return [v if p.array_kind is None or v is None else np.array(v._parts) for p, v in pairs]


@dataclass(frozen=True)
class LaunchSubject:
    """A launch to differentiate. relaunch: runs it on the user's own arrays."""

    record: LaunchRecord
    roles: Roles
    given: tuple[Any, ...] = ()
    relaunch: Callable[[], None] | None = None


def launch_subject(
    kernel: Kernel, dim: Any, inputs: Any, outputs: Any, device: DeviceLike
) -> LaunchSubject:
    """A launch with these arguments. Raises what `launch` raises for arguments that do not fit.

    Arguments stand in the order of the kernel's parameters, inputs before outputs, as in
    `launch`. Where that makes no output of an array in `outputs`, arrays are matched by
    what the kernel does: it writes the outputs. Without `outputs`, what the kernel writes is
    output, at its position among the arguments.
    """
    if device is not None:
        get_device(device)
    if dim is None:
        raise fail("E205", f"kernel {kernel.key!r} needs launch dimensions", help="pass dim=")
    shape = grid(dim, kernel)
    ins, outs = as_list(kernel, inputs), as_list(kernel, outputs)
    given = [*ins, *outs]
    plan = kernel.for_arguments(given).plan
    order = _order(plan, shape, ins, outs)
    args = [given[k] for k in order]
    plan = kernel.for_arguments(args).plan
    values, blob = plan.bind(list(args), shape)
    aliased = plan.aliased(values)
    call = Call(plan, shape, values, blob, len(ins))
    record = PresentLaunch(call, call_site(), aliased, plan.select(values, aliased))
    roles = launch_roles(record, order, len(ins), explicit=bool(outs))

    def relaunch() -> None:
        from engine.runtime.launch import launch

        launch(kernel, shape, inputs=args)

    return LaunchSubject(record, roles, tuple(given), relaunch)


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
    return [p.name for p in plan.params] if plan.arguments is None else plan.arguments.names


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


def owners(subject: LaunchSubject, v: Variable, output: bool) -> list[str]:
    """Names of the IR parameters of a variable's parts."""
    plan = subject.record.plan
    names = _names(plan)
    k = names.index(v.label)
    return [plan.params[_place(plan, k)[p.leaf]].name for p in v.parts]


# ---- Python functions


def parameter_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for positional arguments of a function."""
    names: list[str] = []
    try:
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}_{i}" for i in range(count - len(names))]
    except (TypeError, ValueError):
        pass
    return [*names, *(f"input_{i}" for i in range(len(names), count))][:count]
