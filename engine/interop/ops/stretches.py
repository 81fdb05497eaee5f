"""`record_torch` and `record_jax`: computations of another framework as tape records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, cast

from engine.diagnostics.site import call_site
from engine.interop.ops.jax_stretch import JaxStretch
from engine.interop.ops.torch_stretch import TorchStretch
from engine.lang.structs import StructType
from engine.lang.types import BY_NAME
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.device import get_device
from engine.runtime.launch_errors import fail
from engine.tape.records.foreign import ForeignRecord, Stretch
from engine.tape.restoration import present
from engine.tape.stretching import run
from engine.tape.tape import Tape

Maker = Callable[[Callable[..., Any]], Stretch]


def record_torch(
    function: Callable[..., Any], inputs: Sequence[array], outputs: Sequence[array] | None = None
) -> Any:
    """Computes arrays by a function of PyTorch, and records that on the active tape.

    Args:
        function: takes a tensor for each input, and returns a tensor or a tuple of them.
            Components of vectors and matrices are the last axes.
        inputs: the arrays; the function gets copies of them.
        outputs: the arrays that the results go into. New ones are made where left out, which
            require a gradient if an input does.

    Returns the outputs: an array, or a tuple of them. In `tape.backward` the function is called
    again, at what it read (see `config.overwrites`) and with the same random numbers, and
    PyTorch's gradients are added to those of the inputs. Parameters that the function holds, as
    those of a module, get theirs too, as from `backward()`. `adtool check` replays it in float64.

    Raises LaunchError: E202 for what is no function, array or tensor, E201 for a wrong number of
    results, E207 for their shapes, E206 for outputs that share memory with inputs.

    ::

        with wp.Tape() as tape:
            wp.launch(step, dim=n, inputs=[x], outputs=[y])
            loss = wp.record_torch(lambda y: (y**2).sum().reshape(1), [y])
        tape.backward(loss)
    """
    return _record(TorchStretch, "record_torch", function, inputs, outputs)


def record_jax(
    function: Callable[..., Any], inputs: Sequence[array], outputs: Sequence[array] | None = None
) -> Any:
    """The same as `record_torch`, by a function of JAX that takes and returns JAX arrays."""
    return _record(JaxStretch, "record_jax", function, inputs, outputs)


def _record(
    make: Maker, door: str, function: Any, inputs: Any, outputs: Any
) -> Any:  # fmt: skip
    if not callable(function):
        raise fail("E202", f"{door} takes a function, got {function!r:.80}")
    given = _arrays(door, "inputs", inputs)
    made = None if outputs is None else _arrays(door, "outputs", outputs)
    for a in made or ():
        if any(may_meet(a, b) for b in given):
            raise fail("E206", f"{door}: an output shares memory with an input",
                       help="pass separate arrays for the results")  # fmt: skip
    if events.graph() is not None:
        if made is None:
            raise fail("E213", f"{door} cannot make arrays while a graph is captured",
                       help="give `outputs`")  # fmt: skip
        events.deferred(lambda: _record(make, door, function, given, made))
        return made[0] if len(made) == 1 else tuple(made)
    site, began = call_site(2), perf_counter()
    stretch = make(function)
    # What the function does with arrays of the engine itself is its own affair.
    token = events.pause_tapes()
    try:
        results = stretch.run([present(a) for a in given])
    finally:
        events.resume_tapes(token)
    outs = _made(given, results) if made is None else made
    _check(door, stretch, results, outs)
    results = [x.reshape(a._parts.shape) for x, a in zip(results, outs, strict=True)]
    record = ForeignRecord(stretch, given, outs, site)
    run(record, results, cast("Tape | None", events.tape()), began)
    return outs[0] if len(outs) == 1 else tuple(outs)


def _arrays(door: str, what: str, arrays: Any) -> list[array]:
    if not isinstance(arrays, (list, tuple)):
        raise fail("E202", f"{door}: {what} are a list of arrays, got {type(arrays).__name__}",
                   help=f"write {what}=[a]")  # fmt: skip
    for a in arrays:
        if not isinstance(a, array) or isinstance(a._ir.element, StructType):
            got = f"an array of {a.dtype.__name__}" if isinstance(a, array) else type(a).__name__
            raise fail("E202", f"{door}: {what} are arrays of scalars, vectors and matrices, "
                       f"but one is {got}")  # fmt: skip
    return list(arrays)


def _made(inputs: Sequence[array], results: Sequence[Any]) -> list[array]:
    moves = any(a.requires_grad for a in inputs)
    out = []
    for x in results:
        kind = BY_NAME[x.dtype.name]
        a = array._allocate(x.shape or (1,), kind, False, get_device(None))
        if moves and kind.kind == "f":
            a.requires_grad = True
        out.append(a)
    return out


def _check(door: str, stretch: Stretch, results: Sequence[Any], outputs: Sequence[array]) -> None:
    if len(results) != len(outputs):
        raise fail("E201", f"{door}: {stretch.name!r} returned {len(results)} results for "
                   f"{len(outputs)} outputs")  # fmt: skip
    for k, (x, a) in enumerate(zip(results, outputs, strict=True)):
        if x.shape != a._parts.shape and not (x.shape == () and a._parts.size == 1):
            raise fail("E207", f"{door}: result {k} of {stretch.name!r} has shape {x.shape}, and "
                       f"its output {a._parts.shape}", help="components are the last axes"
                       if a._info.inner else "")  # fmt: skip
        if x.dtype != a._parts.dtype:
            raise fail("E202", f"{door}: result {k} of {stretch.name!r} is of {x.dtype}, and its "
                       f"output of {a.dtype.__name__}")  # fmt: skip
