"""The stack and the journal: what adjoint code saves and takes back."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.runner import new_launch, release
from engine.ir import interp
from engine.ir.builder import Builder, const
from engine.ir.nodes import (
    Call,
    For,
    Function,
    JournalRead,
    JournalWrite,
    Pop,
    Push,
    Return,
    Store,
    Var,
)
from engine.lang.types import BOOL, FLOAT32, INT64, ArrayType, VectorType
from tests.unit.codegen.native_ir import F1, V3, f32, function, i32, kernel, tid


def test_stack_gives_back_in_reverse(same: Any) -> None:
    """Scalars, vectors and booleans of one loop, taken back by another; 1000 turns grow it."""
    out = Var("out", ArrayType(V3, 1))
    flags = Var("flags", ArrayType(BOOL, 1))

    def build(b: Builder) -> None:
        i = tid(b)
        up = b.child()
        v = up.temp(i.type, "v")
        value = up.op("cast", up.op("add", v, i), result=FLOAT32)
        up.add(Push(0, value))
        up.add(Push(1, up.op("construct", value, f32(1), value, result=V3)))
        up.add(Push(2, up.op("eq", up.op("mod", v, i32(3)), i32(0))))
        b.add(For(v, i32(0), i32(1000), i32(1), up.block()))
        down = b.child()
        w = down.temp(i.type, "w")
        flag, vec, scalar = down.temp(BOOL), down.temp(V3), down.variable(FLOAT32, "s")
        down.stmts += [Pop(flag, 2), Pop(vec, 1), Pop(scalar, 0)]
        down.add(Store(flags, (w,), flag))
        down.add(Store(out, (w,), down.op("scale", vec, scalar)))
        b.add(For(w, i32(999), i32(-1), i32(-1), down.block()))

    args = [np.zeros((1000, 3), np.float32), np.zeros(1000, np.bool_)]
    same(kernel([out, flags], build), args, 3)


def test_stack_in_functions(same: Any) -> None:
    x, out = Var("x", FLOAT32), Var("out", F1)

    def keep(b: Builder) -> None:
        b.add(Push(0, x))
        b.add(Return((b.op("mul", x, x),)))

    def take(b: Builder) -> None:
        was = b.temp(FLOAT32)
        b.add(Pop(was, 0))
        b.add(Return((was,)))

    f_keep, f_take = function("keep", [x], [FLOAT32], keep), function("take", [], [FLOAT32], take)

    def build(b: Builder) -> None:
        i = tid(b)
        y, was = b.temp(FLOAT32), b.temp(FLOAT32)
        b.add(Call((y,), f_keep, (b.op("cast", i, result=FLOAT32),)))
        b.add(Call((was,), f_take, ()))
        b.add(Store(out, (i,), b.op("sub", y, was)))

    same(kernel([out], build), [np.zeros(5, np.float32)], 5)


def journal_pair() -> tuple[Function, Function]:
    """A kernel that journals one or two values a thread, and one that reads them back."""
    x, out = Var("x", F1), Var("out", F1)
    v2 = VectorType(FLOAT32, 3)

    def write(b: Builder) -> None:
        i = tid(b)
        value = b.load(x, [i], [], FLOAT32)
        b.add(JournalWrite(value, 0))
        b.add(JournalWrite(b.op("fill", b.op("mul", value, f32(2)), result=v2), 1))

    def read(b: Builder) -> None:
        i = tid(b)
        first, second = b.temp(FLOAT32), b.temp(v2)
        b.add(JournalRead(first, const(0, INT64), 0))
        b.add(JournalRead(second, const(1, INT64), 1))
        both = b.op("add", first, b.op("extract", second, i32(2)))
        b.add(Store(out, (i,), both))

    # Adjoints, which have gradients among their parameters, run their threads backwards.
    return kernel([x], write), replace(kernel([out], read), adjoints=(("x", "out"),))


def test_journal_passes_between_launches(call: Any) -> None:
    writes, reads = journal_pair()
    first, second = compile_functions([writes, reads])
    x = np.arange(5000, dtype=np.float32)
    out, expected = np.zeros_like(x), np.zeros_like(x)
    interp.run(reads, [expected], len(x), journal=interp.run(writes, [x], len(x)))
    launch = new_launch((len(x),))
    call(first, writes, [x], launch)
    assert launch.journal.size == 5000 * (24 + 8)
    call(second, reads, [out], launch)
    assert launch.error == 0
    np.testing.assert_array_equal(out, expected)
    release(launch)
    assert (launch.journal.data, launch.journal.size, launch.journal.cap) == (None, 0, 0)
    release(launch)


def test_reading_past_the_journal_is_an_error(call: Any) -> None:
    _, reads = journal_pair()
    (entry,) = compile_functions([reads])
    launch = new_launch((4,))
    call(entry, reads, [np.zeros(4, np.float32)], launch)
    assert launch.error == 2


def test_a_launch_too_large_for_its_index_is_an_error(call: Any) -> None:
    out = Var("out", F1)
    one = kernel([out], lambda b: b.add(Store(out, (tid(b),), f32(1))))
    two = kernel([out], lambda b: b.add(Store(out, (tid(b, 1, 2),), f32(1))))
    three = kernel([out], lambda b: b.add(Store(out, (i32(0),), f32(1))))
    entries = compile_functions([one, two, three])
    for fn, entry, dim, error in [
        (one, entries[0], (2**31,), 3),
        (two, entries[1], (1, 2**31), 3),
        (two, entries[1], (2**31, 1), 3),
    ]:
        launch = new_launch(dim)
        out_array = np.zeros(1, np.float32)
        call(entry, fn, [out_array], launch)
        assert launch.error == error
        assert out_array[0] == 0


OUT_OF_MEMORY = """
import resource, sys
import numpy as np
from engine.compile.cpu.compiler import compile_functions
from engine.compile.cpu.runner import new_launch, release
from engine.ir.nodes import Push, Store, Var
from tests.unit.codegen.conftest import call
from tests.unit.codegen.native_ir import F1, f32, function, i32, kernel, tid
from engine.ir.nodes import Call, Const, For, While
from engine.lang.types import BOOL

out = Var("out", F1)
inner = function("fill", [], [], lambda b: b.add(While((), Const(True, BOOL), (Push(0, f32(1)),))))

def build(b):
    b.add(Store(out, (tid(b),), f32(1)))
    b.add(Call((), inner, ()))
    b.add(Store(out, (tid(b),), f32(2)))

fn = kernel([out], build)
(entry,) = compile_functions([fn])
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (256 << 20),) * 2)
a = np.zeros(3, np.float32)
launch = new_launch((3,))
call(entry, fn, [a], launch)
assert launch.error == 1, launch.error
assert a.tolist() == [1, 0, 0], a
release(launch)
print("survived")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_running_out_of_memory_ends_the_launch(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OUT_OF_MEMORY], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "survived", done.stderr


def test_structures_are_those_of_c() -> None:
    launch = new_launch((2, 3, 4))
    assert ctypes.sizeof(launch) == 23 * 8
    assert list(launch.dim) == [2, 3, 4, 1]
    assert (launch.ndim, launch.begin, launch.end, launch.error) == (3, 0, 24, 0)
    assert launch.free == 0
