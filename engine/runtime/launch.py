"""`launch`: binds arguments to a kernel, and runs it."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from engine.accelerator import accelerator
from engine.compile.backend import Journal
from engine.diagnostics.site import call_site
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch
from engine.runtime.device import DEVICES, DeviceLike, get_device, others
from engine.runtime.execute import Done, Executable, Execution
from engine.runtime.finite import FiniteChecks
from engine.runtime.foreign import is_foreign
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail
from engine.runtime.launch_log import LaunchLog
from engine.runtime.links import Gathered
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import BoundLaunch
from engine.runtime.streams import Stream, shaped
from engine.runtime.structs import Struct

MAX_DIM = (1 << 31) - 1

events.by_setting("print_launches", LaunchLog())
events.by_setting("verify_fp", FiniteChecks())


def launch(
    kernel: Kernel,
    dim: Any,
    inputs: Any = (),
    outputs: Any = (),
    adj_inputs: Any = (),
    adj_outputs: Any = (),
    device: DeviceLike = None,
    stream: object = None,
    adjoint: bool = False,
    record_tape: bool = True,
    record_cmd: bool = False,
    max_blocks: int = 0,
    block_dim: int = 256,
) -> Any:
    """Runs a kernel once for every thread of a grid, and records it on the active tape.

    Args:
        kernel: a function decorated with `@kernel`.
        dim: the grid, an int or up to 4 of them; 0 runs nothing, `()` one thread.
        inputs: the first arguments.
        outputs: the others; where to split is the caller's choice.
        adj_inputs: with `adjoint`, a gradient array for each of `inputs`; None for an argument's
            own `grad`, which is also meant where the list is left out.
        adj_outputs: the same for `outputs`. What an output that is only written has there
            stays as it is, unless it is the argument's own `grad`: that is consumed, as in a
            backward pass (not with retain_grad).
        device: where to run, the current device for None.
        adjoint: runs the kernel's adjoint: adds to `adj_inputs` what `adj_outputs` cause.
        record_tape: False keeps the launch off the active tape.
        record_cmd: True runs nothing and returns a `Launch` that can be launched many times.
        stream: where a GPU queues the launch, the current stream for None; it says the device,
            too. It means nothing on the CPU.
        max_blocks: of a GPU, how many blocks run at most, each thread of which goes on with others
            then; 0 for any number. It means nothing on the CPU.
        block_dim: threads of a block of a GPU (whole warps, at most 1024). It means nothing on the
            CPU.

    Launches that several Python threads make at once run at once. Nothing synchronises those that
    change one array: updates can be lost, those of `atomic_add` and its like too.

    Raises LaunchError: E201 count, E202 type, E203 dimensions, E204 device of an
    argument, E205 grid; KernelError where the kernel cannot be lowered, CompilerError where
    it cannot be compiled. No array has changed in these cases. LaunchError E210 where a
    test in the kernel failed (`assert`, `expect_eq`; see `config.mode`, `config.expect`).
    """
    if not (adjoint or record_cmd) and accelerator.try_run(
        kernel, dim, inputs, outputs, device, stream, record_tape
    ):
        return None
    if others and (stream is not None or max_blocks or block_dim != 256):
        if device is None and isinstance(stream, Stream):
            device = stream.device
        options = (adj_inputs, adj_outputs, device, None, adjoint, record_tape, record_cmd)
        with shaped(stream, block_dim, max_blocks):
            made = launch(kernel, dim, inputs, outputs, *options)
        if record_cmd:
            made.block_dim, made.max_blocks, made.stream = block_dim, max_blocks, stream
        return made
    if not (adjoint or record_cmd):
        run(bind(kernel, dim, inputs, outputs, device, record_tape))
        return None
    from engine.runtime import adjoint_launch, command

    bound = bind(kernel, dim, inputs, outputs, device, record_tape, adjoint, record_cmd)
    adjoints = adjoint_launch.asked(bound, adj_inputs, adj_outputs) if adjoint else None
    if record_cmd:
        made = command.make_command(bound, device, adjoints)
        made.block_dim, made.max_blocks, made.stream = block_dim, max_blocks, stream
        return made
    return adjoint_launch.launch(bound, adjoints or [])


def bind(
    kernel: Kernel,
    dim: Any,
    inputs: Any,
    outputs: Any,
    device: DeviceLike = None,
    recorded: bool = True,
    adjoint: bool = False,
    later: bool = False,
) -> BoundLaunch:
    """Checks the arguments of a launch. Raises what `launch` does; nothing has changed then.

    recorded: whether a tape that is active records it. adjoint: that of the kernel is to run.
    later: with other arguments than these, maybe.
    """
    if kernel.__class__ is not Kernel:
        raise fail("E202", f"launch takes a function decorated with @kernel, got {kernel!r}")
    place = get_device(device)
    if inputs.__class__ is not list or outputs.__class__ is not list:
        inputs, outputs = as_list(kernel, inputs), as_list(kernel, outputs)
    given = [*inputs, *outputs]
    off_tape = adjoint or later or not recorded
    plan = kernel._plan
    if plan is None:
        kernel = kernel.for_arguments(given)
        plan = kernel.planned(None if off_tape or events.tape() is None else given)
    if plan.backend is not place.backend:
        plan = plan.on(place.backend)
    shape = (dim,) if dim.__class__ is int and 0 <= dim <= MAX_DIM else grid(dim, kernel)
    only = place if len(DEVICES) > 1 else None
    needed = (0,) if later else shape
    gathered = None
    if plan.arguments is not None and plan.arguments.linked:
        gathered = Gathered(recorded and not later)
        values, blob = _bind_gathered(plan, given, needed, only, gathered)
    elif plan.tables and (adjoint or not recorded):
        values, blob = bind_off_tape(plan, given, needed, only)
    else:
        values, blob = plan.bind(given, needed, only)
    site = None if off_tape or not events.are_any() else call_site(3)
    kept: list[Any] = given if later else []
    if plan.tables and not later:
        kept = [copy(v) if isinstance(v, Struct) else v for v in given]
    return BoundLaunch(plan, shape, values, blob, len(inputs), site, recorded, gathered, kept)


def run(bound: BoundLaunch) -> Execution:
    """Runs a launch: the one way through Python in which kernels run, recorded, observed or not."""
    how: tuple[Any, ...] = bound.form_run or _begun(bound)
    if how[0] is None:
        return Execution()
    executable: Executable = how[0]
    return executable.execute(bound.dim, bound.blob, *how[1:])


def _begun(bound: BoundLaunch) -> tuple[Executable | None, Done | None]:
    """Tells of a launch that is about to run.

    What runs it, None where a graph has taken the launch, and what is to be called after that: the
    first fields of a `FormRun`.
    """
    plan, values = bound.plan, bound.values
    graph = tape = None
    if events.here.get():
        graph, tape = events.graph(), events.tape() if bound.on_tape else None
    if graph is not None:
        simple = bound.simple and (bound.on_tape or events.tape() is None)
        graph.add(DeferredLaunch(bound, run_again, simple))
        if tape is not None:
            tape.sketch_launch(bound)
        return None, None
    observers = events.observers()
    for o in observers:
        o.launching(plan.kernel, bound.dim, values)
    if events.everywhere:
        reads, writes = (
            [a for i in some if (a := values[i]) is not None] for some in (plan.inputs, plan.writes)
        )
        events.reading(reads, written=writes)
    executable, done = plan.forward, None
    if tape is not None:
        executable, done = tape.begin_launch(bound)
    elif bound.on_tape:
        for o in observers:
            o.unrecorded(bound)
    plan.check_written(values)
    if observers or bound.gathered is not None:
        done = partial(_ran, bound, observers, done)
    return executable, done


def _ran(
    bound: BoundLaunch, observers: Sequence[events.Observer], done: Done | None,
    journal: Journal | None,
) -> None:  # fmt: skip
    """To be called when a launch has run, with what it saved; an expectation may have failed."""
    if done is not None:
        done(journal)
    if bound.gathered is not None:
        from engine.runtime import relinks

        bound.gathered.give_back()
        relinks.relink(bound.gathered, bound.plan)
    for o in observers:
        o.launched(bound.plan, bound.values)


def run_again(bound: BoundLaunch) -> None:
    """Runs a launch that was captured; geometry that it queries may have been built anew."""
    plan = bound.plan
    if plan.tables:
        bind = plan.bind if bound.on_tape else partial(bind_off_tape, plan)
        values, blob = bind(list(bound.given), bound.dim)
        bound = bound._replace(values=values, blob=blob)
    run(bound)


def _bind_gathered(
    plan: Plan, given: list[Any], dim: tuple[int, ...], device: Any, gathered: Gathered
) -> tuple[list[Any], bytes]:
    """Binds arguments of which some are structs in arrays that hold arrays."""
    with gathered:
        values, blob = plan.bind(given, dim, device)
    gathered.check(plan, values)
    if plan.relinks is not None:
        from engine.runtime import relinks

        relinks.check(gathered, plan)
        if events.graph() is not None:
            raise fail("E213", f"kernel {plan.kernel.key!r} makes structs refer to other arrays, "
                       "which a captured graph cannot do", help="launch it before or after "
                       "the capture")  # fmt: skip
    return values, blob


def bind_off_tape(
    plan: Plan, given: list[Any], dim: tuple[int, ...], device: Any = None
) -> tuple[list[Any], bytes]:
    """Binds arguments; a tape that is active does not record what is copied for them."""
    token = events.pause_tapes()
    try:
        return plan.bind(given, dim, device)
    finally:
        events.resume_tapes(token)


def grid(dim: Any, kernel: Kernel) -> tuple[int, ...]:
    """Launch dimensions as a tuple of 1 to 4 ints, (1,) for none. Raises LaunchError (E205)."""
    try:
        if isinstance(dim, (tuple, list)) or (
            hasattr(dim, "__len__") and getattr(dim, "ndim", None) != 0
        ):
            shape = tuple(operator.index(n) for n in dim)
        else:
            shape = (operator.index(dim),)
    except TypeError:
        raise fail("E205", f"kernel {kernel.key!r}: launch dimensions must be integers",
                   f"got dim={dim!r}") from None  # fmt: skip
    if any(n < 0 for n in shape):
        wrong = "launch dimensions must be non-negative"
    elif len(shape) > 4:
        wrong = "a launch has at most 4 dimensions"
    elif any(n > MAX_DIM for n in shape) or math.prod(shape) >= 1 << 62:
        wrong = "launch dimensions are too large"
    else:
        return shape or (1,)
    raise fail("E205", f"kernel {kernel.key!r}: {wrong}",
               f"expected up to 4 integers from 0 to {MAX_DIM}, got dim={dim!r}")  # fmt: skip


def as_list(kernel: Kernel, group: Any) -> list[Any]:
    """Inputs or outputs as a list. Raises LaunchError (E201) for one argument without a list."""
    if group is None:
        return []
    if group.__class__ in (list, tuple):
        return list(group)
    alone = isinstance(group, (array, np.ndarray)) or is_foreign(group)
    if alone or not isinstance(group, Iterable):
        raise fail("E201", f"kernel {kernel.key!r}: inputs and outputs are lists of arguments",
                   f"got {group!r:.80}", help="write inputs=[x]")  # fmt: skip
    return list(group)
