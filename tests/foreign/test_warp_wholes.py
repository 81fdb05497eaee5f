"""Whole tapes of real Warp: arrays that are overwritten, paths that are cut, copies and views."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.autograd import TapeResult
from engine.foreign import watching

pytest.importorskip("warp", reason="warp-lang is not installed")

import warp as wp

from tests.foreign.warp_corpus import (
    Particle,
    added,
    dynamic_loop,
    energy,
    generic,
    of_a_mesh,
    of_a_mesh_in_a_loop,
    squared,
    summed,
)


def array(values: Any = (1.0, 2.0, 3.0), grad: bool = True, dtype: Any = float) -> Any:
    return wp.array(np.asarray(values), dtype=dtype, device="cpu", requires_grad=grad)


def zeros(n: int = 3, grad: bool = True) -> Any:
    return wp.zeros(n, dtype=float, device="cpu", requires_grad=grad)


def launch(kernel: Any, *args: Any, dim: int = 3) -> None:
    wp.launch(kernel, dim=dim, inputs=[*args], device="cpu")


def checked(program: Callable[[], None]) -> TapeResult:
    with watching() as watched:
        program()
    (found,) = watched.results()
    return found


def squares(x: Any, m: Any, loss: Any) -> None:
    launch(squared, x, m)
    launch(summed, m, loss)


def run(steps: Callable[[Any, Any, Any], None], m: Any = None, after: Any = None) -> TapeResult:
    def program() -> None:
        x, loss = array(), zeros(1)
        with wp.Tape() as tape:
            steps(x, zeros() if m is None else m, loss)
        if after is not None:
            after(x)
        tape.backward(loss)

    return checked(program)


def verdicts(found: TapeResult) -> set[str]:
    return {p.verdict for x in found.launches for p in x.pairs}


def test_a_right_tape_passes_as_a_whole() -> None:
    found = run(squares)
    assert verdicts(found) == {"pass"} and not found.facts and not found.unchecked
    assert found.whole is not None and found.whole.verdict == "pass"
    assert found.whole.rel_error < 1e-5


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("wrong", [None, 1, 33, 39])
def test_many_launches_are_left_to_their_tape(
    wrong: int | None, used: bool, shared: bool
) -> None:  # fmt: skip
    """The loop of one launch goes round twice, which Warp's adjoint has wrong.

    used: its result reaches the loss. shared: all launches read one array.
    """

    def program() -> None:
        x, loss = array(), zeros(1)
        with wp.Tape() as tape:
            for k in range(40):
                m = zeros()
                launch(dynamic_loop, x if shared else array(), 2 if k == wrong else 0, m)
                if used or k != wrong:
                    launch(summed, m, loss)
        tape.backward(loss)

    found = checked(program)
    loops = [x for x in found.launches if x.kernel == "dynamic_loop"]
    assert [x.index for x in found.launches] == sorted(x.index for x in found.launches)
    assert len(loops) == 40 and not found.unchecked
    failed = [k for k, x in enumerate(loops) if {p.verdict for p in x.pairs} != {"pass"}]
    left = [x for x in found.launches if any(p.by_whole for p in x.pairs)]
    if wrong is None:
        assert found.whole is not None and found.whole.verdict == "pass"
        assert not failed and len(left) == 2 * (40 - 24)
    else:
        assert failed == [wrong] and (not left or not used)


def test_an_array_without_a_gradient_cuts_the_path() -> None:
    found = run(squares, zeros(3, grad=False))
    assert found.whole is not None and found.whole.verdict == "fail"
    cause = found.whole.cause
    assert cause is not None and (cause.kind, cause.kernel) == ("no gradient", "squared")
    assert cause.argument == "y" and cause.launch == 0
    assert cause.site is not None and cause.site.file == __file__


def test_an_array_that_the_tape_overwrites() -> None:
    def steps(x: Any, m: Any, loss: Any) -> None:
        squares(x, m, loss)
        launch(squared, m, x)  # what the first launch has read
        launch(summed, x, loss)

    found = run(steps)
    assert verdicts(found) == {"pass"}
    (fact,) = found.facts
    assert (fact.kind, fact.launch, fact.kernel, fact.argument) == ("wrong", 0, "squared", "x")
    assert (fact.by.name, fact.by.launch, fact.count) == ("squared", 2, 2)  # 1 stays 1
    assert fact.gradients == ("x",) and found.whole is None


def test_an_array_that_a_copy_on_the_tape_overwrites() -> None:
    def steps(x: Any, m: Any, loss: Any) -> None:
        launch(squared, x, m)
        wp.copy(x, m)
        launch(summed, x, loss)

    (fact,) = run(steps).facts
    assert (fact.kind, fact.argument, fact.by.name) == ("wrong", "x", "copy")


def test_an_array_that_something_else_overwrites() -> None:
    found = run(squares, after=lambda x: x.fill_(7.0))
    (fact,) = found.facts
    assert (fact.kind, fact.argument, fact.by.name) == ("outside", "x", "fill_")
    assert fact.by.site is not None and fact.by.site.file == __file__


def test_the_same_numbers_once_more_are_no_fault() -> None:
    def twice(x: Any, m: Any, loss: Any) -> None:
        squares(x, m, loss)
        squares(x, m, loss)

    found = run(twice)
    assert not found.facts and verdicts(found) == {"pass"}
    assert found.whole is not None and found.whole.verdict == "pass"


def test_copies_pass_gradients_on() -> None:
    def steps(x: Any, m: Any, loss: Any) -> None:
        other = zeros()
        launch(squared, x, m)
        wp.copy(other, m)
        launch(summed, other, loss)

    found = run(steps)
    assert found.whole is not None and found.whole.verdict == "pass"


def test_arrays_made_on_the_way_are_no_fault() -> None:
    def steps(x: Any, m: Any, loss: Any) -> None:
        for _ in range(3):
            fresh = array([0.0, 0.0, 0.0])
            launch(added, x, x, fresh)
            x = fresh
        launch(summed, x, loss)

    found = run(steps)
    assert found.whole is not None and found.whole.verdict == "pass"


def test_a_cotangent_gives_an_array_a_gradient() -> None:
    def program() -> None:
        x, y = array(), zeros(3, grad=False)
        with wp.Tape() as tape:
            launch(squared, x, y)
        tape.backward(grads={y: array([1.0, 2.0, 3.0], grad=False)})

    found = checked(program)
    assert verdicts(found) == {"pass"}
    assert found.whole is not None and found.whole.verdict == "pass"


def test_rows_of_one_array() -> None:
    def program() -> None:
        big, out = array(np.arange(1.0, 13.0).reshape(4, 3)), zeros()
        with wp.Tape() as tape:
            launch(added, big[0], big[1], out)
            launch(added, big[0], big[1], big[2])
            launch(added, big[2], big[3], out)
        tape.backward(grads={out: array([1.0, 2.0, 3.0], grad=False)})

    found = checked(program)
    assert verdicts(found) == {"pass"}
    assert found.whole is not None and found.whole.verdict == "pass"


def test_structs_in_arrays_and_generic_kernels() -> None:
    def program() -> None:
        records = np.zeros(3, Particle.numpy_dtype())
        records["position"], records["mass"] = np.arange(9.0).reshape(3, 3), [1.0, 2.0, 3.0]
        p, e, d = array(records, dtype=Particle), zeros(), array([0.0] * 3, dtype=wp.float64)
        x = array(dtype=wp.float64)
        with wp.Tape() as tape:
            launch(energy, p, e)
            launch(generic, x, d)
        ones = [array([1.0] * 3, grad=False), array([1.0] * 3, grad=False, dtype=wp.float64)]
        tape.backward(grads={e: ones[0], d: ones[1]})

    found = checked(program)
    assert verdicts(found) == {"pass"}
    inputs = {p.input for x in found.launches for p in x.pairs}
    assert inputs == {"p.position", "p.mass", "x"}
    assert found.whole is not None and found.whole.verdict == "pass"


def with_a_mesh(*kernels: Any) -> Callable[[], None]:
    def program() -> None:
        corners = array([[-9.0, -9.0, 0.0], [9.0, -9.0, 0.0], [0.0, 9.0, 0.0]], dtype=wp.vec3)
        mesh = wp.Mesh(corners, wp.array([0, 1, 2], dtype=int, device="cpu"))
        x = array(np.random.default_rng(4).uniform(0.5, 2.0, (3, 3)), dtype=wp.vec3)
        with wp.Tape() as tape:
            for kernel in kernels:
                rounds = () if kernel is of_a_mesh else (3,)
                launch(kernel, mesh.id, x, *rounds, y := zeros())
        tape.backward(grads={y: array([1.0] * 3, grad=False)})

    return program


def test_what_the_engine_does_not_take_is_compared_with_warps_own_launches() -> None:
    found = checked(with_a_mesh(of_a_mesh))
    assert verdicts(found) == {"pass"}
    assert found.whole is not None and "mesh, grid" in found.whole.reason  # it is not replayed


def test_what_is_plainly_wrong_is_seen_there_too() -> None:
    right, wrong = checked(with_a_mesh(of_a_mesh, of_a_mesh_in_a_loop)).launches
    assert {p.verdict for p in right.pairs} == {"pass"}
    assert wrong.peer.wrong
    assert {(p.input, p.verdict) for p in wrong.pairs} == {("x", "fail"), ("y", "pass")}
    assert [r.kind for r in wrong.peer.reasons] == ["loop"]


def test_what_nothing_can_be_said_of_has_a_reason() -> None:
    def program() -> None:
        x, y = array(), zeros()
        with wp.Tape():
            launch(added, x[0:2], x[1:3], x[0:2], dim=2)
            launch(squared, x, y)

    found = checked(program)
    (left,) = found.unchecked
    assert "overlap in memory" in left.reason
    assert left.site is not None and left.site.file == __file__


def test_functions_on_a_tape_are_told_of() -> None:
    def program() -> None:
        x, y = array(), zeros()
        with wp.Tape() as tape:
            launch(squared, x, y)
            tape.record_func(lambda: None, arrays=[x, y])
        tape.backward(grads={y: array([1.0] * 3, grad=False)})

    found = checked(program)
    assert [u.what for u in found.unchecked] == ["a function recorded with Tape.record_func"]
    assert found.whole is not None and found.whole.verdict == "skipped"


def test_contents_beyond_the_limit_are_told_of() -> None:
    with watching(limit=8) as watched:
        x, y = array(), zeros()
        with wp.Tape():
            launch(squared, x, y)
    (found,) = watched.results()
    assert "snapshot_limit_bytes" in found.launches[0].skipped


def test_warp_is_as_it_was_afterwards() -> None:
    before = wp.launch, wp.copy, wp.Tape.backward, wp.array.zero_
    with watching() as watched:
        assert wp.launch is not before[0]
    assert (wp.launch, wp.copy, wp.Tape.backward, wp.array.zero_) == before
    assert watched.found == []


def test_gradients_are_those_without_a_watch() -> None:
    def gradient() -> Any:
        x, m, loss = array(), zeros(), zeros(1)
        with wp.Tape() as tape:
            squares(x, m, loss)
        tape.backward(loss)
        return x.grad.numpy().copy()

    plain = gradient()
    with watching():
        watched = gradient()
    assert np.array_equal(plain, watched)


WARP_PROGRAM = """
import warp as wp

@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]

@wp.kernel
def total(y: wp.array(dtype=float), loss: wp.array(dtype=float)):
    wp.atomic_add(loss, 0, y[wp.tid()])

x = wp.array([1.0, 2.0], dtype=float, requires_grad=True, device="cpu")
y = wp.zeros(2, dtype=float, requires_grad={grad}, device="cpu")
loss = wp.zeros(1, dtype=float, requires_grad=True, device="cpu")
with wp.Tape() as tape:
    wp.launch(square, dim=2, inputs=[x], outputs=[y], device="cpu")
    wp.launch(total, dim=2, inputs=[y], outputs=[loss], device="cpu")
tape.backward(loss)
"""


def test_help_names_nothing_that_warp_has_not(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WARP_PROGRAM.format(grad=False))
    done = subprocess.run(
        [sys.executable, "-m", "adtool", "check", "--format", "json", "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["severity"] == "error"]
    assert done.returncode == 1 and found["code"] == "G004"
    assert "requires_grad=True" in found["help"] and "engine" not in found["help"]
