"""`launch`: checks arguments, tells the tape, runs the kernel."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from engine.compile.backend import IN_ORDER
from engine.compile.cpu.launcher import maker
from engine.diagnostics.site import Site, call_site
from engine.lang.types import is_float
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.deferred import DeferredLaunch
from engine.runtime.device import DEVICES, HOST, DeviceLike, get_device, others
from engine.runtime.execute import Executable
from engine.runtime.finite import FiniteChecks
from engine.runtime.foreign import is_foreign
from engine.runtime.guards import in_one_place
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail
from engine.runtime.launch_log import LaunchLog
from engine.runtime.links import Gathered
from engine.runtime.pack import Mismatch, as_array
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import Call
from engine.runtime.streams import Stream, shaped
from engine.runtime.structs import Struct
from engine.runtime.transfer import check_writable, clone

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
    # Most launches are of this kind, and nobody listens: as few looks as can be.
    plan = kernel._plan if kernel.__class__ is Kernel else None
    functions = maker.functions
    if (
        functions is not None and plan is not None
        and (device is None or device is HOST or (device.__class__ is str and device == _HOST))
        and not (adjoint or record_cmd or stream is not None) and (plan.recipe or plan.hurry())
    ):  # fmt: skip
        came = functions.whole(plan.recipe, dim, inputs, outputs, record_tape)
        if came is True:
            return None
        if came is not None:
            return plan.finish(dim, came)
    if (
        plan is not None and plan.plain and (device is None or device is HOST or others)
        and not (adjoint or record_cmd)
        and inputs.__class__ in _GROUPS and outputs.__class__ in _GROUPS
        and (plan.is_unheard() if not others else stream is None)
    ):  # fmt: skip
        values = [*inputs, *outputs]
        blob = None
        if not others:
            blob = plan.pack(values)
        elif max_blocks == 0 and block_dim == 256:
            place = get_device(device)
            here = plan.for_place(place)
            if here is not None:
                plan, blob = here, here.pack(values)
                if blob is not None and not plan.all_on(place, values):
                    blob = None
        if blob is not None:
            if dim.__class__ is int and 0 <= dim <= MAX_DIM:
                dim = (dim,)
            elif not _is_grid(dim):
                dim = grid(dim, kernel)
            tape = events.tape() if record_tape else None
            if tape is None:
                plan.run(dim, values, blob)
            else:
                tape.run_launch(plan, dim, values, blob, len(inputs), call_site(2))
            return None
    if others and (stream is not None or max_blocks or block_dim != 256):
        with shaped(stream, block_dim, max_blocks):
            made = _launch(
                kernel, dim, inputs, outputs, adj_inputs, adj_outputs,
                stream.device if device is None and isinstance(stream, Stream) else device,
                adjoint, record_tape, record_cmd,
            )  # fmt: skip
    else:
        made = _launch(
            kernel, dim, inputs, outputs, adj_inputs, adj_outputs, device, adjoint, record_tape,
            record_cmd,
        )  # fmt: skip
    if record_cmd:
        made.block_dim, made.max_blocks, made.stream = block_dim, max_blocks, stream
    return made


# Arguments that are lists as they are.
_GROUPS: frozenset[Any] = frozenset({list, tuple})


def _is_grid(dim: Any) -> bool:
    """Whether launch dimensions are surely as `grid` gives them."""
    if dim.__class__ is not tuple or not 1 <= len(dim) <= 3:
        return False
    for n in dim:  # noqa: SIM110  # a generator takes twice the time
        if n.__class__ is not int or not 0 <= n <= _SHORT:
            return False
    return True


_HOST = HOST.alias
_SHORT = 1 << 20  # three axes of it are below all limits


def _launch(
    kernel: Kernel,
    dim: Any,
    inputs: Any,
    outputs: Any,
    adj_inputs: Any,
    adj_outputs: Any,
    device: DeviceLike,
    adjoint: bool,
    record_tape: bool,
    record_cmd: bool,
) -> Any:
    """Any launch; see `launch`."""
    if kernel.__class__ is not Kernel:
        raise fail("E202", f"launch takes a function decorated with @kernel, got {kernel!r}")
    place = get_device(device)
    if inputs.__class__ is not list or outputs.__class__ is not list:
        inputs, outputs = as_list(kernel, inputs), as_list(kernel, outputs)
    given = [*inputs, *outputs]
    plan = kernel._plan
    if plan is None:
        kernel = kernel.for_arguments(given)
        on_tape = record_tape and not (adjoint or record_cmd)
        on_tape = on_tape and events.tape() is not None
        plan = kernel.planned(given if on_tape else None)
    if plan.backend is not place.backend:
        plan = plan.on(place.backend)
    shape = (dim,) if dim.__class__ is int and 0 <= dim <= MAX_DIM else grid(dim, kernel)
    device = place if len(DEVICES) > 1 else None
    gathered = None
    needed = (0,) if record_cmd else shape  # a recorded launch may get its arrays later
    if plan.arguments is not None and plan.arguments.linked:
        with Gathered(record_tape and not record_cmd) as gathered:
            values, blob = plan.bind(given, needed, device)
        gathered.check(plan, values)
        if plan.relinks is not None:
            from engine.runtime import relinks

            relinks.check(gathered, plan)
            if events.graph() is not None:
                raise fail("E213", f"kernel {kernel.key!r} makes structs refer to other arrays, "
                           "which a captured graph cannot do", help="launch it before or after "
                           "the capture")  # fmt: skip
    elif plan.tables and (adjoint or not record_tape):
        values, blob = _bind_off_tape(plan, given, needed, device)
    else:
        values, blob = plan.bind(given, needed, device)
    if adjoint:
        if gathered is not None:
            raise fail("E401", f"the adjoint of kernel {kernel.key!r} cannot be launched: structs "
                       "in an array hold arrays",
                       help="record the launch on a Tape and use tape.backward")  # fmt: skip
        adjoints = [*(adj_inputs or ()), *(adj_outputs or ())]
        if len(adjoints) != len(given):
            mine = (adj_inputs or [None] * len(inputs), adj_outputs or [None] * len(outputs))
            adjoints = [*mine[0], *mine[1]]
        if not record_cmd:
            kept = _kept(given) if plan.tables else None
            return run_adjoint(plan, shape, values, blob, adjoints, kept)
    if record_cmd:
        from engine.runtime.recorded_launch import recorded_launch

        return recorded_launch(kernel, shape, given, place, adjoints if adjoint else None)
    call, site = Call(plan, shape, values, blob, len(inputs)), None
    if events.graph() is not None:
        site, tape = call_site(3), events.tape() if record_tape else None
        kept = _kept(given) if plan.tables else []
        run = partial(_replay, call, kept, site, record_tape, gathered)
        simple = gathered is None and not plan.tables
        simple = simple and (record_tape or events.tape() is None)
        events.deferred(DeferredLaunch(call, run, simple, site))
        if tape is not None:
            tape.sketch_launch(call, site)
        return None
    if record_tape and (events.everywhere or events.tape() is not None):
        site = call_site(3)
    _perform(kernel, call, site, record_tape, gathered)
    return None


def _kept(given: list[Any]) -> list[Any]:
    """Arguments as they are, for when geometry is looked for again."""
    return [copy(v) if isinstance(v, Struct) else v for v in given]


def _bind_off_tape(
    plan: Plan, given: list[Any], dim: tuple[int, ...], device: Any = None
) -> tuple[list[Any], bytes]:
    """Binds arguments; a tape that is active does not record what is copied for them."""
    token = events.with_tape(None)
    try:
        return plan.bind(given, dim, device)
    finally:
        events.restore(token)


def _replay(
    call: Call, given: list[Any], site: Site | None, record_tape: bool, gathered: Gathered | None
) -> None:
    """Runs a captured launch; geometry that it queries may have been built anew."""
    plan = call.plan
    if plan.tables:
        bind = plan.bind if record_tape else partial(_bind_off_tape, plan)
        values, blob = bind(list(given), call.dim)
        call = Call(plan, call.dim, values, blob, call.inputs)
    _perform(plan.kernel, call, site, record_tape, gathered)


def _perform(
    kernel: Kernel, call: Call, site: Site | None, record_tape: bool, gathered: Gathered | None
) -> None:
    """Runs a launch with checked arguments, and tells all who listen."""
    plan, shape, values, blob = call.plan, call.dim, call.values, call.blob
    observers = events.observers()
    for o in observers:
        o.launching(kernel, shape, values)
    if events.everywhere:
        reads, writes = (
            [a for i in some if (a := values[i]) is not None] for some in (plan.inputs, plan.writes)
        )
        events.reading(reads, written=writes)
    tape = events.tape() if record_tape else None
    if tape is None:
        if record_tape:
            for o in observers:
                o.unrecorded(call, site)
        plan.run(shape, values, blob)
    else:
        tape.run_launch(plan, shape, values, blob, call.inputs, site)
    if gathered is not None:
        from engine.runtime import relinks

        gathered.give_back()
        relinks.relink(gathered, plan)
    for o in observers:
        o.launched(plan, values)


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
    if group.__class__ in _GROUPS:
        return list(group)
    alone = isinstance(group, (array, np.ndarray)) or is_foreign(group)
    if alone or not isinstance(group, Iterable):
        raise fail("E201", f"kernel {kernel.key!r}: inputs and outputs are lists of arguments",
                   f"got {group!r:.80}", help="write inputs=[x]")  # fmt: skip
    return list(group)


def run_adjoint(
    plan: Plan, shape: tuple[int, ...], values: list[Any], blob: bytes, adjoints: list[Any],
    kept: list[Any] | None = None,
) -> None:  # fmt: skip
    """Launches a kernel's adjoint at the arguments' present values.

    adjoints: one for each argument; None for the argument's own gradient, if it has one. kept: the
    arguments as given, where the kernel queries geometry, which may be built anew in a graph.
    """
    kernel = plan.kernel
    asked = adjoints
    if plan.arguments is not None:
        adjoints = plan.split_adjoints(adjoints)
    if len(adjoints) != plan.count:
        raise fail("E201", f"adjoint of kernel {kernel.key!r} got the wrong number of arguments",
                   f"expected {plan.count} adjoints, got {len(adjoints)}")  # fmt: skip
    given: list[array] = []
    names = []
    taken = []  # which gradients the adjoint has to leave as they are
    for p, adj in zip(plan.params, adjoints, strict=True):
        if p.array_kind is None or not is_float(p.kind):
            continue
        primal = values[p.index]
        try:
            mine = primal is not None and primal.requires_grad
            found = primal.grad if adj is None and mine else as_array(adj, p.array_kind)
        except Mismatch as e:
            raise plan.mismatch(p, e) from None
        if found is None or found.size == 0:
            continue
        if primal is None or primal.shape != found.shape:
            raise fail("E207", f"kernel {kernel.key!r}, adjoint of {p.name!r}: wrong shape",
                       f"expected {None if primal is None else primal.shape}, "
                       f"got {found.shape}")  # fmt: skip
        given.append(found)
        names.append(p.name)
        taken.append(p.index in plan.only_written and not _is_consumed(primal, found))
        if in_one_place(found) and not taken[-1]:
            raise fail("E206", f"kernel {kernel.key!r}, adjoint of {p.name!r}: two elements lie in "
                       "one place, and the adjoint adds to them", help="pass a copy")  # fmt: skip
    wrt = frozenset(names)
    if not wrt & plan.variants.written:
        return
    journaled = plan.variants.journaled(plan.aliased(values))
    if plan.variants.needs_journal(wrt, journaled):
        lost = ", ".join(sorted(journaled)) or "its reads"
        raise fail(
            "E401", f"the adjoint of kernel {kernel.key!r} needs values that a launch overwrites",
            f"read and written: {lost}", help="record the launch on a Tape and use tape.backward",
        )  # fmt: skip
    # Nothing is written where it does not compile.
    adjoint = plan.adjoint(wrt, journaled)
    run = partial(_perform_adjoint, plan, shape, blob, adjoint, given, names, taken)
    if kept is None:
        if not events.deferred(run):
            run()
    elif not events.deferred(partial(_replay_adjoint, plan, shape, kept, asked)):
        from engine.runtime.geometry.pools import deal

        run()
        deal(values)


def _replay_adjoint(
    plan: Plan, shape: tuple[int, ...], kept: list[Any], adjoints: list[Any]
) -> None:
    """Runs a captured adjoint of a launch that queries geometry."""
    values, blob = _bind_off_tape(plan, list(kept), shape)
    run_adjoint(plan, shape, values, blob, adjoints, kept)


def _is_consumed(primal: array, gradient: array) -> bool:
    """Whether a gradient of what a kernel writes is used up, as in a backward pass."""
    own = primal.existing_grad
    return own is not None and own._ptr == gradient._ptr and not primal.retain_grad


def _perform_adjoint(
    plan: Plan, shape: tuple[int, ...], blob: bytes, adjoint: Executable, gradients: list[array],
    names: list[str], taken: list[bool],
) -> None:  # fmt: skip
    given = list(gradients)
    events.reading([a for k, a in zip(names, given, strict=True) if k in plan.variants.written])
    for k, a in enumerate(given):
        if taken[k]:
            given[k] = clone(a, requires_grad=False)  # the adjoint takes what is there
        else:
            check_writable(a)
            a.storage.before_write(a.lo, a.hi)
    # What the launch was is for the caller to know.
    journal = None if plan.backend.on_host or not plan.variants.in_order() else IN_ORDER
    adjoint.run(shape, blob + b"".join(a._packed for a in given), journal=journal)
    for o in events.observers():
        o.differentiated(plan, list(zip(names, given, strict=True)))
