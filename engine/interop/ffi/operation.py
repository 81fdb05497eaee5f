"""A kernel with fixed shapes as JAX sees it, and its derivatives of any order.

Written `D^k`, the derivative of order k along directions t1..tk is what k tangent passes make of a
kernel; it is linear in each direction, and symmetric in them. The gradient of `<c, D^k>` by the
inputs is what the adjoint of that gives. Nothing else is ever needed: the derivative of `D^k` is
`D^(k+1)`, that of the gradient the gradient of `<c, D^(k+1)>`, and each is the other's transpose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np

from engine import config
from engine.classes import dataclass
from engine.compile.pipeline import NONE, Variants
from engine.diagnostics import Diagnostic, TapeError
from engine.interop.ffi.program import Buffer, KernelProgram, Part, Shape, Step
from engine.lang.types import ArrayType, is_float
from engine.logger import log_warning
from engine.runtime.device import HOST
from engine.runtime.forward_mode import warn_of_nonlinear_gradients
from engine.runtime.kernel import Kernel
from engine.runtime.launch_errors import fail

Indices = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Slot:
    """An operand or result: a parameter's name, JAX's shape and dtype, components last."""

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    floating: bool

    @property
    def nbytes(self) -> int:
        """Bytes of one such array."""
        return math.prod(self.shape) * self.dtype.itemsize


class Runnable(Protocol):
    """What the handler can be given."""

    def prepare(self) -> None:
        """Compiles what it runs."""

    def number(self) -> int:
        """What compiled JAX functions know it by."""

    def run(self, pointers: tuple[int, ...]) -> None:
        """Runs it on the addresses of operands, then results."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a call is lowered to.

    results: slots and batch extents, those that JAX asked for first, then scratch. aliases: of
    operands, which result is the same memory. zero: results that are zero when it begins.
    program: None where all results are zero.
    """

    program: Runnable | None
    results: tuple[tuple[Slot, Shape], ...]
    aliases: dict[int, int]
    zero: frozenset[int]


class Base:
    """What JAX calls, at fixed shapes. Two are the same object where they are equal.

    inputs, outputs: as JAX has them. in_out: of inputs, by number, the output that each becomes.
    effect: whether it is called also where nothing of it is used.
    """

    name: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    in_out: dict[int, int]
    effect: bool

    def check_differentiable(self) -> None:
        """Raises LaunchError (E401) where it has no derivative."""

    def compiled(self, op: Operation) -> Compiled:
        """What an operation on it is lowered to."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Operation:
    """`D^k` of a kernel, or the gradient of `<c, D^k>`.

    Operands are all inputs, then the directions, one group of arrays for each order, then the
    cotangents. directions: for each order the inputs that move. cotangents: the outputs that have
    one (of a gradient). wrt: the inputs that a gradient is taken by. leads: of each operand the
    batch extents that its shape begins with, 1 where it is the same for all. outs: the same of
    each result.
    """

    base: Base
    kind: Literal["value", "gradient"]
    directions: tuple[Indices, ...] = ()
    cotangents: Indices = ()
    wrt: Indices = ()
    leads: tuple[Shape, ...] = ()
    outs: tuple[Shape, ...] = ()
    vmap: str | None = None

    @property
    def order(self) -> int:
        """How many directions it has."""
        return len(self.directions)

    @property
    def given(self) -> tuple[Slot, ...]:
        """The slots of all operands, in order."""
        inputs, outputs = self.base.inputs, self.base.outputs
        moving = [inputs[i] for group in self.directions for i in group]
        return (*inputs, *moving, *(outputs[o] for o in self.cotangents))

    @property
    def made(self) -> tuple[Slot, ...]:
        """The slots of all results."""
        if self.kind == "gradient":
            return tuple(self.base.inputs[i] for i in self.wrt)
        if not self.order:
            return self.base.outputs
        return tuple(s for s in self.base.outputs if s.floating)

    @property
    def made_outputs(self) -> Indices:
        """Of a value, which outputs its results are, or are derivatives of."""
        slots = enumerate(self.base.outputs)
        return tuple(o for o, s in slots if s.floating or not self.order)

    @property
    def batch(self) -> Shape:
        """The extents of the batch."""
        return tuple(map(max, zip(*self.leads, *self.outs, strict=True)))

    def group(self, j: int) -> range:
        """Where the operands of direction j are; of the cotangents for j = order."""
        sizes = [len(self.base.inputs), *map(len, self.directions), len(self.cotangents)]
        begin = sum(sizes[: j + 1])
        return range(begin, begin + sizes[j + 1])

    def batched(self, size: int, batched: Sequence[bool], full: Sequence[bool]) -> Operation:
        """One more batch extent in front. batched: which operands have it. full: which results."""
        leads = [(size if b else 1, *lead) for b, lead in zip(batched, self.leads, strict=True)]
        outs = [(size if b else 1, *lead) for b, lead in zip(full, self.outs, strict=True)]
        return replace(self, leads=tuple(leads), outs=tuple(outs))

    @property
    def consumed(self) -> frozenset[int]:
        """Operands whose memory it changes, or copies first: they have the whole batch."""
        own = self.base.in_out
        moving = [i for group in self.directions for i in group]
        n = len(self.base.inputs)
        found = {*own, *(n + k for k, i in enumerate(moving) if i in own)}
        return frozenset(found | set(self.group(self.order) if self.cotangents else ()))


Tag = tuple[int, tuple[int, ...]]  # a parameter, and the directions along which it is derived


@dataclass(frozen=True, slots=True)
class Place:
    """An array parameter of a kernel: the input that it is, or the output, or both."""

    input: int | None
    output: int | None
    tail: bytes  # what follows its address in the block of arguments


class KernelBase(Base):
    """A kernel at fixed shapes.

    places: what each parameter of its IR is: a value, or an array.
    """

    _known: dict[tuple[Any, ...], KernelBase] = {}  # noqa: RUF012

    kernel: Kernel
    variants: Variants
    dim: Shape
    places: tuple[bytes | Place, ...]
    backward: bool

    @classmethod
    def of(
        cls, kernel: Kernel, variants: Variants, dim: Shape, places: tuple[bytes | Place, ...],
        inputs: tuple[Slot, ...], outputs: tuple[Slot, ...], backward: bool, effect: bool,
    ) -> KernelBase:  # fmt: skip
        """The one of these parts."""
        key = (variants, dim, places, inputs, outputs, backward, effect)
        found = cls._known.get(key)
        if found is None:
            found = cls()
            found.kernel, found.variants, found.dim, found.places = kernel, variants, dim, places
            found.name, found.inputs, found.outputs = kernel.key, inputs, outputs
            found.backward, found.effect = backward, effect
            found.in_out = {
                p.input: p.output
                for p in places
                if isinstance(p, Place) and p.input is not None and p.output is not None
            }
            found = cls._known.setdefault(key, found)
        return found

    def check_differentiable(self) -> None:
        if not self.backward:
            raise fail("E401", f"kernel {self.name!r} was made a JAX function without derivatives",
                       help="write jax_kernel(..., enable_backward=True)")  # fmt: skip
        if not self.kernel.enable_backward:
            raise fail("E401", f"kernel {self.name!r} has no derivative: its option "
                       "enable_backward is False", help="leave that option out")  # fmt: skip

    def compiled(self, op: Operation) -> Compiled:
        made = _Writer(self, op)
        return made.value() if op.kind == "value" else made.gradient()


class _Writer:
    """Writes the program of one operation on a kernel."""

    def __init__(self, base: KernelBase, op: Operation) -> None:
        self.base, self.op = base, op
        self.batch = op.batch
        self.variants = base.variants
        self.tags: list[Tag] = [(i, ()) for i in range(len(base.places))]
        for j, moving in enumerate(op.directions):
            self._derive(j, moving)
        self.results: list[tuple[Slot, Shape]] = []
        self.aliases: dict[int, int] = {}
        self.zero: set[int] = set()
        self._operand: dict[tuple[int, tuple[int, ...]], int] = {}
        for i in range(len(base.inputs)):
            self._operand[i, ()] = i
        for j, moving in enumerate(op.directions):
            for at, i in zip(op.group(j), moving, strict=True):
                self._operand[i, (j,)] = at

    def _derive(self, j: int, moving: Indices) -> None:
        """Another tangent pass: along the inputs in `moving`."""
        variants, params = self.variants, self.variants.ir.params
        wrt = set()
        new: list[Tag] = []
        for (i, order), p in zip(self.tags, params, strict=True):
            place = self.base.places[i]
            if not isinstance(place, Place) or not is_float(p.type):
                continue
            if place.output is not None or (not order and place.input in moving):
                wrt.add(p.name)
                new.append((i, (*order, j)))
        key = ("tangent", frozenset(wrt))
        warn_of_nonlinear_gradients(variants, key[1])
        made = variants.derived.get(key)
        if made is None:
            made = Variants(variants.tangent_ir(key[1]))
            made.name, made.debug = variants.name, variants.debug
            variants.derived[key] = made
        self.variants, self.tags = made, [*self.tags, *new]

    # ---- buffers

    def _slot(self, place: Place) -> Slot:
        if place.output is not None:
            return self.base.outputs[place.output]
        assert place.input is not None
        return self.base.inputs[place.input]

    def _given(self, operand: int) -> Buffer:
        slot = self.op.given[operand]
        return Buffer(operand, self.op.leads[operand], slot.nbytes)

    def _result(self, slot: Slot, lead: Shape, of: int | None = None, zero: bool = True) -> Buffer:
        """A further result. of: the operand that it is made of. zero: or it begins as zero."""
        number = len(self.results)
        self.results.append((slot, lead))
        if of is not None:
            self.aliases[of] = number
        elif zero:
            self.zero.add(number)
        return Buffer(len(self.op.leads) + number, lead, slot.nbytes)

    def _wanted(self) -> dict[Tag, int]:
        """The results that a value is asked for, by tag."""
        full = tuple(range(self.op.order))
        place = {
            p.output: i
            for i, p in enumerate(self.base.places)
            if isinstance(p, Place) and p.output is not None
        }
        return {(place[o], full): k for k, o in enumerate(self.op.made_outputs)}

    def _part(self, tag: Tag, buffer: Buffer | None) -> Part:
        place = self.base.places[tag[0]]
        assert isinstance(place, Place)
        return (buffer, place.tail)

    def _ended(self, steps: Sequence[Step]) -> Compiled:
        program = KernelProgram(
            self.base.kernel, self.variants, self.base.dim, tuple(steps), self.batch
        )
        if len(self.results) > 63:
            raise fail("E201", f"kernel {self.base.name!r} has too many outputs for JAX",
                       f"{len(self.results)} results, 63 is the most")  # fmt: skip
        return Compiled(program, tuple(self.results), self.aliases, frozenset(self.zero))

    # ---- values

    def value(self) -> Compiled:
        """The program of a value or a derivative."""
        wanted = self._wanted()
        buffers: dict[Tag, Buffer] = {}
        # What was asked for comes first, in its order.
        order = sorted(range(len(self.tags)), key=lambda k: wanted.get(self.tags[k], len(wanted)))
        for k in order:
            tag = self.tags[k]
            place = self.base.places[tag[0]]
            if not isinstance(place, Place):
                continue
            operand = None if place.input is None else self._operand.get((place.input, tag[1]))
            if place.output is None:
                assert operand is not None
                buffers[tag] = self._given(operand)
            else:
                zero = tag[1] != () or not self._fills(k)
                buffers[tag] = self._result(self._slot(place), self.batch, operand, zero)
        return self._ended([Step("forward", NONE, NONE, self._parts(buffers))])

    def _parts(self, buffers: Mapping[Tag, Buffer | None]) -> tuple[Part, ...]:
        out: list[Part] = []
        for tag in self.tags:
            place = self.base.places[tag[0]]
            out.append(place if isinstance(place, bytes) else self._part(tag, buffers[tag]))
        return tuple(out)

    def _fills(self, k: int) -> bool:
        """Whether it certainly stores every element of a parameter."""
        block = b"".join(
            p if isinstance(p, bytes) else bytes(8) + p.tail
            for p in (self.base.places[i] for i, _ in self.tags)
        )
        name = self.variants.ir.params[k].name
        return self.variants.threads.fills(name, self.base.dim, block)

    # ---- gradients

    def gradient(self) -> Compiled:
        """The program of a gradient."""
        op, variants = self.op, self.variants
        full = tuple(range(op.order))
        params = variants.ir.params
        through = variants.read & variants.written  # what one thread writes and another reads
        buffers: dict[Tag, Buffer] = {}
        cotangents = dict(zip(op.cotangents, op.group(op.order), strict=True))
        wanted = {i: k for k, i in enumerate(op.wrt)}
        todo: list[tuple[int, Tag, Slot, int | None, int | None]] = []
        for tag, p in zip(self.tags, params, strict=True):
            place = self.base.places[tag[0]]
            if not isinstance(place, Place) or not is_float(p.type):
                continue
            assert isinstance(p.type, ArrayType)
            asked = None
            if not tag[1] and place.input is not None:
                asked = wanted.get(place.input)
            ct = (
                cotangents.get(place.output)
                if tag[1] == full and place.output is not None
                else None
            )
            if asked is not None or ct is not None or p.name in through:
                todo.append(
                    (len(wanted) if asked is None else asked, tag, self._slot(place), asked, ct)
                )
        todo.sort(key=lambda x: x[0])
        for _, tag, slot, asked, ct in todo:
            lead = self.batch if asked is None else op.outs[asked]
            buffers[tag] = self._result(slot, lead, ct)
        names = {t: p.name for t, p in zip(self.tags, params, strict=True)}
        wrt = frozenset(names[t] for t in buffers)
        if not wrt & variants.written:
            slots = tuple(zip(op.made, op.outs, strict=True))
            return Compiled(None, slots, {}, frozenset(range(len(slots))))
        self._check(wrt)
        journaled = variants.journaled()
        recorded = variants.needs_journal(wrt, journaled)
        primal: dict[Tag, Buffer | None] = {}
        for tag in self.tags:
            place = self.base.places[tag[0]]
            if not isinstance(place, Place):
                continue
            operand = None if place.input is None else self._operand.get((place.input, tag[1]))
            if place.output is not None and recorded:
                # The launch is made once more, and what it writes is not seen.
                primal[tag] = self._result(self._slot(place), self.batch, operand)
            else:
                primal[tag] = None if operand is None else self._given(operand)
        parts = self._parts(primal)
        gradients = [self._part(t, buffers[t]) for t in self.tags if t in buffers]
        steps = [Step("recorded", wrt, journaled, parts)] if recorded else []
        return self._ended([*steps, Step("adjoint", wrt, journaled, (*parts, *gradients))])

    def _check(self, wrt: frozenset[str]) -> None:
        """Raises TapeError (E407, E408) for gradients that are not those of what ran."""
        name, variants = self.base.name, self.variants
        for s in variants.clashes(HOST.backend, self.base.dim, wrt):
            raise TapeError(
                Diagnostic(
                    "E407", f"all threads of kernel {name!r} store different values to "
                            f"one element of {s.array.name!r}, so no gradient is right", s.span,
                    help="let one thread store it, or combine the values: "
                    f"atomic_add({s.array.name}, ...)",
                    notes=(f"it is called from JAX with dim={self.base.dim}",),
                )
            )  # fmt: skip
        if config.overwrites != "present":
            for x in variants.late(wrt, frozenset()):
                raise TapeError(
                    Diagnostic(
                        "E408", f"the gradient of {x.function!r} reads array {x.array!r}, which "
                        f"kernel {name!r} overwrites after the call", x.call,
                        help=f"pass what it needs of {x.array!r} as a number, or store to another "
                        "array", notes=(f"it is overwritten at {x.store}",),
                    )
                )  # fmt: skip
        for f in variants.stops(wrt):
            log_warning(f"the gradient of kernel {name!r} ends at the native function {f.name!r}, "
                        "which has no adjoint")  # fmt: skip
