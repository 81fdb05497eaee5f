"""The tape: records launches and copies, and differentiates through them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any
from weakref import WeakSet

from engine import config
from engine.accelerator import accelerator
from engine.compile.backend import IN_ORDER, Journal
from engine.diagnostics import Diagnostic, TapeError
from engine.diagnostics.site import call_site, call_span
from engine.runtime import events
from engine.runtime.array import array
from engine.runtime.blocks import Leave
from engine.runtime.device import get_device, others
from engine.runtime.device_graphs import bypassed, check_recorded
from engine.runtime.events import Written
from engine.runtime.execute import Done, Executable
from engine.runtime.kernel import Kernel
from engine.runtime.launch import grid
from engine.runtime.plan_parts import NOBODY, BoundLaunch
from engine.tape import access
from engine.tape.backward import (
    Pass,
    check_loss,
    check_seeds,
    lying_seeds,
    reverse,
)
from engine.tape.gradients import Gradients, clear, gradient_of, seed
from engine.tape.overwrites import Overwrites, mode
from engine.tape.record_list import RecordList, record_of
from engine.tape.records import FunctionRecord, LaunchRecord, Record, kind_of
from engine.tape.restoration import Change
from engine.tape.scopes import Marker, ScopeStack


class Tape(RecordList):
    """Records what happens in a `with` block, so that gradients can be computed.

    ::

        tape = Tape()
        with tape:
            launch(step, dim=n, inputs=[x], outputs=[loss])
        tape.backward(loss)
        print(x.grad)

    records: what was recorded, in order. loss: the loss of the last `backward`.
    """

    def __init__(self) -> None:
        self._records: list[Record] | None = []
        self.loss: array | None = None
        self._stack: ScopeStack | None = None  # once there is a scope
        self._seeded: dict[int, array] = {}
        self._former: Collection[array] = ()  # of records that were forgotten
        self._overwrites = Overwrites()
        if events.everywhere or events.here.get():
            self._announce()

    def _announce(self) -> None:
        """Tells that it was made."""
        for o in events.observers():
            o.tape_made(self)

    def _followers(self) -> Sequence[events.Observer]:
        """Those who are told what it records and runs backward."""
        if not events.everywhere:
            return ()
        return [o for o in tuple(events.everywhere) if o.follows(self)]

    @property
    def _scopes(self) -> ScopeStack:
        if self._stack is None:
            self._stack = ScopeStack()
        return self._stack

    def _join(self) -> None:
        """To be called where a block of recording begins."""
        if events.everywhere:
            events.tell("tape_entered", self)

    # ---- recording

    def __enter__(self) -> Tape:
        before = events.here.get()
        if before and events.tape() is not None:
            raise self._misused("a tape cannot be entered while another one records",
                                help="leave the first `with` block, or record on it")  # fmt: skip
        try:
            self._token = True
            events.enter(self)
            if not (before and events.deferred(self._join)):
                self._join()
            return self
        except BaseException:  # a signal's handler may raise anywhere: the block does not begin
            self._end()
            raise

    @Leave
    def __exit__(self, *exc: object) -> None:
        try:
            if events.is_only_observer(self) or not events.deferred(self._left):
                self._left()
        finally:
            self._end()

    def _end(self) -> None:
        """Records nothing any more."""
        events.leave(self)
        self._token = self._watch = None

    def _left(self) -> None:
        if not self._overwrites.are_none():
            self._overwrites.left(self._made()[:])  # others may forget them
        for o in self._followers():
            o.tape_left(self)

    @property
    def launches(self) -> list[Record]:
        """The records; another name for `records`."""
        return self.records

    @property
    def scopes(self) -> list[Marker]:
        """Begins and ends of named groups of records, in order.

        A begin is (number of records before it, name, metadata), an end the number and two Nones:
        it ends the group that was opened last.
        """
        return self._scopes.markers()

    def begin_launch(self, launch: BoundLaunch) -> tuple[Executable, Done]:
        """Has a launch that is about to run recorded.

        What it runs as; and what is to be called when it has run, with what it saved.
        """
        plan, values = launch.plan, launch.values
        began, followers = 0.0, self._followers()
        if followers:
            reads = [values[i] for i in plan.only_read if values[i] is not None]
            for o in followers:
                o.tape_recording(self, reads, values)
            began = perf_counter()
        aliased = plan.aliased(values) if plan.pairs else NOBODY
        selection = plan.select(values, aliased)
        record = LaunchRecord(
            plan, launch.dim, values, launch.blob, launch.inputs, launch.site, aliased, selection
        )
        self._hold(record, followers)
        if self._verifies():
            access.launched(record)
        changes = self._overwrites.launching(record, self._count)
        return selection.executable, partial(self._ran, record, changes, began)

    def _ran(
        self, record: LaunchRecord, changes: Sequence[Change], began: float,
        journal: Journal | None,
    ) -> None:  # fmt: skip
        """To be called when a launch has run, with what it saved."""
        seconds = perf_counter() - began if began else None
        if journal is not None:
            record.journal = journal
            self._overwrites.journaled |= journal is not IN_ORDER
        self._append(record, seconds)
        if changes:
            self._overwrites.wrote(changes)

    def _hold(self, record: LaunchRecord, followers: Sequence[events.Observer]) -> None:
        """Has a record remember what its inputs contain."""
        captured = any(o.copies(self, record.name) for o in followers)
        when = config.tape_snapshots
        if when != "off" or captured:
            setting = config.overwrites
            copied = setting == "restore" or (setting != "present" and mode() != "present")
            record.take_holds(when == "eager" or captured, copied)

    def record_write(
        self, kind: str, name: str, dest: array, src: array | None = None,
        numbers: Sequence[float] = (),
    ) -> Written | None:  # fmt: skip
        recorded = dest.requires_grad or (src is not None and src.requires_grad)
        if recorded and src is not None:
            for o in self._followers():
                o.tape_recording(self, [src], [dest, src])
        if self._verifies():
            access.written(dest, name, src)
        changes = self._overwrites.writing(dest, name, self._count, not recorded)
        if recorded:
            source = None
            # Where values come from matters to the warning of values of two times.
            keep = mode() != "present" and config.tape_snapshots != "off"
            if src is not None and src.requires_grad and keep:
                if not self._overwrites.written(self._made(), src):
                    source = src.storage.hold(src.lo, src.hi)
            self._append(kind_of(kind)(name, dest, src, call_site(), source, numbers))
        return partial(self._overwrites.wrote, changes) if changes else None

    def record_launch(
        self,
        kernel: Kernel,
        dim: Any,
        max_blocks: int = 0,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        device: Any = None,
        block_dim: int = 0,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """Records a launch that was run elsewhere, just before, with these arguments.

        Raises TapeError (E401) for a kernel that overwrites what its adjoint needs:
        those values are saved only by a launch that runs on the tape.
        """
        del max_blocks, block_dim, metadata
        if not isinstance(kernel, Kernel):
            raise self._misused(f"record_launch takes a kernel, got {kernel!r}")
        place = get_device(device)
        plan = kernel.plan.on(place.backend)
        why = "takes structs in an array that hold arrays"
        if plan.arguments is None or not plan.arguments.linked:
            values, blob = plan.bind([*inputs, *outputs], device=place)
            recorded = plan.select(values, plan.aliased(values)).saves_journal
            why = "overwrites values that its adjoint needs" if recorded else ""
        if why:
            what = f"kernel {kernel.key!r} {why}, so its launch cannot be recorded afterwards"
            raise self._misused(what, help="launch it inside the tape's `with` block")
        shape, site = grid(dim, kernel), call_site()
        launch = BoundLaunch(plan, shape, values, blob, len(inputs), site)
        if events.deferred(partial(self._record, launch), self):
            self.sketch_launch(launch)
        else:
            self._record(launch)

    def _record(self, launch: BoundLaunch) -> None:
        """Records a launch that has run."""
        record = record_of(launch)
        self._hold(record, self._followers())
        changes = self._overwrites.launching(record, self._count, before=False)
        self._append(record)
        self._overwrites.wrote(changes)

    def record_func(self, backward: Callable[[], Any], arrays: Sequence[array]) -> None:
        """Records a Python function for the backward pass.

        Args:
            backward: called without arguments, in its place among the records. It reads
                and adds to the gradients of its arrays itself.
            arrays: the arrays that it uses; `zero` clears their gradients too. It finds in
                them what they contain now, where later operations of the tape overwrite that.

        Raises TapeError (E401) for what is no function, and for anything but a list of arrays.
        """
        if not callable(backward):
            raise self._misused(f"record_func takes a function, got {backward!r}")
        arrays = self._several(arrays)
        if events.deferred(lambda: self.record_func(backward, arrays), self):
            return
        record = FunctionRecord(backward, arrays, call_site())
        if mode() != "present":
            if config.tape_snapshots != "off":
                record.take_holds()
            self._overwrites.watch(record)
        self._append(record)

    def _several(self, arrays: Any) -> list[array]:
        """The arrays of `record_func`. One alone would be taken apart into its numbers."""
        if not isinstance(arrays, (list, tuple)):
            what = "an array" if isinstance(arrays, array) else repr(arrays)
            raise self._misused(f"record_func takes a list of arrays, got {what}",
                                help="write `arrays=[a]`")  # fmt: skip
        for a in arrays:
            if not isinstance(a, array):
                raise self._misused(f"record_func takes a list of arrays, but one is {a!r}",
                                    help="name the arrays whose gradients it uses")  # fmt: skip
        return list(arrays)

    def record_scope_begin(self, scope_name: str, metadata: dict[str, Any] | None = None) -> int:
        """Opens a named group of records. Returns its index."""
        events.deferred(lambda: self.record_scope_begin(scope_name, metadata))
        return self._scopes.begin(scope_name, metadata, self._count())

    def record_scope_end(self, remove_scope_if_empty: bool = True) -> None:
        """Closes the group that was opened last; an empty one is forgotten."""
        events.deferred(lambda: self.record_scope_end(remove_scope_if_empty))
        if not self._scopes.end(self._count(), remove_scope_if_empty):
            raise self._misused("ended tape scope, but scope not present",
                                help="open one with `record_scope_begin(name)` first")  # fmt: skip

    # ---- backward

    def backward(self, loss: array | None = None, grads: Mapping[array, Any] | None = None) -> None:
        """Adds the gradient to `grad` of every array on the tape that requires one.

        Args:
            loss: an array of one float; its cotangent is 1.
            grads: cotangents (arrays or NumPy arrays) of other arrays, which are copied
                over what their `grad` held. An array that did not require a gradient does
                from then on.

        What operations of the tape overwrote is read as it was at its record, so that the
        gradient is that of what ran (see `config.overwrites`). What anything else wrote since
        is read as it is now: where nothing was overwritten, a tape may be recorded once and
        run backward at other values of its inputs. Where both meet, and where values that a
        launch saved came from other inputs, a UserWarning says so.
        Gradients of overwritten arrays are consumed (unless made with retain_grad). If the
        pass raises, gradients may be partly added: call `zero` before the next one. No array
        but gradients has changed after it.

        Raises TapeError E402 for a loss or cotangent that does not fit, E401 where
        requires_grad came too late, saved contents are lost, or records were taken from `records`
        where some overwrite what others read, E408 where `config.overwrites` is "error" and a
        value that is needed was overwritten; CompilerError where an adjoint
        does not compile; LaunchError E209 where memory runs out, E206 where it is read-only.
        """
        if loss is not None:
            loss = self.loss = check_loss(loss)
        if events.here.get() and events.deferred(partial(self.backward, loss, grads)):
            return
        if others:
            check_recorded(self)
        followers = self._followers()
        if not followers and accelerator.try_reverse(self, loss, grads):
            return
        seeds = check_seeds(loss, grads, seen=bool(followers))
        for o in followers:  # now that what gets a cotangent requires a gradient
            o.tape_seeded(self)
        records, restored = self._made(), self._restorations()
        begins = (seeds or lying_seeds(records)) if followers else seeds
        run = Pass(records, begins, restored, self._overwrites.mixed, call_site())
        token, done = events.pause_tapes(), False
        try:
            for o in followers:
                o.tape_reversing(self, run)
            for a, cotangent in seeds:
                self._seeded[id(a)] = a
                seed(a, cotangent)
            reverse(run, self, followers)
            done = True
            if self._verifies():
                access.forget(records)
        finally:
            try:
                for o in followers:
                    o.tape_reversed(self, done)
            finally:
                events.resume_tapes(token)

    def visualize(
        self,
        filename: str | os.PathLike[str] | None = None,
        simplify_graph: bool = True,
        hide_readonly_arrays: bool = False,
        array_labels: Mapping[array, str] | None = None,
        choose_longest_node_name: bool = True,
        ignore_graph_scopes: bool = False,
        track_inputs: Sequence[array] | None = None,
        track_outputs: Sequence[array] | None = None,
        track_input_names: Sequence[str] | None = None,
        track_output_names: Sequence[str] | None = None,
        graph_direction: str = "LR",
    ) -> str:
        """The tape as a picture in the dot language of Graphviz; the same tape, the same text.

        Kernels are grey boxes with ports for their arguments. Arrays are ellipses, green ones
        require a gradient; their names are those of the caller's variables, struct members
        included, where there are any. Views hang by dashed lines on what they are views of.

        Args:
            filename: where to write the text to.
            simplify_graph: draw what repeats itself once, and leave out the middle of
                what is too long to be read; the picture says what it does not show.
            hide_readonly_arrays: leave out arrays that no operation on the tape writes.
            array_labels: names of arrays.
            choose_longest_node_name: of several names take the longest, else the shortest.
            ignore_graph_scopes: draw no frames for scopes.
            track_inputs: arrays that are drawn in any case.
            track_outputs: the same, of what the tape computes.
            track_input_names: names of the former, one for each.
            track_output_names: names of the latter.
            graph_direction: LR, RL, TB or BT.

        Raises TapeError E401 for arguments that do not fit, and where the file cannot be written.
        """
        from engine.tape.graph.visualize import visualized

        return visualized(
            self._made(), self._scopes.scopes, list(self._seeded.values()),
            simplify=simplify_graph, hide_readonly=hide_readonly_arrays,
            labels=array_labels, longest=choose_longest_node_name,
            unscoped=ignore_graph_scopes, inputs=track_inputs, outputs=track_outputs,
            input_names=track_input_names, output_names=track_output_names,
            direction=graph_direction, filename=filename,
        )  # fmt: skip

    @property
    def gradients(self) -> dict[Any, Any]:
        """The gradient of every array on the tape that requires one.

        A struct that was an argument can be looked up too: its gradient is a struct of its
        kind with the arrays' gradients in place of the arrays, and its other fields. So can
        arrays that were on the tape before `reset`.
        """
        found = Gradients(self._former)
        for a in self._arrays():
            grad = a.grad
            if grad is not None:
                found[a] = grad
        return found

    def get_adjoint(self, a: Any) -> Any:
        """The gradient of an array or a struct (see `gradients`); None for all else."""
        found = gradient_of(a)
        if found is None and events.everywhere and isinstance(a, array):
            events.asked(a)
        return found

    def zero(self) -> None:
        """Sets the gradients of all arrays on the tape to zero."""
        if events.graph() is not None and events.deferred(self.zero):
            return
        replays = () if self._unmade is None else self._replays()
        if replays:
            more = [a for r in replays for a in (*r.arrays, *self._seeded.values())]
            clear([], more)
        else:
            clear(self._made(), self._seeded.values())

    def reset(self) -> None:
        """Forgets all records and scopes, and sets the gradients to zero."""
        if events.deferred(self.reset):
            return
        bypassed.discard(self)
        self.zero()
        if self._verifies():
            access.forget(self._made())
        self._tell_forgot()
        self._former = WeakSet((*self._former, *self._arrays()))
        self._set([])
        self._overwrites = Overwrites()
        self._stack = None
        self._seeded = {}
        self.loss = None

    def _arrays(self) -> list[array]:
        found = {id(a): a for r in self._made() for a in r.arrays}
        return list((found | self._seeded).values())

    def _misused(self, message: str, help: str = "") -> TapeError:
        return TapeError(Diagnostic("E401", message, call_span(), help))
