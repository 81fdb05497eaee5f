"""`jvp`: forward mode, of one launch or of a tape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.lang.structs import StructType
from engine.lang.types import is_float
from engine.runtime.array import array
from engine.runtime.device import Device, DeviceLike, get_device
from engine.runtime.kernel import Kernel
from engine.runtime.launch import as_list, grid
from engine.runtime.launch_errors import fail
from engine.runtime.leaves import leaf_arrays
from engine.runtime.plan import Plan
from engine.tape.backward import fitted, grad_help
from engine.tape.capture import CapturedTape
from engine.tape.forward import NumpyArray, Twin, push, run_tangent, seed
from engine.tape.tape import Tape

Key = array | str | int


class Tangents(Mapping[array, array]):
    """Tangents of the arrays that were written, by array.

    Of a launch, the name or the position of a parameter is a key as well. Of a tape, any
    array with a gradient on it is a key, views included.
    """

    def __init__(self, twin: Twin, arrays: Sequence[array], names: Mapping[Key, array]) -> None:
        self._twin = twin
        self._arrays = {id(a): a for a in arrays}
        self._names = names

    def __getitem__(self, key: Key) -> array:
        """A fresh array of the key's shape and type. Raises KeyError."""
        a = key if isinstance(key, array) else self._names[key]
        if id(a) not in self._arrays and not self._twin.touches(a):
            raise KeyError(key)
        tan = self._twin.gathered(a)
        out = array._allocate(a.shape, a._ir.element, False, a.device)
        out._parts[...] = tan._parts
        return out

    def __iter__(self) -> Iterator[array]:
        return iter(self._arrays.values())

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"Tangents({', '.join(map(repr, self))})"


def jvp(
    function: Kernel | Tape,
    dim: Any = None,
    inputs: Any = (),
    outputs: Any = (),
    *,
    tangents: Mapping[Any, Any],
    device: DeviceLike = None,
) -> Tangents:
    """The directional derivative J v of a launch or of everything on a tape, by forward mode.

    Args:
        function: a kernel, which is launched with the next three arguments; or a tape.
        dim: the grid, as for `launch`.
        inputs: the first arguments of the kernel.
        outputs: the others.
        tangents: v, the direction: for arrays their tangents, arrays or NumPy arrays of
            the same shape (components last). Of a launch, an array may also be named by its
            parameter, or by its position among the arguments. All others do not move.
        device: where to run, the current device for None.

    Of a launch, every float array takes part, and the result has the tangents of those
    that the kernel writes. Of a tape, derivatives flow through the arrays that require a
    gradient, as in `Tape.backward`, and the result has the tangents that they have after
    the last record. Each recorded launch is differentiated at the values that its inputs
    had when it was recorded. Of functions with a gradient of the user's own (`func_grad`), it is
    the transpose of that gradient. One of numbers is asked at cotangents of one: where it is not
    linear in its cotangents, as far as can be told, `jvp` and `backward` may differ, and a warning
    says so, once for each function. User arrays and gradients stay bit for bit as they were, and
    nothing is printed.

    Raises TapeError: E406 for tangents that do not fit; E401 for a function given to
    `Tape.record_func`, which has no forward derivative, and where the values of a
    recorded launch's inputs were not kept (`config.tape_snapshots`, `config.overwrites`).
    KernelError (E110) where a gradient of arrays of the user's own is not linear in its cotangents,
    or in C++. Of a launch, all that `launch` raises.

    ::

        moved = jvp(square, dim=3, inputs=[x], outputs=[y], tangents={x: v})
        moved[y]  # d y in the direction v
    """
    place = get_device(device)
    if not isinstance(tangents, Mapping):
        raise _bad("tangents must be a dictionary of arrays and their tangents",
                   f"got {type(tangents).__name__}")  # fmt: skip
    if isinstance(function, Kernel):
        args = [*as_list(function, inputs), *as_list(function, outputs)]
        return _of_launch(function, dim, args, tangents, place)
    if isinstance(function, CapturedTape):
        raise TapeError(
            Diagnostic("E401", "the arrays of a captured tape are gone", call_span(),
                       help="differentiate the tape itself")
        )  # fmt: skip
    if not isinstance(function, Tape):
        raise fail("E202", f"jvp takes a kernel or a tape, got {function!r}")
    return _of_tape(function, tangents)


def _bad(message: str, *notes: str, help: str = "") -> TapeError:
    return TapeError(Diagnostic("E406", message, call_span(), help, notes))


# ---- launches


def _of_launch(
    kernel: Kernel, dim: Any, args: list[Any], tangents: Mapping[Any, Any], place: Device
) -> Tangents:
    plan, shape = kernel.for_arguments(args).plan.on(place.backend), grid(dim, kernel)
    values, _ = plan.bind(args, shape, place)
    names = _names(plan, values)
    floats = {p.name: a for p in plan.floats if (a := values[p.index]) is not None}
    written = {name: a for name, a in floats.items() if name in plan.variants.written}
    twin = Twin(floats.values())
    seeds = _launch_seeds(plan, names, twin, tangents)
    twin = Twin([*floats.values(), *(a for a, _ in seeds)])
    moving = {twin.block(a) for a in (*written.values(), *(a for a, _ in seeds))}
    seed(twin, seeds)
    if written and 0 not in shape:
        wrt = frozenset(name for name, a in floats.items()
                        if name in written or twin.block(a) in moving)  # fmt: skip
        run_tangent(plan, shape, values, lambda _: None, twin, wrt)
    found = {id(a._whole or a): a._whole or a for a in written.values()}
    return Tangents(twin, list(found.values()), names)


def _names(plan: Plan, values: list[Any]) -> dict[Key, array]:
    """The arrays of a launch by parameter name and position, as the user knows these."""
    found: dict[Key, array] = {}
    for p in plan.array_params:
        if values[p.index] is not None:
            found[p.name] = values[p.index]
            if plan.arguments is None:
                found[p.index] = values[p.index]
    if plan.arguments is not None:
        for k, argument in enumerate(plan.arguments.arguments):
            leaf = values[plan.arguments.first[k]]
            if isinstance(leaf, array) and not isinstance(argument.type, StructType):
                found[argument.name] = found[k] = leaf._whole or leaf
    return found


def _moves(a: array) -> bool:
    """Whether elements have tangents: floats, and structs with floats."""
    leaves = [a] if a._info.numpy.names is None else leaf_arrays(a)
    return any(is_float(x._ir) for x in leaves)


def _launch_seeds(
    plan: Plan, names: Mapping[Key, array], twin: Twin, tangents: Mapping[Any, Any]
) -> list[tuple[array, NumpyArray]]:
    """Arrays of the launch and their tangents. Raises TapeError (E406)."""
    out: list[tuple[array, NumpyArray]] = []
    for key, tangent in tangents.items():
        a = key if isinstance(key, array) else names.get(key)
        if a is None or (not twin.touches(a) and all(a is not b for b in names.values())):
            shown = key if isinstance(key, (str, int)) else type(key).__name__
            known = [name for name in names if isinstance(name, str)]
            raise _bad(f"kernel {plan.kernel.key!r} has no array argument {shown!r}",
                       f"its array arguments are {', '.join(known) or 'none'}",
                       help="a number has no tangent: pass it in an array")  # fmt: skip
        if not _moves(a):
            raise _bad(f"elements of type {a.dtype.__name__} have no tangent")
        out.append((a, fitted(a, tangent, "tangent", "E406")))
    return out


# ---- tapes


def _of_tape(tape: Tape, tangents: Mapping[Any, Any]) -> Tangents:
    records = tape.records
    on_tape = Twin(a for r in records for a in r.arrays)
    seeds: dict[array, NumpyArray] = {}
    for a, tangent in tangents.items():
        if not isinstance(a, array):
            raise _bad("a key of tangents is not an array", f"got {type(a).__name__}")
        if a.size and not on_tape.touches(a):
            raise _bad("a tangent was given for an array that is not on the tape",
                       f"shape {a.shape} of {a.dtype.__name__}")  # fmt: skip
        if not a.requires_grad:
            raise _bad("a tangent was given for an array that does not require a gradient",
                       f"shape {a.shape} of {a.dtype.__name__}", help=grad_help(a))  # fmt: skip
        seeds[a] = fitted(a, tangent, "tangent", "E406")
    twin = push(records, seeds)
    whole = (a._whole or a for r in records for a in r.written)
    written = {id(a): a for a in whole if a.requires_grad}
    return Tangents(twin, list(written.values()), {})
