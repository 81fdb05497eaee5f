"""Overwritten inputs of launches, as a program's own backward pass finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import engine as wp
from engine import config
from tests.unit.autograd.watch.programs import (
    Body,
    Cell,
    add,
    body_force,
    facts,
    floats,
    gather,
    grid,
    ones,
    overwrites,
    pack,
    quiet,
    said,
    square,
    square16,
    square64,
    square_in_place,
    times,
    total,
    triple,
    twice,
    unpack,
    watched,
    zeros,
)


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    yield
    config.overwrites = "restore"


def after_square(then: Callable[[Any], Any], off: bool = False) -> Callable[[], None]:
    """y = x * x on a tape, then something to x, on the tape or off it."""

    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            if not off:
                then(x)
        if off:
            then(x)
        with quiet():
            tape.backward(grads=ones(y))

    return program


def through_a_view(x: Any) -> None:
    x.numpy()[2] = 9.0


def of_a_kernel(x: Any) -> None:
    wp.launch(twice, 3, [floats(5, 6, 7)], [x])


# What it does, its name, the elements and how many, whether it is a launch.
WRITES: list[tuple[Callable[[Any], Any], str, int, int, int]] = [
    (lambda x: x.fill_(9.0), "fill_", 0, 2, 3),
    (lambda x: x.zero_(), "zero_", 0, 2, 3),
    (lambda x: x.assign([1.0, 5.0, 3.0]), "copy", 1, 1, 1),  # equal numbers are as they were
    (lambda x: wp.copy(x, floats(7, 8, 9)), "copy", 0, 2, 3),
    (lambda x: x[1:].fill_(0.0), "fill_", 1, 2, 2),
    (lambda x: x[::2].zero_(), "zero_", 0, 2, 2),
    (lambda x: wp.copy(x, floats(4), dest_offset=1, count=1), "copy", 1, 1, 1),
    (of_a_kernel, "twice", 0, 2, 3),
]


@pytest.mark.parametrize(("then", "name", "first", "last", "count"), WRITES)
@pytest.mark.parametrize(
    ("mode", "kind"), [("restore", "restored"), ("warn", "restored"), ("present", "wrong")]
)
def test_a_write_of_the_tape(
    then: Any, name: str, first: int, last: int, count: int, mode: Any, kind: str
) -> None:
    config.overwrites = mode
    (f,) = overwrites(facts(after_square(then)))
    assert (f.kind, f.launch, f.kernel, f.argument, f.variable) == (kind, 0, "square", "x", "x")
    assert said(f.site) == "wp.launch(square, 3, [x], [y])"
    assert (f.by.name, f.by.launch) == (name, 1 if name == "twice" else -1)
    assert f.gradients == ("x",) and f.passed == ("x",) and f.launches == 1
    assert (f.first, f.last, f.count) == ((first,), (last,), count)
    assert (f.nbytes >= 4 * count) if kind == "restored" else f.nbytes == 0


def test_error_refuses_before_anything_is_found() -> None:
    config.overwrites = "error"
    with watched() as found, pytest.raises(wp.TapeError, match="E408"):
        after_square(lambda x: x.zero_())()
    assert found == []


@pytest.mark.parametrize("mode", ["restore", "warn", "error", "present"])
@pytest.mark.parametrize(
    "then",
    [lambda x: x.fill_(9.0), lambda x: x.assign([0.0, 0.0, 0.0]), of_a_kernel, through_a_view],
)
@pytest.mark.host("arrays of NumPy that are views", only=("through_a_view",))
def test_a_write_after_the_tape(then: Any, mode: Any) -> None:
    config.overwrites = mode
    (f,) = overwrites(facts(after_square(then, off=True)))
    assert (f.kind, f.launch, f.gradients, f.nbytes) == ("outside", 0, ("x",), 0)
    assert (f.by.name, f.by.launch) == ("twice" if then is of_a_kernel else "", -1)
    if then is through_a_view:
        assert f.by.site is None and (f.first, f.last, f.count) == ((2,), (2,), 1)
    else:
        assert f.by.site is not None and f.by.site.file == __file__ and f.count == 3


@pytest.mark.host("arrays of NumPy that are views")
def test_numpy_views_taken_before_and_after_recording() -> None:
    for when in ("before", "after", "wrapped"):

        def program() -> None:
            held = np.array([1, 2, 3], np.float32)
            x, y = wp.array(held, dtype=float, copy=when != "wrapped", requires_grad=True), zeros()
            view = x.numpy() if when == "before" else held
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            if when == "after":
                view = x.numpy()
            view[1] = 7.0
            del view
            tape.backward(grads=ones(y))
            assert x.grad.list() == [2, 14, 6]

        (f,) = overwrites(facts(program))
        assert (f.kind, f.first, f.count, f.by.site) == ("outside", (1,), 1, None), when


def test_what_is_put_back_before_the_pass_was_never_lost() -> None:
    def then(x: Any) -> None:
        x.fill_(9.0)
        x.assign([1.0, 2.0, 3.0])

    assert facts(after_square(then, off=True)) == []
    assert facts(after_square(lambda x: x.numpy(), off=True)) == []


def test_leaves_that_an_optimizer_moves_after_the_pass() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        for _ in range(3):
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            tape.backward(grads=ones(y))
            x.assign(x.numpy() - 0.1 * x.grad.numpy())
            tape.zero()

    assert facts(program) == []


def test_the_elements_that_another_view_overwrote() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3, 4, 5, 6), zeros(2)
        with wp.Tape() as tape:
            wp.launch(square, 2, [x[1:3]], [y])
            x[2:5].zero_()
            x[5:].zero_()  # nothing has read it
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert (f.variable, f.first, f.last, f.count) == ("x[1:3]", (1,), (1,), 1)


def test_rows_of_a_matrix() -> None:
    def program() -> None:
        data = np.arange(12.0).reshape(3, 4) + 1
        x = wp.array(data, dtype=float, requires_grad=True)
        y = wp.zeros((3, 4), dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(grid, (3, 2), [x[:, 1:3]], [y[:, 1:3]])
            x[1].fill_(0.0)
        tape.backward(grads=ones(y))
        expected = np.zeros((3, 4))
        expected[:, 1:3] = 2 * data[:, 1:3]
        np.testing.assert_array_equal(x.grad.numpy(), expected)

    (f,) = overwrites(facts(program))
    assert (f.variable, f.first, f.last, f.count) == ("x[:, 1:3]", (1, 0), (1, 1), 2)


@pytest.mark.parametrize(
    ("dtype", "kernel", "nbytes"), [(wp.float16, square16, 2), (wp.float64, square64, 8)]
)
def test_other_floats(dtype: Any, kernel: Any, nbytes: int) -> None:
    def program() -> None:
        x = wp.array([1, 2, 3], dtype=dtype, requires_grad=True)
        y = wp.zeros(3, dtype=dtype, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(kernel, 3, [x], [y])
            x[1:2].fill_(0.0)
        tape.backward(grads={y: np.ones(3, y.numpy().dtype)})

    (f,) = overwrites(facts(program))
    assert (f.first, f.count, f.nbytes) == ((1,), 1, nbytes)


def test_a_struct_member() -> None:
    def program() -> None:
        b, y = Body(), zeros()
        b.x, b.v, b.scale = floats(1, 2, 3), floats(4, 5, 6), 2.0
        with wp.Tape() as tape:
            wp.launch(body_force, 3, [b], [y])
            b.v[1:].fill_(0.0)
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert (f.argument, f.variable, f.first, f.last) == ("b.v", "b.v", (1,), (2,))
    assert f.gradients == ("b.x",)


def test_an_array_of_structs() -> None:
    def program() -> None:
        x, c, y = floats(1, 2, 3), wp.zeros(3, dtype=Cell, requires_grad=True), zeros()
        with wp.Tape() as tape:
            wp.launch(pack, 3, [x, c])
            wp.launch(unpack, 3, [c, y])
            wp.launch(pack, 3, [floats(9, 9, 9), c])
        tape.backward(grads=ones(y))
        assert x.grad.list() == [4, 8, 12]

    found = overwrites(facts(program))
    assert [(f.launch, f.argument, f.by.launch, f.gradients) for f in found] == [
        (1, "c.a", 2, ("c.b",)), (1, "c.b", 2, ("c.a",)),
    ]  # fmt: skip


def test_indices_that_are_overwritten() -> None:
    for off in (False, True):

        def program() -> None:
            x, y, at = floats(1, 2, 3), zeros(), wp.array([0, 1, 1], dtype=int)
            with wp.Tape() as tape:
                wp.launch(gather, 3, [x, at], [y])
                if not off:
                    at.assign([0, 2, 2])
            if off:
                at.assign([0, 2, 2])
            tape.backward(grads=ones(y))
            assert x.grad.list() == ([1, 0, 2] if off else [1, 2, 0])

        (f,) = overwrites(facts(program))
        assert (f.kind, f.argument, f.gradients) == (
            "outside" if off else "restored", "at", ("x",),
        )  # fmt: skip
        assert f.last == (2,) and f.by.site is not None


def test_a_launch_that_overwrites_what_it_reads() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square_in_place, 3, [x])
            wp.launch(square_in_place, 3, [x])
            wp.launch(twice, 3, [x], [y])
        tape.backward(grads=ones(y))
        assert x.grad.list() == [8, 64, 216]

    found = overwrites(facts(program))
    (within,) = (f for f in found if f.kind == "within")
    assert (within.kernel, within.argument, within.launches) == ("square_in_place", "x", 2)
    assert within.nbytes > 0 and within.gradients == ("x",)


def test_a_loop_of_launches_is_one_fact() -> None:
    def program() -> None:
        x, force, e = floats(0.9, 0.8, 1.1), zeros(), zeros(1)
        with wp.Tape() as tape:
            for _ in range(4):
                following = zeros()
                wp.launch(square, 3, [x], [force])
                wp.launch(times, 3, [x, force], [following])
                x = following
            wp.launch(total, 3, [x], [e])
        tape.backward(e)

    (f,) = overwrites(facts(program))
    assert (f.variable, f.argument, f.by.name) == ("force", "w", "square")
    assert f.launches == 3 and f.by.launch == f.launch + 1


def test_values_that_matter_only_together() -> None:
    """By x * v * w, what x gets is gone only once v and w both are zero."""

    def program(both: bool) -> Callable[[], None]:
        def run() -> None:
            config.overwrites = "present"
            x, v, w, y = floats(1, 2), floats(3, 4), floats(5, 6), zeros(2)
            with wp.Tape() as tape:
                wp.launch(triple, 2, [x, v, w], [y])
                v.zero_()
                if both:
                    w.zero_()
            tape.backward(grads=ones(y))
            assert x.grad.list() == [0, 0]

        return run

    assert [(f.argument, f.gradients) for f in overwrites(facts(program(False)))] == [
        ("v", ("x", "w"))
    ]
    assert {f.argument: f.gradients for f in overwrites(facts(program(True)))} == {
        "v": ("x", "w"), "w": ("x", "v"),
    }  # fmt: skip


def test_part_is_restored_and_part_was_written_outside() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            x[:1].zero_()
        x[1:2].zero_()
        tape.backward(grads=ones(y))
        assert x.grad.list() == [2, 0, 6]

    found = {f.kind: f for f in overwrites(facts(program))}
    assert {k: (f.first, f.count) for k, f in found.items()} == {
        "restored": ((0,), 1), "outside": ((1,), 1),
    }  # fmt: skip


def test_linear_reads_are_notes() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(twice, 3, [x], [y])
            x.zero_()
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program), notes=True)
    assert (f.kind, f.kernel, f.by.name, f.gradients) == ("unneeded", "twice", "zero_", ())


def test_what_gets_no_gradient_is_a_note() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])  # nothing comes back from y
            wp.launch(twice, 3, [x], [z])
            x.zero_()
        tape.backward(grads=ones(z))

    kinds = {f.kernel: f.kind for f in overwrites(facts(program), notes=True)}
    assert kinds == {"square": "unneeded", "twice": "unneeded"}


def test_a_later_pass_may_need_what_the_first_did_not() -> None:
    def program() -> None:
        config.overwrites = "present"
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(twice, 3, [x], [z])
            x.zero_()
        tape.backward(grads=ones(z))
        tape.zero()
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert (f.kind, f.kernel) == ("wrong", "square")


def test_records_that_a_tape_gets_after_its_first_pass() -> None:
    def program() -> None:
        config.overwrites = "present"
        x, y, z = floats(1, 2, 3), zeros(), zeros()
        tape = wp.Tape()
        with tape:
            wp.launch(twice, 3, [x], [y])
        tape.backward(grads=ones(y))
        tape.zero()
        with tape:
            wp.launch(square, 3, [y], [z])
            y.zero_()
        tape.backward(grads=ones(z))

    found = facts(program)
    (f,) = overwrites(found)
    assert (f.kind, f.launch, f.variable, f.by.name) == ("wrong", 1, "y", "zero_")
    assert found == [f]  # and it is said once


def test_accumulation_is_no_overwrite() -> None:
    def program() -> None:
        x, y = floats(1, 2, 3), zeros()
        with wp.Tape() as tape:
            wp.launch(add, 3, [x], [y])
            wp.launch(add, 3, [x], [y])
            wp.launch(total, 3, [x], [y])
        tape.backward(grads=ones(y))
        assert x.grad.list() == [3, 3, 3]

    assert facts(program) == []


def test_empty_arrays() -> None:
    def program() -> None:
        x, y = zeros(0), zeros(0)
        with wp.Tape() as tape:
            wp.launch(square, 0, [x], [y])
            x.zero_()
        for _ in range(2):
            tape.backward(grads=ones(y))

    assert facts(program) == []


def test_writes_that_are_made_on_another_tape_have_a_place() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), floats(5, 6, 7)
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
        with wp.Tape():
            wp.launch(twice, 3, [y], [wp.zeros_like(y)])
            wp.launch(twice, 3, [z], [x])  # the other tape
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert f.kind == "outside" and said(f.by.site).endswith("# the other tape")
    assert (f.by.name, f.by.launch, f.by.tape) == ("twice", 1, 1)


def test_values_whose_results_are_the_same_were_overwritten_all_the_same() -> None:
    """x * x of -x is what it was, and its gradient is not."""

    def program(again: bool) -> Callable[[], None]:
        def run() -> None:
            x, y, z = floats(1, 2, 3), zeros(), floats(-0.5, -1, -1.5)
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
            with wp.Tape():
                wp.launch(twice, 3, [z], [x])
            if again:
                wp.launch(square, 3, [x], [y])
            tape.backward(grads=ones(y))
            assert x.grad.list() == [-2, -4, -6]

        return run

    (f,) = overwrites(facts(program(again=False)))
    assert (f.kind, f.count, f.by.name, f.by.tape) == ("outside", 3, "twice", 1)
    assert facts(program(again=True)) == []


def test_a_launch_that_was_kept_off_the_tape() -> None:
    def program() -> None:
        x, y, z = floats(1, 2, 3), zeros(), floats(5, 6, 7)
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [y])
            wp.launch(twice, 3, [z], [x], record_tape=False)
        tape.backward(grads=ones(y))

    (f,) = overwrites(facts(program))
    assert f.kind == "outside" and "record_tape=False" in said(f.by.site)


def test_each_tape_has_its_own() -> None:
    with wp.capturing(watcher=wp.autograd.Witness()) as capture:
        for then in (lambda x: x.zero_(), lambda x: None, lambda x: x.fill_(4.0)):
            after_square(then)()
        tape = wp.Tape()
        for _ in range(2):
            x, y = floats(1, 2, 3), zeros()
            with tape:
                wp.launch(square, 3, [x], [y])
                x.zero_()
            tape.backward(grads=ones(y))
            tape.reset()
    by = [[f.by.name for f in t.facts] for t in capture.tapes]
    assert by == [["zero_"], [], ["fill_"], ["zero_"], ["zero_"]]
