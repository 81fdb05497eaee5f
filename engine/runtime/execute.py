"""The driver: runs compiled kernels, in any form and on any device.

It knows which form takes which arguments, which of them saves what for which other, the limits
on that, and what errors and messages mean. How threads are run is the backend's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from engine import config
from engine.classes import dataclass
from engine.compile.backend import (
    ASSERTED,
    JOURNAL_LIMIT,
    NOT_SAVED,
    NOTHING,
    STACK_LIMIT,
    TOO_LARGE,
    Backend,
    CachedLaunch,
    Entry,
    Journal,
    Limits,
    Marks,
    Outcome,
    Step,
)
from engine.compile.forms import FORMS, Form, Names
from engine.compile.pipeline import NONE, Request, Variants
from engine.diagnostics import Diagnostic, LaunchError
from engine.diagnostics.site import call_span
from engine.runtime import events
from engine.runtime.faults import diagnostic
from engine.runtime.launch_errors import KernelStopped, size_text

if TYPE_CHECKING:
    from engine.compile.threads import Placed
    from engine.runtime.watch import WatchedRun

ThreadRange = tuple[int, int]
Done = Callable[["Journal | None"], None]
_CACHED = 64  # grids of one kernel that are remembered
_limits = lru_cache(maxsize=8)(Limits)  # that of the last launch is that of the next one

_WHAT = {
    1: "no memory is left for saved values",
    NOT_SAVED: "a saved value was read that was never written",
    TOO_LARGE: "the launch has more threads along an axis than a 32-bit index can count",
    STACK_LIMIT: "the values that one thread saves exceed the limit",
    JOURNAL_LIMIT: "the values that the launch saves for its adjoint exceed the limit",
    ASSERTED: "an assertion failed",
}


@dataclass(frozen=True, slots=True)
class Execution:
    """What a run left.

    journal: what it wrote for its adjoint, None where nothing. stack_bytes: the memory that
    the saved values of a thread took up (of an adjoint; freed by now). inside: False where an
    access outside of an array was looked for, and seen.
    """

    journal: Journal | None = None
    stack_bytes: int = 0
    inside: bool = True


_NOTHING = Execution()


class Executable:
    """A form resolved once: for launches, which have no time to look it up.

    form: `forward`; `recorded` (as `forward`, and writes the journal that the adjoint for `wrt` and
    `journaled` reads, if that needs one); `adjoint`; `tangent`; `accesses` (as `forward`, and lists
    what each thread touches in its journal). wrt: names of array parameters that have a gradient,
    or a tangent. journaled: of those whose reads an adjoint takes from the journal.
    """

    __slots__ = (
        "_backend",
        "_entry",
        "_inside",
        "_layout",
        "_marks",
        "_serial",
        "_spare",
        "_unreported",
        "_what",
        "cached_launches",
    )  # fmt: skip

    def __init__(
        self, backend: Backend, variants: Variants, form: Form, wrt: Names = NONE,
        journaled: Names = NONE, marks: Marks | None = None,
    ) -> None:  # fmt: skip
        self._backend = backend
        self._marks = marks
        if form == "recorded" and not variants.needs_journal(wrt, journaled):
            form = "forward"
        # Which thread touches what is told in the order of the threads.
        self._serial = FORMS[form].in_order
        self._what = (variants, form, wrt, journaled)
        # While somebody watches, it may well be that only the watched form runs.
        self._entry = None if events.sanitizers() else variants.entry(backend, form, wrt, journaled)
        # What decides where the last launch accessed arrays, if it is known to be inside.
        self._layout: Callable[[bytes], tuple[int, ...]] | None = None
        self._inside: tuple[tuple[int, ...], tuple[int, ...]] | None = None
        # What launches are watched with of which nobody asks what was seen.
        self._unreported: WatchedRun | None = None
        self._spare: Callable[[], Entry] | None = None
        if spare := FORMS[form].spare:
            self._spare = lambda: variants.entry(backend, spare, wrt, journaled)
        # Short ways to run it, by grids. The first run puts None; the second a `CachedLaunch`, or
        # False where there can be none. After `config.native_after` runs native launches take that
        # (`CachedLaunch.address`).
        self.cached_launches: dict[tuple[int, ...], CachedLaunch | Literal[False] | None] = {}

    def execute(
        self,
        dim: tuple[int, ...],
        args: bytes,
        done: Done | None = None,
        journal: Journal | None = None,
        journal_limit: int | None = None,
        threads: ThreadRange | None = None,
        drop_output: bool = False,
        inside: bool = False,
        look: bool = False,
    ) -> Execution:
        """Runs it over a grid; compiles it where that was not done yet.

        Args:
            dim: the grid.
            args: the arguments as kernels read them (see `engine.runtime.pack`); for an adjoint
                the gradients of `wrt` follow, for a tangent the tangents of `wrt`.
            done: called with the journal where the run came to its end, also if E210 is raised
                for a failed expectation then.
            journal: what the recorded run of the same threads left, for an adjoint.
            journal_limit: bytes that the run may write to its journal, 0 for any number; None
                is `config.journal_limit_bytes`.
            threads: the linear indices to run, begin and end; None for the whole grid.
            drop_output: drops the messages of the kernel, and failed expectations; else they are
                printed after the run.
            inside: it is known that it needs no watching.
            look: runs the watched form over the whole grid, quietly, and has `Execution.inside`
                say whether all accesses were inside of their arrays.

        Raises KernelStopped, a LaunchError: E205 for a grid with more threads than 32-bit indices
        count (nothing has run then); E209 where memory ran out, or what threads or the launch may
        save of it (what the run writes is undefined then); E401 where an adjoint reads what no
        launch saved (the same); E210 for a failed assertion. LaunchError E210 for a failed
        expectation.
        """
        if look:
            return self._looked(dim, args)
        if journal is None and threads is None and journal_limit is None:
            came = self.run_cached(dim, args)
            if came is NOTHING:
                if done is not None:
                    done(None)
                return _NOTHING
            if came is not None:
                return self.finish(came, dim, done, drop_output)
        if 0 in dim:
            if done is not None:
                done(None)
            return _NOTHING
        limit = config.journal_limit_bytes if journal_limit is None else journal_limit
        if not inside and (events.sanitizers() or self._what[0].debug):
            seen = self._watched(dim, args, drop_output)
            if seen is not None:
                return self._run_watched(
                    seen, dim, args, done, journal, limit, threads, drop_output
                )
        entry = self._entry
        if entry is None:
            variants, form, wrt, journaled = self._what
            entry = self._entry = variants.entry(self._backend, form, wrt, journaled)
        if self._serial and threads is None:
            threads = (0, math.prod(dim))
        limits = _limits(config.stack_limit_bytes, limit)
        usual = journal is None and threads is None and journal_limit is None
        if usual and not events.sanitizers():
            self._prepare_cached_launch(entry, dim, args, limits)
        came = self._backend.run(entry, dim, args, limits, threads, journal, self._spare)
        if came is NOTHING:
            if done is not None:
                done(None)
            return _NOTHING
        return _ended(entry, came, dim, done, drop_output)

    def run_cached(self, dim: tuple[int, ...], args: bytes) -> Outcome | None:
        """Runs a whole grid in a short way; None where there is none, and nothing has run."""
        cached = self.cached_launches.get(dim)
        if (
            cached and not events.sanitizers() and cached.stack == config.stack_limit_bytes
            and cached.journal == config.journal_limit_bytes
        ):  # fmt: skip
            return cached.run(args, self._spare)
        return None

    @property
    def is_compiled(self) -> bool:
        """Whether it is there to be run."""
        return self._entry is not None

    def step(self, dim: tuple[int, ...], args: bytes, limits: Limits) -> Step | None:
        """A whole grid as one of many launches; None where it cannot be, or not yet."""
        cached = self.cached_launches.get(dim)
        if not cached or not cached.any_arguments or (cached.stack, cached.journal) != limits:
            if self._entry is None or self._what[0].debug or self._serial:
                return None
            cached = self._backend.cached_launch(self._entry, dim, args, limits, self._marks)
        return None if cached is None else (cached, args, self._spare)

    def outcome_of(
        self, dim: tuple[int, ...], values: list[Any], args: bytes, came: bytes
    ) -> Outcome:
        """What came of a native launch or adjoint that left something."""
        cached = self.cached_launches.get(dim)
        if not cached:  # others have run so many grids since that it is forgotten
            assert self._entry is not None
            limits = _limits(config.stack_limit_bytes, config.journal_limit_bytes)
            cached = self._backend.cached_launch(self._entry, dim, args, limits, self._marks)
        assert cached
        return cached.outcome_of(values, args, came, self._spare)

    def finish(
        self,
        came: Outcome,
        dim: tuple[int, ...],
        done: Done | None = None,
        drop_output: bool = False,
    ) -> Execution:
        """Tells what came of a native run, as `execute` does; raises what it raises."""
        assert self._entry is not None
        return _ended(self._entry, came, dim, done, drop_output)

    def _prepare_cached_launch(
        self, entry: Entry, dim: tuple[int, ...], args: bytes, limits: Limits
    ) -> None:
        """Looks for a short way to run a grid that is run for the second time."""
        known = self.cached_launches
        if self._what[0].debug or self._serial or known.get(dim) is False:
            return
        if dim in known or config.native_after <= 0:
            known[dim] = self._backend.cached_launch(entry, dim, args, limits, self._marks) or False
        else:
            if len(known) >= _CACHED:
                known.clear()
            known[dim] = None

    def is_inside(self, dim: tuple[int, ...], args: bytes) -> bool:
        """Whether it is proven that all accesses are inside of their arrays. Runs nothing."""
        return 0 in dim or self._watched(dim, args, True) is None

    def _looked(self, dim: tuple[int, ...], args: bytes) -> Execution:
        from engine.runtime.watch import WatchedRun

        seen = WatchedRun(self._backend, *self._what)
        limits = _limits(config.stack_limit_bytes, 0)
        came = self._backend.run(seen.entry, dim, args + seen.at, limits, None, None, None)
        _ended(seen.entry, came, dim, None, True)
        return Execution(came.journal, came.stack_bytes, not seen.faults(dim))

    def _watched(self, dim: tuple[int, ...], args: bytes, drop_output: bool) -> WatchedRun | None:
        """What a launch is watched with; None where that is proven to be needless."""
        # Late: programs that nobody watches need none of it.
        variants, form, wrt, journaled = self._what
        if not drop_output and FORMS[form].as_written and any(o.races for o in events.everywhere):
            from engine.runtime.races import races
            from engine.runtime.watch import tell as tell_faults

            tell_faults(races(self._backend, variants, dim, args))
        if self._layout is not None and (dim, self._layout(args)) == self._inside:
            return None
        from engine.compile.watching import watched
        from engine.runtime.watch import WatchedRun

        if watched(variants, "bounds").inside(form, wrt, journaled, dim, args):
            if not variants.bound(form):
                self._layout = variants.threads_of(form, wrt, journaled).layout
                self._inside = dim, self._layout(args)
            return None
        if not drop_output or variants.bound(form):
            return WatchedRun(self._backend, variants, form, wrt, journaled, drop_output)
        if self._unreported is None:
            self._unreported = WatchedRun(
                self._backend, variants, form, wrt, journaled, drop_output
            )
        return self._unreported

    def _summed(self, dim: tuple[int, ...], args: bytes) -> list[Placed]:
        """What a launch changes, if threads add floats up; else nothing.

        Watched forms add one by one, others several at once, which rounds otherwise: what a
        program computes does not depend on whether somebody watches. Native functions that may
        keep state, or that get arrays, have no other way: nobody notes where they are outside. On a
        GPU sums have no order anyway.
        """
        if not self._backend.on_host:
            return []
        from engine.ir import nodes as n
        from engine.ir.sites import indexes_unseen
        from engine.lang.types import is_float, scalar_of

        variants, form, wrt, journaled = self._what
        threads = variants.threads_of(form, wrt, journaled)
        for f in n.callees(threads.fn):
            if f.native is not None and (indexes_unseen(f) or not f.native.pure):
                return []
        args += variants.bound(form)
        arrays = {a.name: a for a in threads.arrays(args) if not a.empty}
        classes = threads.classes_of(dim, args)
        if not classes.known:
            return list(arrays.values())
        sums = (a for g in classes.groups if g.sharing == "accumulate" for a in g.names)
        if not any(is_float(scalar_of(arrays[a].type)) for a in sums if a in arrays):
            return []
        changed = (a for g in classes.groups if g.sharing != "shared" for a in g.names)
        return [arrays[a] for a in changed if a in arrays]

    def _run_watched(
        self, seen: WatchedRun, dim: tuple[int, ...], args: bytes, done: Done | None,
        journal: Journal | None, journal_limit: int, threads: ThreadRange | None, drop_output: bool,
    ) -> Execution:  # fmt: skip
        from engine.runtime.races import kept
        from engine.runtime.watch import WatchedRun
        from engine.runtime.watch import tell as tell_faults

        if self._serial and threads is None:
            threads = (0, math.prod(dim))
        limits = _limits(config.stack_limit_bytes, journal_limit)
        spare = None if self._spare is None else seen.spare

        def run(seen: WatchedRun) -> Outcome:
            at = args + seen.at
            return self._backend.run(seen.entry, dim, at, limits, threads, journal, spare)

        changed = [] if drop_output else self._summed(dim, args)
        if changed:
            with kept(changed):
                came = run(seen)
                faults = seen.faults(dim)
            if not came.error and not faults:
                return self.execute(dim, args, done, journal, journal_limit, threads, inside=True)
            seen = WatchedRun(self._backend, *self._what)
        came = run(seen)
        faults = [] if drop_output else seen.faults(dim)
        tell_faults(faults)
        ended = _ended(seen.entry, came, dim, done, drop_output)
        if faults and not events.sanitizers():
            raise LaunchError(*map(diagnostic, faults))
        return ended


def foreseen(request: Request, dim: tuple[int, ...], args: bytes) -> Request:
    """What of a kernel is likely to run: the watched form, where somebody watches for a reason.

    args: those of the kernel itself.
    """
    backend, variants, form, wrt, journaled = request
    if not events.sanitizers() or 0 in dim:
        return request
    from engine.compile.watching import watched

    kernel = watched(variants, "bounds")
    if kernel.inside("forward", NONE, NONE, dim, args):
        return request
    return (backend, kernel, form, wrt, journaled)


def _ended(
    entry: Entry, came: Outcome, dim: tuple[int, ...], done: Done | None, drop_output: bool
) -> Execution:
    from engine.runtime.output import raise_failures, tell  # late: most launches say nothing

    failures = [] if drop_output else tell(entry, came.output)
    if came.error == ASSERTED:
        raise_failures(entry, dim, failures)
    if came.error:
        raise _stopped(entry, dim, came.error)
    if done is not None:
        done(came.journal)
    if failures:
        raise_failures(entry, dim, failures)
    return Execution(came.journal, came.stack_bytes)


def _stopped(entry: Entry, dim: tuple[int, ...], error: int) -> KernelStopped:
    """What a kernel's error number means to the user."""
    what = _WHAT.get(error, f"error {error}")
    name = entry.symbol.rpartition("_")[0]  # the rest is a hash

    def stopped(code: str, message: str, *notes: str, help: str = "") -> KernelStopped:
        return KernelStopped(Diagnostic(code, message, call_span(), help, notes), reason=what)

    if error == TOO_LARGE:
        return stopped(
            "E205", f"kernel {name!r}: the launch is too large", f"{what}, got dim={dim}",
            help="launch several smaller grids, or use more dimensions",
        )  # fmt: skip
    if error == NOT_SAVED:
        return stopped(
            "E401", f"the adjoint of kernel {name!r} stopped", what,
            help="was memory of the kernel changed without the tape knowing?",
        )  # fmt: skip
    if error == ASSERTED:
        return stopped("E210", f"kernel {name!r}: {what}")
    limit = {
        STACK_LIMIT: ("stack_limit_bytes", config.stack_limit_bytes),
        JOURNAL_LIMIT: ("journal_limit_bytes", config.journal_limit_bytes),
    }.get(error)
    if limit is not None:
        return stopped("E209", f"kernel {name!r} stopped: {what}",
                       f"config.{limit[0]} is {size_text(limit[1])}",
                       help=f"raise config.{limit[0]}, or split the work")  # fmt: skip
    return stopped("E209", f"kernel {name!r} stopped: {what}",
                   help="launch fewer threads at once on the tape")  # fmt: skip
