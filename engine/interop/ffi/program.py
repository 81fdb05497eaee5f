"""The work of one call of the handler: forms of a kernel, on the addresses of buffers."""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from engine.cached import cached_property
from engine.classes import dataclass
from engine.compile.forms import Form, Names
from engine.compile.pipeline import NONE, Variants, prefetch
from engine.runtime import events
from engine.runtime.device import HOST
from engine.runtime.kernel import Kernel
from engine.runtime.launch import run
from engine.runtime.plan import Plan
from engine.runtime.plan_parts import FormRun

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of a call: which one of operands and results together, and its batch.

    lead: its extents before those of one kernel's array, 1 where all of a batch share it.
    nbytes: of one such array.
    """

    number: int
    lead: Shape
    nbytes: int


# A part of the block of arguments: bytes, or the address of a buffer (None for one that the form
# does not touch) with what follows it.
Part = bytes | tuple["Buffer | None", bytes]


@dataclass(frozen=True, slots=True)
class Step:
    """A form of a kernel with its arguments. It takes the journal of the step before, if any."""

    form: Form
    wrt: Names
    journaled: Names
    parts: tuple[Part, ...]


@dataclass
class KernelProgram:
    """Forms of one kernel, one after the other, for each element of a batch.

    batch: its extents, () for none.
    """

    kernel: Kernel
    variants: Variants
    dim: Shape
    steps: tuple[Step, ...]
    batch: Shape
    _ready: list[tuple[FormRun, Callable[..., bytes]]] = field(default_factory=list)
    _offsets: list[list[int]] | None = None

    @cached_property
    def _plan(self) -> Plan:
        return Plan(self.kernel, self.variants, HOST.backend)

    def prepare(self) -> None:
        """Compiles what it runs. Raises CompilerError."""
        backend = HOST.backend
        what = [(backend, self.variants, s.form, s.wrt, s.journaled) for s in self.steps]
        prefetch([r for r in what if r[2] != "forward"] or [(*what[0][:3], NONE, NONE)])
        ready = []
        for s in self.steps:
            form = "".join(
                f"{len(p)}s" if isinstance(p, bytes) else f"Q{len(p[1])}s" for p in s.parts
            )
            how = FormRun(self._plan.executable(s.form, s.wrt, s.journaled))
            ready.append((how, self._packer(struct.Struct(f"<{form}"), s.parts)))
        self._ready = ready

    def _packer(self, how: struct.Struct, parts: Sequence[Part]) -> Callable[..., bytes]:
        """A function from addresses, and offsets of an element of the batch, to the block."""
        numbers: list[tuple[int, int]] = []  # where an address goes, which one it is
        values: list[object] = []
        for p in parts:
            if isinstance(p, bytes):
                values.append(p)
                continue
            if p[0] is not None:
                numbers.append((len(values), p[0].number))
            values += [0, p[1]]

        def pack(pointers: Sequence[int], offsets: Sequence[int] | None) -> bytes:
            out = values.copy()
            if offsets is None:
                for at, k in numbers:
                    out[at] = pointers[k]
            else:
                for at, k in numbers:
                    out[at] = pointers[k] + offsets[k]
            return how.pack(*out)

        return pack

    def run(self, pointers: tuple[int, ...]) -> None:
        """Runs it. Raises what a launch raises, and E209 for what it cannot save."""
        if not self.batch:
            self._run(pointers, None)
            return
        if self._offsets is None:
            self._offsets = self._lay_out()
        for offsets in self._offsets:
            self._run(pointers, offsets)

    def _run(self, pointers: tuple[int, ...], offsets: Sequence[int] | None) -> None:
        journal = None
        for o in events.observers():
            o.launching(self.kernel, self.dim, None)
        for how, pack in self._ready:
            if journal is not None:
                how = how._replace(journal=journal)
            args = pack(pointers, offsets)
            journal = run(self._plan.running(how, self.dim, args)).journal

    def _lay_out(self) -> list[list[int]]:
        """For each element of the batch the offset of each buffer in bytes."""
        buffers = {
            p[0].number: p[0]
            for s in self.steps
            for p in s.parts
            if not isinstance(p, bytes) and p[0] is not None
        }
        count = max(buffers, default=-1) + 1
        steps = {}
        for number, b in buffers.items():
            stride, strides = b.nbytes, [0] * len(b.lead)
            for d in reversed(range(len(b.lead))):
                strides[d] = stride if b.lead[d] != 1 else 0
                stride *= b.lead[d]
            steps[number] = strides
        out = []
        for index in itertools.product(*map(range, self.batch)):
            row = [0] * count
            for number, strides in steps.items():
                row[number] = sum(i * s for i, s in zip(index, strides, strict=True))
            out.append(row)
        return out

    def number(self) -> int:
        """What JAX's compiled functions know it by: the same for the same work, in any process.

        So kernels of one name are told apart, also in functions that JAX keeps on disk.
        """
        digest = hashlib.sha256(
            repr(
                (
                    str(self.variants.ir.span),
                    self.variants.name,
                    self.variants.debug,
                    self.dim,
                    self.batch,
                )
            ).encode()
        )
        for s in self.steps:
            fn = self.variants.function(s.form, s.wrt, s.journaled)
            digest.update(HOST.backend.emit(fn, "KERNEL").encode())
            digest.update(repr((s.form, sorted(s.wrt), sorted(s.journaled), s.parts)).encode())
        return int.from_bytes(digest.digest()[:8], "little") >> 1
