"""Records Warp tapes while a script runs: the inputs and results of each launch.

Warp's own functions are wrapped while somebody watches (`launch`, what tapes record, backward
passes, writes from the host). They do what they did; what is noted are copies.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from types import FrameType
from typing import Any

from engine.classes import dataclass
from engine.diagnostics import Span
from engine.diagnostics.site import Site, call_site, is_own
from engine.foreign.seams import Part
from engine.foreign.warp_handles import CLASSES, Handles
from engine.foreign.warp_kernels import Translation, kind_of
from engine.foreign.warp_seams import Tests
from engine.foreign.warp_values import (
    Array,
    ArrayOf,
    Snapshots,
    arrays_of,
    described,
    live_arrays,
    with_gradients_of,
)

# Packages of Warp that are programs, and no part of it.
_PROGRAMS = ("examples", "tests")


@dataclass(frozen=True)
class Written:
    """Something that wrote to memory while a tape was watched. order: by which writes compare.

    launch: its number on the tape; -1 for what the tape has not recorded.
    """

    order: int
    begin: int
    end: int
    name: str
    site: Site | None
    tape: int = -1
    launch: int = -1


@dataclass(eq=False)
class WarpLaunch:
    """A launch on a tape of Warp. args: their descriptions, in the order of the parameters.

    before, after: what its arrays held; present: what they held where the tape ran backward.
    """

    kernel: Any
    dim: tuple[int, ...]
    args: tuple[Any, ...]
    before: dict[str, Array | None]
    after: dict[str, Array | None] = field(default_factory=dict)
    present: dict[str, Array | None] = field(default_factory=dict)
    site: Site | None = None
    order: int = 0
    block_dim: int = 0
    # The objects that it refers to by numbers, kept; None where one is not known.
    kept: list[Any] | None = None
    # The arrays themselves, as long as their tape lives.
    live: Callable[[], Sequence[Any] | None] = lambda: None

    @property
    def span(self) -> Span | None:
        """Where it is in the user's code."""
        return self.site.span if self.site is not None else None

    @property
    def arrays(self) -> list[ArrayOf]:
        """All of its arrays."""
        return [a for tree in self.args for a in arrays_of(tree)]


@dataclass(frozen=True)
class WarpCopy:
    """A copy between arrays while a tape recorded. plain: of all of both."""

    dest: ArrayOf
    src: ArrayOf
    plain: bool
    order: int


@dataclass(frozen=True)
class Gradients:
    """A gradient where a backward pass began (cotangents of the loss included) and ended."""

    array: ArrayOf
    before: Array | None
    after: Array | None


@dataclass(eq=False)
class WarpTape:
    """A tape of Warp: its launches, copies, and the places of functions recorded on it.

    noticed: whether anything that it recorded was seen.
    """

    index: int
    launches: list[WarpLaunch] = field(default_factory=list)
    copies: list[WarpCopy] = field(default_factory=list)
    functions: list[Site | None] = field(default_factory=list)
    noticed: bool = False
    # Whether it ran backward, and where first, from what and with what.
    backward: Site | None = None
    ran: bool = False
    gradients: list[Gradients] = field(default_factory=list)


class WarpWatch:
    """Watches one process's Warp. tapes: in the order in which they began.

    take: says whether there is room for copies of so many bytes more. wants: whether launches of a
    kernel will be checked.
    """

    def __init__(
        self,
        take: Callable[[int], bool] = lambda n: True,
        wants: Callable[[str], bool] = lambda name: True,
    ) -> None:
        self.tapes: list[WarpTape] = []
        self.writes: list[Written] = []
        self.translation = Translation()
        self.snapshots = Snapshots(take)
        self.wants = wants
        self.warp: Any = None
        self._handles = Handles()
        self._by_tape: dict[int, tuple[weakref.ref[Any], WarpTape]] = {}
        self._active: list[WarpTape] = []
        self._pending: list[WarpLaunch] = []
        self._order = 0
        self._copying = 0
        self._undo: list[tuple[Any, str, Any]] = []
        self._met: set[str] | None = None  # what was noticed, while that is tested
        self._missed = False  # whether a tape recorded a launch that was not noticed

    # ---- hooks

    def parts(self, warp: Any) -> Mapping[str, Part]:
        """What begins to watch, at each seam, as soon as the module is imported."""
        self.warp = warp
        self._folder = os.path.dirname(os.path.abspath(warp.__file__)) + os.sep
        tests = Tests(warp, self.quiet)
        return {
            "tapes": Part(self._watch_tapes, tests.tapes),
            "launches": Part(self._watch_launches, tests.launches, lambda: not self._missed),
            "writes": Part(self._watch_writes, tests.writes),
        }

    def _watch_tapes(self) -> None:
        tape = self.warp.Tape
        for name, make in (
            ("__enter__", self._enter), ("__exit__", self._exit), ("backward", self._backward),
            ("record_func", self._record_func), ("reset", self._reset),
        ):  # fmt: skip
            self._put(tape, name, make(getattr(tape, name)))

    def _watch_launches(self) -> None:
        warp = self.warp
        self._put_function("launch", self._launch(warp.launch))
        self._put(warp.Tape, "record_launch", self._record(warp.Tape.record_launch))
        for name in CLASSES:
            if (cls := getattr(warp, name, None)) is not None and "__init__" in vars(cls):
                self._put(cls, "__init__", self._handles.making(cls.__init__))

    def _watch_writes(self) -> None:
        warp = self.warp
        self._put_function("copy", self._writing(warp.copy, "copy"))
        for name in ("zero_", "fill_", "assign"):
            self._put(warp.array, name, self._writing(getattr(warp.array, name), name))

    def _put_function(self, name: str, value: Any) -> None:
        was = getattr(self.warp, name)
        inner = sys.modules.get(was.__module__)
        if getattr(inner, name, None) is was:
            self._put(inner, name, value)
        self._put(self.warp, name, value)

    @contextmanager
    def quiet(self) -> Iterator[set[str]]:
        """Keeps nothing of what happens meanwhile but the names of what was noticed."""
        tapes, writes = len(self.tapes), len(self.writes)
        self._met = met = set[str]()
        try:
            yield met
        finally:
            self._met = None
            del self.tapes[tapes:], self.writes[writes:]
            self._by_tape = {k: v for k, v in self._by_tape.items() if v[1] in self.tapes}

    def uninstall(self) -> None:
        """Ends that: Warp is as it was."""
        for owner, name, was in reversed(self._undo):
            setattr(owner, name, was)
        self._undo.clear()
        self._active.clear()

    def _put(self, owner: Any, name: str, value: Any) -> None:
        self._undo.append((owner, name, vars(owner)[name]))

        def noticed(*args: Any, **named: Any) -> Any:
            if self._met is not None:
                self._met.add(name)
            return value(*args, **named)

        noticed.__name__ = name
        noticed.__doc__ = getattr(getattr(owner, name), "__doc__", None)
        setattr(owner, name, noticed)

    def _site(self) -> Site | None:
        """The user's call."""
        frame: FrameType | None = sys._getframe(2)
        depth = 3  # of the same frame, seen from `call_site`
        while frame is not None and (is_own(frame) or self._is_warps(frame.f_code.co_filename)):
            frame, depth = frame.f_back, depth + 1
        return None if frame is None else call_site(depth)

    def _is_warps(self, file: str) -> bool:
        if not file.startswith(self._folder):
            return False
        return file[len(self._folder) :].split(os.sep)[0] not in _PROGRAMS

    # ---- tapes

    def _of(self, tape: Any) -> WarpTape:
        known = self._by_tape.get(id(tape))
        if known is None or known[0]() is not tape:
            made = WarpTape(len(self.tapes))
            self.tapes.append(made)
            known = self._by_tape[id(tape)] = weakref.ref(tape), made
        return known[1]

    def _enter(self, call: Any) -> Any:
        def __enter__(tape: Any) -> Any:
            out = call(tape)
            self._active.append(self._of(tape))
            return out

        return __enter__

    def _exit(self, call: Any) -> Any:
        def __exit__(tape: Any, *args: Any) -> Any:
            if self._active:
                mine = self._active.pop()
                self._missed |= bool(tape.launches) and not mine.noticed
            return call(tape, *args)

        return __exit__

    def _reset(self, call: Any) -> Any:
        def reset(tape: Any) -> Any:
            self._by_tape.pop(id(tape), None)  # what it records next is another one
            return call(tape)

        return reset

    def _backward(self, call: Any) -> Any:
        def backward(tape: Any, *args: Any, **named: Any) -> Any:
            mine = self._of(tape)
            if mine.ran:
                return call(tape, *args, **named)
            mine.ran, mine.backward = True, self._site()
            loss = named.get("loss", args[0] if args else None)
            seeds = named.get("grads", args[1] if len(args) > 1 else None) or {}
            found: dict[Any, tuple[ArrayOf, Any]] = {}
            self._seed(loss, seeds)
            for launch in mine.launches:
                given = launch.live() or ()
                launch.args = self._graded(launch, given)
                launch.present = self._contents(launch, given)
                found.update(self._with_gradients(launch, given))
            before = {key: self._held(a.grad) for key, (_, a) in found.items()}
            out = call(tape, *args, **named)
            for key, (spec, a) in found.items():
                mine.gradients.append(Gradients(spec, before[key], self._held(a.grad)))
            return out

        return backward

    def _with_gradients(
        self, launch: WarpLaunch, given: Sequence[Any]
    ) -> dict[Any, tuple[ArrayOf, Any]]:
        """The arrays of a launch that have gradients, by these."""
        names = [a.label for a in launch.kernel.adj.args]
        live = dict(x for v, n in zip(given, names, strict=False) for x in live_arrays(v, n))
        specs = ((spec, live.get(spec.path)) for spec in launch.arrays if spec.grad)
        return {(s.key, s.grad): (s, a) for s, a in specs if a is not None and a.grad is not None}

    def _graded(self, launch: WarpLaunch, given: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments: cotangents for an array give it a gradient."""
        names = [a.label for a in launch.kernel.adj.args]
        live = dict(x for v, n in zip(given, names, strict=False) for x in live_arrays(v, n))
        return tuple(with_gradients_of(tree, live) for tree in launch.args)

    def _seed(self, loss: Any, seeds: Any) -> None:
        """Puts cotangents where the backward pass is about to put them, too."""
        self._copying += 1
        try:
            if loss is not None and loss.size == 1 and loss.grad is not None:
                loss.grad.fill_(1.0)
            for a, g in seeds.items():
                if a.grad is None:
                    a.grad = g
                else:
                    a.grad.assign(g)
        finally:
            self._copying -= 1

    def _held(self, a: Any) -> Array | None:
        """A copy of an array, as long as there is room for copies."""
        spec = described(a, "")
        return self.snapshots.of(a, spec) if isinstance(spec, ArrayOf) else None

    def _record_func(self, call: Any) -> Any:
        def record_func(tape: Any, *args: Any, **named: Any) -> Any:
            mine = self._of(tape)
            mine.noticed = True
            if not self._copying:
                mine.functions.append(self._site())
            return call(tape, *args, **named)

        return record_func

    # ---- launches

    def _launch(self, call: Any) -> Any:
        def launch(kernel: Any, dim: Any, inputs: Any = (), outputs: Any = (), *args: Any,
                   **named: Any) -> Any:  # fmt: skip
            plain = named.get("record_cmd") or named.get("adjoint") or len(args) > 3
            if plain or kind_of(kernel) != "Kernel":
                return call(kernel, dim, inputs, outputs, *args, **named)
            given = [*inputs, *outputs]
            if not self._active or named.get("record_tape") is False:
                out = call(kernel, dim, inputs, outputs, *args, **named)
                if any(t.launches for t in self.tapes):
                    self._wrote(kernel.key, self._site(), given)
                return out
            pending = self._begun(kernel, dim, given)
            pending.site = self._site()
            self._pending.append(pending)
            try:
                return call(kernel, dim, inputs, outputs, *args, **named)
            finally:
                if pending in self._pending:  # it was not recorded
                    self._pending.remove(pending)

        return launch

    def _begun(self, kernel: Any, dim: Any, given: Sequence[Any]) -> WarpLaunch:
        names = [a.label for a in kernel.adj.args]
        trees = tuple(described(x, n) for x, n in zip(given, names, strict=False))
        size = (dim,) if isinstance(dim, int) else tuple(dim)
        launch = WarpLaunch(kernel, tuple(map(int, size)), trees, {})
        launch.before = self._contents(launch, given)
        launch.kept = self._handles.kept(kernel, trees)
        return launch

    def _contents(self, launch: WarpLaunch, given: Sequence[Any]) -> dict[str, Array | None]:
        if not self.wants(launch.kernel.key):
            return {spec.path: None for spec in launch.arrays}
        names = [a.label for a in launch.kernel.adj.args]
        live = dict(x for v, n in zip(given, names, strict=False) for x in live_arrays(v, n))
        out: dict[str, Array | None] = {}
        for spec in launch.arrays:
            a = live.get(spec.path)
            same = a is not None and int(a.ptr or 0) == spec.begin
            out[spec.path] = self.snapshots.of(a, spec) if same else None
        return out

    def _record(self, call: Any) -> Any:
        def record_launch(tape: Any, kernel: Any, dim: Any, max_blocks: Any, inputs: Any,
                          outputs: Any, *args: Any, **named: Any) -> Any:  # fmt: skip
            self._of(tape).noticed = True
            if self._pending:
                launch = self._pending.pop()
                launch.kernel = kernel  # of a generic one, the instance
                launch.block_dim = int(named.get("block_dim", args[1] if len(args) > 1 else 0) or 0)
                mine = self._of(tape)
                given = [*inputs, *outputs]
                launch.after = self._contents(launch, given)
                self._order += 1
                launch.order = self._order
                launch.live = _held(tape, given)
                for a in launch.arrays:
                    if launch.before[a.path] is not launch.after[a.path]:
                        self.writes.append(Written(
                            launch.order, a.begin, a.end, kernel.key, launch.site, mine.index,
                            len(mine.launches),
                        ))  # fmt: skip
                mine.launches.append(launch)
                caller = named.get("metadata", {}).get("caller")
                if caller and launch.site is not None:
                    code = launch.site.code
                    caller.update(file=code.co_filename, lineno=launch.site.line, func=code.co_name)
            return call(tape, kernel, dim, max_blocks, inputs, outputs, *args, **named)

        return record_launch

    # ---- other writes

    def _writing(self, call: Any, name: str) -> Any:
        def write(dest: Any, *args: Any, **named: Any) -> Any:
            self._copying += 1
            try:
                out = call(dest, *args, **named)
            finally:
                self._copying -= 1
            if self._copying:
                return out
            if self._active or any(t.launches for t in self.tapes):
                self._wrote(name, self._site(), [dest])
            if self._active and (args or "src" in named) and name != "fill_":
                self._copied(dest, named.get("src", args[0] if args else None), args, named)
            return out

        return write

    def _copied(self, dest: Any, src: Any, args: Sequence[Any], named: Any) -> None:
        a, b = described(dest, "dest"), described(src, "src")
        if isinstance(a, ArrayOf) and isinstance(b, ArrayOf):
            plain = len(args) + len(named) == 1 and a.shape == b.shape
            self._active[-1].copies.append(WarpCopy(a, b, plain, self._order))

    def _wrote(self, name: str, site: Site | None, given: Sequence[Any]) -> None:
        self._order += 1
        for value in given:
            for spec in arrays_of(described(value, "")):
                if spec.begin:
                    self.writes.append(Written(self._order, spec.begin, spec.end, name, site))


def _held(tape: Any, given: Sequence[Any]) -> Callable[[], Sequence[Any] | None]:
    """The arrays, which the tape keeps."""
    known = weakref.ref(tape)
    refs = [weakref.ref(x) if kind_of(x) == "array" else (lambda x=x: x) for x in given]

    def found() -> Sequence[Any] | None:
        return None if known() is None else [r() for r in refs]

    return found
