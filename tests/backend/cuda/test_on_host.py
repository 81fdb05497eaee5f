"""The CUDA text means what the C++ text means: the same bits, run on the host behind a shim."""

from __future__ import annotations

import functools
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine as wp
import tests.corpus.test_gradients  # noqa: F401 (it registers cases)
from engine.ad.threads import Access, collect
from engine.codegen.facts import facts_of
from engine.compile.backend import NO_MEMORY, STACK_LIMIT, Limits
from engine.compile.cpu import CPU
from engine.compile.cpu.loops import alone_in
from engine.compile.forms import Form
from engine.compile.pipeline import Variants, prefetch
from engine.frontend import lower_kernel
from engine.ir.nodes import Function
from engine.lang.types import ArrayType, scalar_of, shape_of
from tests.backend.cuda.host import Memory, Program
from tests.backend.signatures import Array
from tests.backend.test_kernel_builtins import CASES as BUILTINS
from tests.corpus import oracle as o
from tests.corpus.case import CASES, Arr, Case

FORMS: tuple[Form, ...] = ("recorded", "adjoint", "checkpointed", "tangent")
FREE = Limits(0, 0)
# Threads change one element: the order in which they run shows in its last bits.
SHARED = ("scatter", "extrema_and_what_was_there", "extrema_of_vectors", "atomic_results")


@dataclass
class Prepared:
    """A case in one precision, every form of it compiled by both backends."""

    case: Case
    v: Variants
    symbol: str

    @property
    def dim(self) -> tuple[int, ...]:
        d = self.case.dim
        return tuple(d) if isinstance(d, (tuple, list)) else (d,)

    @property
    def threads(self) -> int:
        return math.prod(self.dim)

    def functions(self) -> list[tuple[str, Function]]:
        wrt, journaled = self.v.differentiable, self.v.journaled()
        return [(f"{self.symbol}_{f}", self.v.function(f, wrt, journaled)) for f in FORMS]

    def values(self, seed: str) -> list[Any]:
        """Arguments: arrays with random numbers where floats are, and numbers."""
        rng = np.random.default_rng(zlib.crc32(f"{self.case.name}{seed}".encode()))
        out = []
        for p, a in zip(self.v.ir.params, self.case.args, strict=True):
            scalar = scalar_of(p.type).numpy
            if isinstance(a, Arr):
                out.append(o.data_of(a, rng).astype(scalar))
            else:
                out.append(np.asarray(a, scalar))
        return out

    def slopes(self, given: list[Any]) -> list[Array]:
        """Random gradients or tangents of what has a derivative, in parameter order."""
        rng = np.random.default_rng(zlib.crc32(self.case.name.encode()))
        pairs = zip(self.v.ir.params, given, strict=True)
        return [
            rng.standard_normal(a.shape).astype(a.dtype)
            for p, a in pairs
            if p.name in self.v.differentiable
        ]

    def pack(self, given: list[Any], more: list[Array]) -> bytes:
        types = [p.type for p in self.v.ir.params]
        types += [p.type for p in self.v.ir.params if p.name in self.v.differentiable]
        out = b""
        for t, a in zip(types, [*given, *more], strict=bool(more)):
            if isinstance(t, ArrayType):
                fields = (a.ctypes.data, *a.shape[: t.ndim], *a.strides[: t.ndim])
                out += np.array(fields, np.int64).tobytes()
            else:
                assert shape_of(t) == a.shape
                out += a.tobytes() + bytes(-a.nbytes % 8)
        return out


GROUPS = 4  # of cases that are compiled together; all but the first are left to sweeps


def cases(but: Any = ()) -> list[Any]:
    """Names of cases, for tests."""
    return [pytest.param(c.name, marks=[pytest.mark.sweep] if i % GROUPS else [])
            for i, c in enumerate(CASES) if c.name not in but]  # fmt: skip


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Gives a case, every other one in float64, and the program of the dialect that has it."""
    places = {c.name: i for i, c in enumerate(CASES)}

    @functools.cache
    def group(number: int) -> tuple[dict[str, Prepared], Program]:
        made = []
        for i, c in list(enumerate(CASES))[number::GROUPS]:
            kernel = c.make((wp.float32, wp.float64)[i // GROUPS % 2])
            made.append(Prepared(c, Variants(lower_kernel(kernel.func)), f"k{i}"))
        prefetch([
            (CPU, c.v, form, c.v.differentiable, c.v.journaled())
            for c in made for form in FORMS if form != "checkpointed"
        ])  # fmt: skip
        program = Program([f for c in made for f in c.functions()], tmp_path_factory.mktemp("host"))
        return {c.case.name: c for c in made}, program

    def find(name: str) -> tuple[Prepared, Program]:
        found, program = group(places[name] % GROUPS)
        return found[name], program

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wp.config, "precise_math", True)  # the device's functions are the library's
        yield find


def on_cpu(c: Prepared, form: Form, args: bytes, journal: Any = None) -> Any:
    entry = c.v.entry(CPU, form, c.v.differentiable, c.v.journaled())
    outcome = CPU.run(entry, c.dim, args, FREE, journal=journal)
    assert outcome.error == 0
    return outcome.journal


def block(arrays: Any, axes: int = 1) -> bytes:
    """Arrays as arguments."""
    fields = [(a.ctypes.data, *a.shape[:axes], *a.strides[:axes]) for a in arrays]
    return np.array(fields, np.int64).tobytes()


def same(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        assert x.tobytes() == y.tobytes(), (x, y)


def summed(fn: Function) -> bool:
    """Whether threads may add to one element: each backend does so in an order of its own."""
    arrays: dict[str, list[Access]] = {}
    for a in collect(fn).accesses:
        arrays.setdefault(a.array, []).append(a)
    axes = facts_of(fn)[id(fn)].axes
    return any(some[0].kind == "add" and not alone_in(some, axes) for some in arrays.values())


def same_sums(fn: Function, a: list[Any], b: list[Any]) -> None:
    """The same bits, but of sums over threads."""
    if not summed(fn):
        same(a, b)
        return
    for x, y in zip(a, b, strict=True):
        if x.dtype.kind == "f":
            np.testing.assert_allclose(x, y, rtol=64 * np.finfo(x.dtype).eps, atol=1e-6)
        else:
            assert x.tobytes() == y.tobytes()


@pytest.mark.whole
@pytest.mark.parametrize("name", cases())
def test_the_same_bits(name: str, prepared: Any) -> None:
    c, program = prepared(name)
    here, there = c.values("x"), c.values("x")
    memory, fns = Memory(c.threads), dict(c.functions())

    journal = on_cpu(c, "recorded", c.pack(here, []))
    program.run(f"{c.symbol}_recorded", c.dim, c.pack(there, []), memory)
    assert not memory.errors
    same_sums(fns[f"{c.symbol}_recorded"], here, there)

    mine, theirs = c.slopes(here), c.slopes(there)
    first = [g.copy() for g in mine]
    on_cpu(c, "adjoint", c.pack(here, mine), journal)
    program.run(f"{c.symbol}_adjoint", c.dim, c.pack(there, theirs), memory, down=True)
    assert not memory.errors
    same_sums(fns[f"{c.symbol}_adjoint"], [*here, *mine], [*there, *theirs])

    # A stack of one number: threads that need more are left to the form that saves less.
    again = [g.copy() for g in first]
    memory.stack_bytes = 8
    program.run(f"{c.symbol}_adjoint", c.dim, c.pack(there, again), memory, down=True)
    assert set(memory.ended) <= {0, STACK_LIMIT}
    if errors := memory.errors:
        assert errors == {STACK_LIMIT}
        if (memory.ended == STACK_LIMIT).all():
            same(first, again)  # abandoned before they had an effect
        memory.stack_bytes = memory.stack.shape[1] * 8
        program.run(f"{c.symbol}_checkpointed", c.dim, c.pack(there, again), memory, down=True,
                    again=STACK_LIMIT)  # fmt: skip
        assert not memory.errors and not memory.ended.any()
    for a, b in zip(mine, again, strict=True):
        np.testing.assert_allclose(a, b, rtol=64 * np.finfo(a.dtype).eps, atol=1e-6)

    here, there, theirs = c.values("x"), c.values("x"), [g.copy() for g in mine]
    on_cpu(c, "tangent", c.pack(here, mine))
    program.run(f"{c.symbol}_tangent", c.dim, c.pack(there, theirs), memory)
    same_sums(fns[f"{c.symbol}_tangent"], [*here, *mine], [*there, *theirs])


@pytest.mark.parametrize("name", cases(SHARED))
def test_any_grid_of_blocks_runs_all_threads(name: str, prepared: Any) -> None:
    """Two CUDA threads run all those of a launch, in an order of their own."""
    c, program = prepared(name)
    made = []
    for blocks in (0, 1):
        given = c.values("y")
        slopes, memory = c.slopes(given), Memory(c.threads)
        program.run(f"{c.symbol}_tangent", c.dim, c.pack(given, slopes), memory, blocks=blocks)
        assert not memory.errors
        made.append([*given, *slopes])
    same(*made)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_atomics_of_every_type(tmp_path: Path) -> None:
    """By the device's instructions, and by compare and swap for what it has none for."""
    cases = [c for c in BUILTINS if c.name.startswith("atomic_")]
    assert len({c.dtype for c in cases}) == 22
    functions = [(f"k{i}", lower_kernel(c.kernel.func)) for i, c in enumerate(cases)]
    program = Program(functions, tmp_path)
    for (symbol, _), c in zip(functions, cases, strict=True):
        arrays = [a.copy() for a in c.arrays]
        program.run(symbol, (c.dim,), block(arrays), Memory(c.dim))
        want = c.model(*(a.copy() for a in c.arrays))
        for got, w in zip(arrays, want, strict=True):
            np.testing.assert_array_equal(got, w.astype(c.scalar.numpy), err_msg=str(c))


@wp.kernel
def keeps_least(values: wp.array(dtype=wp.float32), least: wp.array(dtype=wp.float32)):
    wp.atomic_min(least, 0, values[wp.tid()])
    wp.atomic_max(least, 1, values[wp.tid()])


@pytest.mark.parametrize(
    ("values", "start", "want"),
    [
        ([0.0, -0.0], [-0.0, -0.0], [-0.0, 0.0]),  # whichever zero comes first
        ([-0.0, 0.0], [0.0, 0.0], [-0.0, 0.0]),
        ([np.nan, 2.0, 1.0, np.nan], [np.nan, np.nan], [1.0, 2.0]),  # NaN counts as missing
        ([np.nan], [5.0, 5.0], [5.0, 5.0]),
        ([np.inf, -np.inf], [0.0, 0.0], [-np.inf, np.inf]),
    ],
)
def test_extrema_of_floats(values: Any, start: Any, want: Any, tmp_path: Path) -> None:
    x, y = np.array(values, np.float32), np.array(start, np.float32)
    program = Program([("only", lower_kernel(keeps_least.func))], tmp_path)
    program.run("only", x.shape, block([x, y]), Memory(len(x)))
    assert y.tobytes() == np.array(want, np.float32).tobytes()


@wp.kernel
def says(x: wp.array(dtype=wp.float64)):
    i = wp.tid()
    if x[i] > wp.float64(1.0):  # values of whole slots: what fills up others is anything
        print(x[i])
        wp.printf("%d and %d\\n", wp.int64(i), wp.int64(i + 1))


def test_messages_are_the_same_words(tmp_path: Path) -> None:
    x = np.array([0.5, 1.5, 2.5, 0.0, 3.5], np.float64)
    v = Variants(lower_kernel(says.func))
    outcome = CPU.run(v.entry(CPU, "forward"), x.shape, block([x]), FREE)
    memory = Memory(len(x))
    Program([("only", v.ir)], tmp_path).run("only", x.shape, block([x]), memory)
    said = memory.output[: int(memory.bits[1])]
    assert outcome.output and said[:, 1].tobytes() == outcome.output
    assert list(dict.fromkeys(said[:, 0].tolist())) == [1, 2, 4]


def test_a_thread_whose_message_finds_no_room_is_abandoned(tmp_path: Path) -> None:
    x = np.array([0.5, 1.5, 0.5], np.float64)
    memory = Memory(3, room=1)
    Program([("only", Variants(lower_kernel(says.func)).ir)], tmp_path).run(
        "only", x.shape, block([x]), memory
    )
    assert memory.ended.tolist() == [0, NO_MEMORY, 0] and memory.bits[1] == 2
    assert memory.errors == {NO_MEMORY}
