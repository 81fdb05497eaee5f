"""`jvp`: forward mode, of one launch or of a tape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_span
from engine.lang.types import is_float
from engine.runtime.array import array
from engine.runtime.device import DeviceLike, get_device
from engine.runtime.errors import fail
from engine.runtime.kernel import Kernel
from engine.runtime.launch import as_list, grid
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
        if id(a) not in self._arrays and self._twin.block(a) < 0:
            raise KeyError(key)
        tan = self._twin.of(a)
        out = array._allocate(a.shape, a._ir.element, zero=False)
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
    had when it was recorded. User arrays and gradients stay bit for bit as they were.

    Raises TapeError: E406 for tangents that do not fit; E401 for a function given to
    `Tape.record_func`, which has no forward derivative, and where the values of a
    recorded launch's inputs were not kept (`config.tape_snapshots`). Of a launch,
    all that `launch` raises.

    ::

        moved = jvp(square, dim=3, inputs=[x], outputs=[y], tangents={x: v})
        moved[y]  # d y in the direction v
    """
    if device is not None:
        get_device(device)
    if not isinstance(tangents, Mapping):
        raise _bad("tangents must be a dictionary of arrays and their tangents",
                   f"got {type(tangents).__name__}")  # fmt: skip
    if isinstance(function, Kernel):
        return _of_launch(function, dim, [*as_list(function, inputs), *as_list(function, outputs)],
                          tangents)  # fmt: skip
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


def _of_launch(kernel: Kernel, dim: Any, args: list[Any], tangents: Mapping[Any, Any]) -> Tangents:
    plan, shape = kernel.plan, grid(dim, kernel)
    given = list(args)
    values, _ = plan.bind(args, shape)
    names: dict[Key, array] = {}
    for p in plan.array_params:
        if values[p.index] is not None:
            names[p.name] = names[p.index] = values[p.index]
    seeds = _launch_seeds(plan, given, values, names, tangents)
    floats = {p.name: a for p in plan.floats if (a := values[p.index]) is not None}
    written = {name: a for name, a in floats.items() if name in plan.variants.written}
    twin = Twin([*floats.values(), *(a for a, _ in seeds)])
    moving = {twin.block(a) for a in (*written.values(), *(a for a, _ in seeds))}
    seed(twin, seeds)
    if written and 0 not in shape:
        wrt = frozenset(name for name, a in floats.items()
                        if name in written or twin.block(a) in moving)  # fmt: skip
        run_tangent(plan, shape, values, lambda _: None, twin, wrt)
    return Tangents(twin, list(written.values()), names)


def _launch_seeds(
    plan: Plan, given: list[Any], values: list[Any], names: Mapping[Key, array],
    tangents: Mapping[Any, Any],
) -> list[tuple[array, NumpyArray]]:  # fmt: skip
    """Arrays of the launch and their tangents. Raises TapeError (E406)."""
    out: list[tuple[array, NumpyArray]] = []
    known = [p.name for p in plan.array_params if values[p.index] is not None]
    for key, tangent in tangents.items():
        if isinstance(key, array):
            found = next((v for g, v in zip(given, values, strict=True) if g is key), None)
        else:
            found = names.get(key)
        if found is None:
            shown = key if isinstance(key, (str, int)) else type(key).__name__
            raise _bad(f"kernel {plan.kernel.key!r} has no array argument {shown!r}",
                       f"its array arguments are {', '.join(known) or 'none'}",
                       help="a number has no tangent: pass it in an array")  # fmt: skip
        if not is_float(found._ir):
            raise _bad(f"elements of type {found.dtype.__name__} have no tangent")
        out.append((found, fitted(found, tangent, "tangent", "E406")))
    return out


# ---- tapes


def _of_tape(tape: Tape, tangents: Mapping[Any, Any]) -> Tangents:
    records = tape.records
    on_tape = Twin(a for r in records for a in r.arrays)
    seeds: dict[array, NumpyArray] = {}
    for a, tangent in tangents.items():
        if not isinstance(a, array):
            raise _bad("a key of tangents is not an array", f"got {type(a).__name__}")
        if a.size and on_tape.block(a) < 0:
            raise _bad("a tangent was given for an array that is not on the tape",
                       f"shape {a.shape} of {a.dtype.__name__}")  # fmt: skip
        if not a.requires_grad:
            raise _bad("a tangent was given for an array that does not require a gradient",
                       f"shape {a.shape} of {a.dtype.__name__}", help=grad_help(a))  # fmt: skip
        seeds[a] = fitted(a, tangent, "tangent", "E406")
    twin = push(records, seeds)
    written = {id(a): a for r in records for a in r.written if a.requires_grad}
    return Tangents(twin, list(written.values()), {})
