"""The driver: forms, parts of a grid, journals and their limits, messages, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import engine as wp
from engine.compile.forms import Form, Names
from engine.compile.pipeline import NONE, Variants
from engine.diagnostics import LaunchError
from engine.runtime.device import HOST
from engine.runtime.execute import Executable, Execution
from engine.runtime.launch_errors import KernelStopped
from engine.runtime.plan_parts import Param

F = wp.array(dtype=float)
WRT = frozenset({"x", "y"})


@wp.kernel
def scale(x: F, y: F):
    i = wp.tid()
    y[i] = x[i] * y[i] * y[i]


@wp.kernel
def talks(x: F):
    i = wp.tid()
    print(x[i])
    wp.expect_eq(x[i], 0.0)


@wp.kernel
def loops(x: F, y: F):
    i = wp.tid()
    a = x[i]
    for _ in range(5000):
        a = wp.sin(a) + x[i]
    y[i] = a


def packed(kernel: Any, *arrays: Any) -> bytes:
    params = [*kernel.plan.params]
    params += [params[0]] * (len(arrays) - len(params))
    return b"".join(map(Param.packed, params, arrays))


def run(
    variants: Variants, form: Form, dim: tuple[int, ...], args: bytes, wrt: Names = NONE,
    journaled: Names = NONE, **how: Any,
) -> Execution:  # fmt: skip
    return Executable(HOST.backend, variants, form, wrt, journaled).execute(dim, args, **how)


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def test_a_part_of_the_grid() -> None:
    x, y = floats(1, 2, 3, 4), floats(1, 1, 1, 1)
    run(scale.plan.variants, "forward", (4,), packed(scale, x, y), threads=(1, 3))
    assert y.tolist() == [1, 2, 3, 1]


def test_no_threads() -> None:
    called: list[Any] = []
    for form in ("forward", "recorded", "adjoint"):
        done = run(scale.plan.variants, form, (3, 0), b"", wrt=WRT, done=called.append)
        assert done == Execution()
    assert called == [None] * 3


def test_a_journal_belongs_to_the_adjoint_of_its_threads() -> None:
    v = scale.plan.variants
    journaled = v.journaled()
    assert v.needs_journal(WRT, journaled)
    grads = []
    for threads in (None, (0, 2), (2, 4)):
        x, y = floats(1, 2, 3, 4), floats(5, 6, 7, 8)
        more = {"wrt": WRT, "journaled": journaled, "threads": threads}
        args = packed(scale, x, y)
        journal = run(v, "recorded", (4,), args, **more).journal
        assert journal is not None and journal.nbytes == journal.words().nbytes > 0
        gx, gy = floats(0, 0, 0, 0), floats(1, 1, 1, 1)
        for _ in range(2):  # it can be read again
            gx[:], gy[:] = 0, 1
            run(v, "adjoint", (4,), args + packed(scale, gx, gy), journal=journal, **more)
        grads.append((gx, gy))
    assert grads[0][0].tolist() == [25, 36, 49, 64]
    assert (grads[1][0] + grads[2][0]).tolist() == grads[0][0].tolist()
    assert grads[0][1].tolist() == [10, 24, 42, 64]


def test_an_adjoint_without_its_journal_is_stopped() -> None:
    v = scale.plan.variants
    arrays = [floats(1, 2), floats(3, 4), floats(0, 0), floats(1, 1)]
    with pytest.raises(KernelStopped, match="E401"):
        run(v, "adjoint", (2,), packed(scale, *arrays), wrt=WRT, journaled=v.journaled())


def test_journals_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    v = scale.plan.variants
    given: Any = {"wrt": WRT, "journaled": v.journaled()}
    n = 2000
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    args = packed(scale, x, y)
    with pytest.raises(KernelStopped, match="E209") as stopped:
        run(v, "recorded", (n,), args, journal_limit=5000, **given)
    assert "exceed the limit" in stopped.value.reason and "'scale'" not in stopped.value.reason
    monkeypatch.setattr(wp.config, "journal_limit_bytes", 5000)
    with pytest.raises(LaunchError, match="journal_limit_bytes"):
        run(v, "recorded", (n,), args, **given)
    assert run(v, "recorded", (n,), args, journal_limit=0, **given).journal is not None


def test_recorded_where_no_journal_is_needed_is_forward() -> None:
    v = loops.plan.variants
    assert not v.needs_journal(WRT, v.journaled())
    x, y = floats(0.5), floats(0.0)
    assert run(v, "recorded", (1,), packed(loops, x, y), wrt=WRT) == Execution()
    assert y[0] != 0


def test_the_spare_adjoint_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    v = loops.plan.variants
    found = []
    for limit in (0, 40_000):
        monkeypatch.setattr(wp.config, "stack_limit_bytes", limit)
        x, y, gx, gy = floats(0.5, 0.9), floats(0, 0), floats(0, 0), floats(1, 2)
        done = run(v, "adjoint", (2,), packed(loops, x, y, gx, gy), wrt=WRT)
        found.append((gx.tolist(), done.stack_bytes))
    assert found[0][0] == found[1][0] and np.any(found[0][0])
    assert found[0][1] > found[1][1] > 0


def test_messages_are_printed_or_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    x = floats(0, 1.5)
    args = packed(talks, x)
    seen: list[Any] = []
    with pytest.raises(LaunchError, match="E210"):
        run(talks.plan.variants, "forward", (2,), args, done=seen.append)
    assert "1.5" in capsys.readouterr().out and seen == [None]
    run(talks.plan.variants, "forward", (2,), args, drop_output=True)
    assert capsys.readouterr().out == ""


def test_an_executable_does_the_same() -> None:
    v = scale.plan.variants
    journals: list[Any] = []
    x, y = floats(1, 2), floats(3, 4)
    Executable(HOST.backend, v, "recorded", WRT, v.journaled()).execute(
        (2,), packed(scale, x, y), journals.append
    )
    assert y.tolist() == [9, 32] and journals[0].nbytes > 0
    Executable(HOST.backend, v, "forward").execute((2,), packed(scale, x, y))
    assert y.tolist() == [81, 2048]


def test_accesses_are_words() -> None:
    v = loops.plan.variants
    x, y = floats(1, 2), floats(0, 0)
    journal = run(v, "accesses", (2,), packed(loops, x, y)).journal
    assert journal is not None and np.count_nonzero(journal.words() >= 0) == 2  # an end a thread


# ---- the argument block


@wp.kernel
def takes(
    a: F, s: float, v: wp.vec3, m: wp.mat22d, k: wp.int8, b: bool, none: wp.array2d(dtype=int)
):
    a[0] = s


@pytest.mark.host("memory of the host")
def test_arguments_are_packed_as_a_launch_packs_them() -> None:
    plan = takes.plan
    a = wp.array([1.0, 2.0], dtype=float)
    values = [a, 0.1, wp.vec3(1.0, 2.0, 3.0), wp.mat22d(1.0, 2.0, 3.0, 4.0), -3, True, None]
    _, blob = plan.bind(values, (0,))
    view = a.numpy()
    assert plan.packed([view, *values[1:]]) == blob
    plain = [np.float32(0.1), np.arange(1, 4), [[1, 2], [3, 4]], np.int8(-3), np.True_]
    assert plan.packed([view, *plain, None]) == blob
