"""Watches a running program for operations with handwritten gradients.

No framework is imported here. Where the program imports one, or has done so before, the watcher of
that framework is installed, and removed at the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import ModuleType

from engine import config
from engine.autograd.comparison.tolerance import Tolerance
from engine.autograd.facts import Handwritten, Undifferentiated, Unwatched
from engine.autograd.results import LaunchResult, TapeResult
from engine.autograd.tape.check import CheckInterrupted
from engine.autograd.tape.options import Options
from engine.classes import dataclass
from engine.foreign.check import Seen, check_operation
from engine.foreign.collection import Budget, Collection
from engine.foreign.glance import Glance
from engine.foreign.installation import Finder, Installation, Watcher
from engine.foreign.operation import Operation
from engine.foreign.seams import begun, unusable
from engine.itself import load

ITERATED = "it iterates until a tolerance, and so its derivative has an error"

# The module that a program imports, the file here that watches it, and the framework's name.
FRAMEWORKS = (
    ("torch", "torch_functions", "PyTorch"),
    ("jax", "jax_calls", "JAX"),
    ("warp", "warp_check", "Warp"),
)


@dataclass
class Watched:
    """What was found of each framework. Results are numbered as the program's next tapes."""

    collections: list[Collection] = field(default_factory=list)
    installations: dict[str, Installation] = field(default_factory=dict)

    @property
    def unwatched(self) -> list[Unwatched]:
        """What of frameworks that were imported could not be watched."""
        return [u for x in self.installations.values() for u in x.failed]

    @property
    def unimported(self) -> tuple[tuple[str, str], ...]:
        """Frameworks whose import failed, and why."""
        every = self.installations.values()
        return tuple((x.framework, x.unimported) for x in every if x.unimported)

    @property
    def found(self) -> list[Collection]:
        """Those of frameworks of which something is to be told."""
        return [c for c in self.collections if c.counts]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all functions that were called."""
        own = (name for c in self.collections for name in c.names)
        others = (n for c in self.collections if c.tapes is not None for n in c.tapes.names)
        return tuple(dict.fromkeys((*own, *others)))

    @property
    def recorded(self) -> tuple[int, ...]:
        """How many calls there were, of each framework that is told of, or launches on tapes."""
        return tuple(n for c in self.found for n in c.counts)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of the run, beside results; some is known when these are."""
        out = []
        for c in self.collections:
            out += c.notes
        return tuple(out)

    @property
    def undifferentiated(self) -> tuple[Undifferentiated, ...]:
        """The user's functions that were called, but never for a gradient."""
        every = (u for c in self.collections for u in c.undifferentiated.values())
        return tuple(u for u in every if u.name not in self.names)

    @property
    def left_alone(self) -> tuple[str, ...]:
        """Functions of installed packages that were called: "`name` of package"."""
        return tuple(f"`{name}` of {p}" for c in self.collections for name, p in c.left.items())

    def results(
        self, first: int = 0, *, eps: float | None = None, atol: float | None = None,
        rtol: float | None = None, kernels: Sequence[str] = (), skip_kernels: Sequence[str] = (),
        max_inputs: int = -1, max_outputs: int = -1, seed: int = 0, order: int = 1,
        launches_of: Callable[[int], tuple[int, ...] | None] = lambda tape: (),
        progress: Callable[[int, int, str], None] | None = None,
    ) -> Iterator[TapeResult]:  # fmt: skip
        """Checks what was found: a result for each framework, numbered from `first`.

        The options are those of `engine.autograd.check_tape`. launches_of: numbers of the calls to
        check, all where empty, none for None. Raises CheckInterrupted with what was checked.
        """
        options = Options(
            Tolerance(eps, atol, rtol), tuple(kernels), tuple(skip_kernels), max_inputs,
            max_outputs, seed, order=order,
        )  # fmt: skip
        for c in self.found:
            following = first + len(c.counts)
            if c.calls or c.unchecked:
                wanted = launches_of(first)
                if wanted is not None:
                    yield _checked(c, first, replace(options, launches=wanted), progress)
                c.operations.clear()
                c.quick.clear()
                first += 1
            if c.tapes is not None:
                yield from c.tapes.results(first, options, launches_of, progress)
            first = following


def _checked(
    c: Collection, number: int, options: Options,
    progress: Callable[[int, int, str], None] | None,
) -> TapeResult:  # fmt: skip
    seen, done, glance = Seen(), list[LaunchResult](), Glance(options.tolerance)
    chosen = [
        (k, op) for k, op in sorted(c.operations, key=lambda x: x[0])
        if options.wants(op.name) and (not options.launches or k in options.launches)
    ]  # fmt: skip
    try:
        for count, (k, op) in enumerate(chosen):
            if progress is not None:
                progress(count, len(chosen), op.name)
            if k in c.quick and not options.launches and not glance.suspects(op):
                c.sampled = True
                continue
            done.append(_one(op, options, k, seen))
            if op.iterated and options.tolerance.auto:
                c.leave_out(
                    op.name, ITERATED, op.site,
                    part=f"the gradient of {{}} below a relative error of {op.iterated:.0e}",
                )  # fmt: skip
            if k in c.quick:
                glance.learn(op, done[-1])
        if progress is not None and chosen:
            progress(len(chosen), len(chosen), "")
    except KeyboardInterrupt:
        raise CheckInterrupted(TapeResult(number, tuple(done), tuple(c.unchecked))) from None
    sampled = c.framework if c.sampled and not options.launches else ""
    return TapeResult(number, tuple(done), tuple(c.unchecked), sampled=sampled)


def _one(op: Operation, options: Options, number: int, seen: Seen) -> LaunchResult:
    try:
        return check_operation(op, options, number, seen)
    except MemoryError:
        why = "its check does not fit into memory"
    except Exception as error:  # of a framework, that no one has met yet
        why = f"its check could not run: {type(error).__name__}: {error}"
    return LaunchResult(number, op.name, (), (), op.span, op.site, skipped=why,
                        by_hand=Handwritten(op.framework, op.what, op.gradient))  # fmt: skip


@contextmanager
def watching(
    wants: Callable[[str], bool] | None = None,
    limit: int | None = None,
    chosen: Callable[[str], bool] | None = None,
) -> Iterator[Watched]:
    """Finds operations of frameworks that run meanwhile.

    wants: says for a function's name whether it will be checked. limit: bytes that copies may take;
    those of `config.snapshot_limit_bytes` if left out. chosen: says for the name of a function of
    an installed package whether it is to be checked; none is if left out.
    """
    watched = Watched()
    budget = Budget(config.snapshot_limit_bytes if limit is None else limit)
    for module, file, framework in FRAMEWORKS:
        collection = Collection(framework, budget)
        collection.wants = wants or collection.wants
        collection.chosen = chosen or collection.chosen
        watched.collections.append(collection)
        watched.installations[module] = Installation(file, collection)
    finder = Finder(dict(watched.installations))
    sys.meta_path.insert(0, finder)
    try:
        for name in watched.installations:
            if (loaded := sys.modules.get(name)) is not None:
                finder.loaded(name, loaded)
        yield watched
    finally:
        finder.waiting.clear()
        if finder in sys.meta_path:
            sys.meta_path.remove(finder)
        for x in watched.installations.values():
            x.end()


def examined(framework: str, module: ModuleType) -> list[Unwatched]:
    """What of an imported framework cannot be watched. This tests everything, and takes seconds."""
    file = next(file for _, file, name in FRAMEWORKS if name == framework)
    collection = Collection(framework, Budget(config.snapshot_limit_bytes))
    try:
        watcher: Watcher = load(f"engine.foreign.{file}").Watcher(collection)
        parts = watcher.parts(module)
    except Exception as error:
        return [unusable(framework, module, error)]
    try:
        return [*begun(framework, module, parts, everything=True)]
    finally:
        watcher.remove()
