"""Work for a kernel's launches that is done once: parameters, packers, written arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import config
from engine.accelerator import accelerator
from engine.compile.backend import Backend, Marks
from engine.compile.forms import FORMS, Form, Names
from engine.compile.pipeline import NONE, Variants
from engine.lang.structs import PLACES, Argument, leaves
from engine.lang.types import is_float
from engine.runtime import events
from engine.runtime.ahead import with_adjoint
from engine.runtime.annotation import describe
from engine.runtime.arguments import Arguments
from engine.runtime.array import array
from engine.runtime.base import may_meet
from engine.runtime.device import Device
from engine.runtime.execute import Executable
from engine.runtime.guards import objection
from engine.runtime.launch_errors import fail
from engine.runtime.links import Gathered, gathering
from engine.runtime.pack import Mismatch, as_array
from engine.runtime.plan_parts import (
    NOBODY,
    Activity,
    BoundLaunch,
    FormRun,
    Param,
    Selection,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.runtime.kernel import Kernel
    from engine.runtime.relinks import Relinks


class Plan:
    """A lowered kernel, ready to be launched on one kind of device."""

    __slots__ = ("__dict__", "__weakref__", "backend", "recipe")  # native functions read them

    def __init__(self, kernel: Kernel, variants: Variants, backend: Backend) -> None:
        self.kernel = kernel
        self.variants = variants
        self.backend = backend
        facts = variants.facts
        self._siblings: dict[Backend, Plan] = {backend: self}
        self.params = tuple(Param(i, *p) for i, p in enumerate(facts.params))
        self.count = len(self.params)
        arrays = [p for p in self.params if p.array_kind is not None]
        read, written = self.variants.read, self.variants.written
        self.writes = tuple(p.index for p in arrays if p.name in written)
        self.reads = tuple(p.index for p in arrays if p.name in read)
        self.inputs = tuple(p.index for p in arrays if p.name in read or p.name in facts.updated)
        self.only_read = tuple(i for i in self.reads if i not in self.writes)
        self.only_written = frozenset(self.writes) - frozenset(self.reads)
        # What a tape remembers: that, and what only a replay in the backward pass reads.
        again = self.variants.read_again(frozenset())
        self.held = tuple(
            p.index for p in arrays if p.index in self.inputs or p.name in again - written
        )
        self.pairs = tuple((w, r) for w in self.writes for r in self.reads if w != r)
        self.floats = tuple(p for p in arrays if is_float(p.kind))
        self.array_params = tuple(arrays)
        place = {p.name: p.index for p in arrays}
        self.apart = tuple((place[a], place[b]) for a, b in facts.apart)
        # The user's parameters, where the IR has others.
        self.arguments = Arguments(facts.arguments) if facts.arguments else None
        self.relinks: Relinks | None = None
        if any(name.endswith(PLACES) for name in written):
            from engine.runtime.relinks import relinks_of

            self.relinks = relinks_of(variants.ir, read, written)
        # The last of them are tables of geometry, which launches add.
        self.tables = facts.tables
        # Of these, what is not the user's own: cells, boxes, and how they hang together.
        self.structure = frozenset(
            leaf.named(t.name) for t in self.tables for leaf in leaves(t.type)
            if not is_float(leaf.type) or leaf.path[-1] not in ("points", "velocities")
        )  # fmt: skip
        # What is accessed under a condition may be left out: the kernel decides.
        self.needed = frozenset(p.index for p in arrays if p.name in facts.needed)
        # Whether launches pass just what the kernel takes, each argument by itself.
        self.plain: bool = (
            self.arguments is None and self.relinks is None and not (self.tables or self.apart)
        )
        # What native functions are told of it, and where: 0 before it was compiled, None where its
        # launches never go natively (see `engine.accel.recipes`).
        self._recipe: object = None
        self.recipe: int | None = 0
        self._selections: dict[tuple[int, frozenset[str], bool], Selection] = {}
        self.usual: dict[int, Selection] = {}  # of launches without arrays that share memory
        # Positions of the arrays that can have a gradient, and their bits in a mask.
        self.bits = tuple((p.index, 1 << bit) for bit, p in enumerate(self.floats))
        self._forward: Executable | None = None
        self._adjoints: dict[tuple[frozenset[str], frozenset[str]], Executable] = {}
        self._executables: dict[tuple[Form, Names, Names], Executable] = {}

    def on(self, backend: Backend) -> Plan:
        """The plan of the same lowered kernel for another kind of device."""
        found = self._siblings.get(backend)
        if found is None:
            found = self._siblings[backend] = Plan(self.kernel, self.variants, backend)
            found._siblings = self._siblings
        return found

    @property
    def forward(self) -> Executable:
        """The compiled kernel as written."""
        if self._forward is None:
            marks = Marks(self.writes, False)
            self._forward = Executable(self.backend, self.variants, "forward", marks=marks)
            accelerator.compiled(self, self._forward)
        return self._forward

    def has_adjoint(self, s: Selection) -> bool:
        """Whether that of a recorded launch was compiled before."""
        return (s.wrt, s.journaled) in self._adjoints

    def adjoint(self, wrt: frozenset[str], journaled: frozenset[str]) -> Executable:
        """The compiled adjoint for gradients of these arrays."""
        watched = bool(events.sanitizers())
        found = None if watched else self._adjoints.get((wrt, journaled))
        if found is None:
            marks = Marks(tuple(p.index for p in self.floats if p.name in wrt), True)
            found = Executable(self.backend, self.variants, "adjoint", wrt, journaled, marks)
            if not watched:  # what is watched notes what it saw
                self._adjoints[wrt, journaled] = found
        return found

    def executable(self, form: Form, wrt: Names = NONE, journaled: Names = NONE) -> Executable:
        """Any compiled form, for launches that nobody is told of."""
        if not FORMS[form].of_arrays:
            wrt = journaled = NONE
        found = self._executables.get((form, wrt, journaled))
        if found is None:
            found = Executable(self.backend, self.variants, form, wrt, journaled)
            self._executables[form, wrt, journaled] = found
        return found

    def unobserved(
        self, dim: tuple[int, ...], blob: bytes, form: Form = "forward", wrt: Names = NONE,
        journaled: Names = NONE, **how: Any,
    ) -> BoundLaunch:  # fmt: skip
        """A launch that runs as any form, on memory that the caller keeps; nobody is told of it.

        blob: the arguments, and what the form takes beside them. how: see `FormRun`.
        """
        return self.running(FormRun(self.executable(form, wrt, journaled), **how), dim, blob)

    def running(self, how: FormRun, dim: tuple[int, ...], blob: bytes) -> BoundLaunch:
        """The same for a run that is at hand, of which JAX and backward passes make many."""
        return BoundLaunch(self, dim, [], blob, 0, None, False, None, (), how)

    def bind(
        self, args: list[Any], dim: tuple[int, ...] = (1,), device: Device | None = None
    ) -> tuple[list[Any], bytes]:
        """Checks arguments; gives them as arrays and values, and as bytes.

        dim: the grid; without threads, None will do for any array. device: where all arrays
        have to be; None where there is but one.
        Raises LaunchError E201 (count), E202 (type), E203 (dimensions), E204 (device), E206
        (memory that arguments share, and may not).
        """
        if self.arguments is not None:
            args = self.split(args)
        if len(args) != self.count:
            names = ", ".join(p.name for p in self.params)
            raise fail("E201", f"kernel {self.kernel.key!r} got the wrong number of arguments",
                       f"expected {self.count} ({names}), got {len(args)}")  # fmt: skip
        parts = []
        for p, v in zip(self.params, args, strict=True):
            if v.__class__ is array and v._ir is p.array_kind:
                parts.append(v._packed)
                continue
            try:
                if p.array_kind is not None:
                    given = v
                    v = args[p.index] = as_array(v, p.array_kind)
                    if not (v is None or isinstance(given, array) or device in (None, v.device)):
                        raise Mismatch("E204", f"a {type(given).__name__} on {v.device}, and the "
                                       f"launch is on {device}",
                                       f"make an array of it: array(..., device={str(device)!r})"
                                       )  # fmt: skip
                    if v is None and p.index in self.needed and 0 not in dim:
                        raise Mismatch("E202", "None", f"pass an array, or guard the accesses by "
                                       f"`if {p.name}:`")  # fmt: skip
                parts.append(p.packed(v))
            except Mismatch as e:
                raise self.mismatch(p, e) from None
        if device is not None:
            self.check_device(args, device)
        for i, k in self.apart:
            if args[i] is not None and args[k] is not None and may_meet(args[i], args[k]):
                raise self._one_memory(i, k)
        return args, b"".join(parts)

    def packed(self, values: Iterable[Any]) -> bytes:
        """Checked arguments as the kernel reads them."""
        return b"".join(map(Param.packed, self.params, values))

    def _one_memory(self, i: int, k: int) -> Exception:
        names = f"{self.params[i].name!r} and {self.params[k].name!r}"
        return fail("E206", f"kernel {self.kernel.key!r}: arguments {names} share memory, and one "
                    "call refers to elements of both", "a reference is a value that comes in and "
                    "goes out, so two for one place are not supported",
                    help="pass a copy of one of them")  # fmt: skip

    def check_device(self, values: list[Any], device: Device) -> None:
        """Raises LaunchError (E204) where an array is on another device."""
        for p in self.array_params:
            a = values[p.index]
            if a is not None and a.device != device:
                raise fail("E204", f"kernel {self.kernel.key!r}, argument {p.name!r}: the array is "
                           f"on device {a.device}, and the launch on {device}",
                           help=f"copy it: {p.name}.to({str(device)!r}), or launch with "
                           f"device={str(a.device)!r}")  # fmt: skip

    def split(self, args: list[Any]) -> list[Any]:
        """The user's arguments taken apart. Raises LaunchError E201, E202, E203."""
        arguments = self.arguments
        if arguments is None:
            return args
        names = self.given
        if len(args) != len(names):
            raise fail("E201", f"kernel {self.kernel.key!r} got the wrong number of arguments",
                       f"expected {len(names)} ({', '.join(names)}), "
                       f"got {len(args)}")  # fmt: skip
        if self.relinks is None:
            return self._split_all(args, names)
        from engine.runtime.relinks import add_arguments

        with gathering(self.relinks) as to:
            to.looking = True
            for k, value in enumerate(args):
                self._split_one(k, value)
            to.looking = False
            add_arguments(to, self, args)
            return self._split_all(args, names, to)

    def _split_all(
        self, args: list[Any], names: list[str], to: Gathered | None = None
    ) -> list[Any]:
        out: list[Any] = []
        for k, value in enumerate(args):
            out += self._split_one(k, value)
        if self.tables:
            from engine.builtins.queries import ARGUMENTS
            from engine.runtime.geometry.registry import tables
            from engine.runtime.relinks import starts_of

            wanted = [t for t in self.tables if t.type is not ARGUMENTS]
            found = iter(tables(self.kernel.key, wanted, out) if wanted else ())
            for k, t in enumerate(self.tables, len(names)):
                made = starts_of(to, self) if to and t.type is ARGUMENTS else next(found)
                out += self._split_one(k, made)
        return out

    @property
    def given(self) -> list[str]:
        """The parameters that launches give values, by name."""
        if self.arguments is None:
            return [p.name for p in self.params]
        return self.arguments.names[: len(self.arguments.names) - len(self.tables)]

    def split_adjoints(self, adjoints: list[Any]) -> list[Any]:
        """The same for the adjoints of arguments; None stands for none."""
        arguments = self.arguments
        assert arguments is not None
        if len(adjoints) != len(self.given):
            return adjoints
        adjoints = [*adjoints, *([None] * len(self.tables))]
        out: list[Any] = []
        for k, value in enumerate(adjoints):
            count = arguments.first[k + 1] - arguments.first[k]
            out += [None] * count if value is None else self._split_one(k, value)
        return out

    def _split_one(self, k: int, value: Any) -> list[Any]:
        assert self.arguments is not None
        try:
            return self.arguments.split(k, value)
        except Mismatch as e:
            raise self.mismatch(self.arguments.arguments[k], e) from None

    def mismatch(self, p: Param | Argument, e: Mismatch) -> Exception:
        """The error for an argument that does not fit its parameter."""
        kind = p.kind if isinstance(p, Param) else p.type
        return fail(
            e.code, f"kernel {self.kernel.key!r}: argument {p.name!r} expects {describe(kind)} "
            f"but got {e.got}", help=e.help,
        )  # fmt: skip

    def check_written(self, values: list[Any]) -> None:
        """Announces the writes of a launch to the memory that it will change.

        Raises LaunchError (E206) where an argument that is written is read-only
        or has two elements in one place.
        """
        for i in self.writes:
            a = values[i]
            if a is not None:
                storage = a.storage
                if not (a.is_contiguous and storage.writable and storage.guard is None):
                    self._check_writable(values)
                    break
        loud = events.are_writes_observed()
        for i in self.writes:
            a = values[i]
            if a is not None:
                storage = a.storage
                if loud or storage._hold is not None:
                    storage.before_write(a.lo, a.hi)
                else:
                    storage.version += 1  # all that it would do

    def _check_writable(self, values: list[Any]) -> None:
        for i in self.writes:
            a = values[i]
            found = None if a is None else objection(a)
            if found is not None:
                raise fail("E206", f"kernel {self.kernel.key!r} writes argument "
                           f"{self.params[i].name!r}, which has {found[0]}",
                           help=found[1])  # fmt: skip

    def mask(self, values: list[Any]) -> int:
        """Which of the float arrays require a gradient, as bits in their order."""
        mask = 0
        for i, bit in self.bits:
            a = values[i]
            if a is not None and a._flag and (a._origin is None or a.requires_grad):
                mask |= bit
        return mask

    def activity(self, mask: int, aliased: frozenset[str], enabled: bool) -> Activity:
        """What launches and backward passes run for gradients of the arrays in `mask`.

        enabled: whether gradients flow through launches of the kernel.
        """
        wrt = frozenset(p.name for bit, p in enumerate(self.floats) if mask >> bit & 1)
        useful = bool(wrt & self.variants.written) and enabled
        journaled = self.variants.journaled(aliased)
        return Activity(
            wrt, journaled, useful, useful and self.variants.needs_journal(wrt, journaled)
        )

    def select(self, values: list[Any], aliased: frozenset[str]) -> Selection:
        """The compiled forms for a recorded launch of these arguments."""
        mask = self.mask(values)
        if not aliased:
            found = self.usual.get(mask)
            # As `Kernel.enable_backward`, of which every recorded launch asks twice.
            kernel = self.kernel
            own = kernel.options.get("enable_backward") if kernel.options else None
            if own is None:
                own = kernel.module.options.get("enable_backward")
            if found is not None and (config.enable_backward if own is None else own):
                return found
        return self.selection(mask, aliased)

    def aliased(self, values: list[Any]) -> frozenset[str]:
        """Parameters that are read and share memory with another one that is written."""
        found = None
        for w, r in self.pairs:
            a, b = values[w], values[r]
            if a is None or b is None or a.lo >= b.hi or b.lo >= a.hi:
                continue
            if may_meet(a, b):
                found = found or set()
                found.add(self.params[r].name)
        return frozenset(found) if found else NOBODY

    def selection(self, mask: int, aliased: frozenset[str]) -> Selection:
        """The compiled forms for gradients of the float arrays in `mask` (bits in order)."""
        enabled = self.kernel.enable_backward
        key = (mask, aliased, enabled)
        found = self._selections.get(key)
        if found is None:
            wrt, journaled, useful, saves_journal = self.activity(mask, aliased, enabled)
            executable = self.forward
            if saves_journal:
                with_adjoint(self, wrt, journaled)
                executable = Executable(self.backend, self.variants, "recorded", wrt, journaled)
            reads = watched = self._at(
                self.variants.adjoint_reads(wrt, journaled) if useful else frozenset()
            )
            if not useful or len(wrt) < len(self.floats):
                watched |= self._at(self.variants.read_again(journaled))
            gradients = tuple(p.index for p in self.floats if p.name in wrt)
            found = Selection(
                wrt, journaled, useful, executable, saves_journal, reads, tuple(watched), gradients
            )
            self._selections[key] = found
            if enabled and not aliased:
                self.usual[mask] = found
        return found

    def _at(self, names: frozenset[str]) -> frozenset[int]:
        return frozenset(p.index for p in self.array_params if p.name in names)
