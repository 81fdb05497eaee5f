"""Ways from inputs to the loss that no gradient takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import engine as wp
from engine.autograd import Broken
from tests.unit.autograd.watch.programs import (
    Body,
    add,
    body_force,
    branched,
    broken,
    counted,
    descend,
    facts,
    floats,
    floored,
    gather,
    ones,
    partly_floored,
    said,
    square,
    times,
    total,
    twice,
    zeros,
)


def between(middle: Callable[[Any], Any], on_tape: bool = True) -> Callable[[], None]:
    """y = x * x; `middle` makes z of it; loss = sum(z)."""

    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
            z = middle(y) if on_tape else None
        if not on_tape:
            z = middle(y)
        with tape:
            wp.launch(total, 3, [z], [loss])
        tape.backward(loss)

    return program


def to(z: Any, how: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def run(y: Any) -> Any:
        out = z()
        how(out, y)
        return out

    return run


def launched(kernel: Any) -> Callable[[Any], Any]:
    return to(zeros, lambda z, y: wp.launch(kernel, 3, [y], [z]))


def by_way_of_no_gradient(y: Any) -> Any:
    constant, z = zeros(grad=False), zeros()
    wp.copy(constant, y)  # here it ends
    wp.copy(z, constant)
    return z


def one(program: Callable[[], Any]) -> Broken:
    (f,) = facts(program)
    assert isinstance(f, Broken) and f.inputs == ("x",)
    return f


def test_a_launch_outside_of_the_block() -> None:
    f = one(between(launched(square), on_tape=False))
    assert (f.kind, f.name, f.partial) == ("launch", "square", False)
    assert "wp.launch(kernel, 3, [y], [z])" in said(f.site)


@pytest.mark.parametrize(
    ("middle", "on_tape", "kind", "text"),
    [(lambda y: wp.clone(y, requires_grad=False), True, "clone",
      "wp.clone(y, requires_grad=False)"),
     (lambda y: wp.clone(y, requires_grad=False), False, "clone",
      "wp.clone(y, requires_grad=False)"),
     (to(zeros, lambda z, y: wp.copy(z, y)), False, "copy", "wp.copy(z, y)"),
     (to(zeros, lambda z, y: z.assign(y)), False, "copy", "z.assign(y)"),
     pytest.param(
         to(zeros, lambda z, y: z.assign(y.numpy())), True, "copy", "z.assign(y.numpy())",
         marks=pytest.mark.host("copies through NumPy are not followed on GPUs")),
     (by_way_of_no_gradient, True, "copy", "wp.copy(constant, y)")],
)  # fmt: skip
def test_copies(middle: Any, on_tape: bool, kind: str, text: str) -> None:
    f = one(between(middle, on_tape))
    assert (f.kind, f.name, f.partial) == (kind, text, False)
    assert text in said(f.site)


@pytest.mark.parametrize(
    ("kernel", "operation", "line"), [(floored, "floor", "floor"), (counted, "cast", "int(x[i])")]
)
def test_operations_without_a_derivative(kernel: Any, operation: str, line: str) -> None:
    f = one(between(launched(kernel)))
    assert (f.kind, f.name, f.partial) == ("cast", operation, False)
    assert line in said(f.site)


@pytest.mark.parametrize(
    "middle",
    [lambda y: y, launched(square), launched(add), launched(partly_floored), launched(branched),
     lambda y: wp.clone(y), lambda y: wp.stop_gradient(y), lambda y: y.detach(),
     to(zeros, lambda z, y: wp.copy(z, y)), to(zeros, lambda z, y: z.assign(y)),
     lambda y: zeros()],
)  # fmt: skip
def test_ways_that_are_whole_or_meant(middle: Any) -> None:
    assert facts(between(middle)) == []


@pytest.mark.parametrize("clear", [lambda z: z.zero_(), lambda z: z.assign([1.0, 2.0, 3.0])])
@pytest.mark.parametrize("on_tape", [False, True])
def test_what_is_stored_over_afterwards_is_no_way(clear: Any, on_tape: bool) -> None:
    def middle(y: Any) -> Any:
        z = zeros(grad=on_tape)
        wp.launch(square, 3, [y], [z], record_tape=False)
        clear(z)
        return z

    assert facts(between(middle, on_tape)) == []


def test_what_only_a_log_reads() -> None:
    def middle(y: Any) -> Any:
        log, other = zeros(grad=False), zeros(grad=False)
        wp.copy(log, y)
        wp.launch(square, 3, [y], [other], record_tape=False)
        y.numpy()
        return y

    assert facts(between(middle)) == []


def test_part_of_the_gradient_is_missing() -> None:
    def program() -> None:
        x, y, z, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
        wp.launch(square, 3, [y], [z])
        with tape:
            wp.launch(total, 3, [z], [loss])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)

    f = one(program)
    assert (f.kind, f.partial) == ("launch", True)


def test_another_way_makes_a_cast_a_true_zero() -> None:
    def program() -> None:
        x, y, z, loss = floats(1.5, 2, 3), zeros(), zeros(), zeros(1)
        with wp.Tape() as tape:
            wp.launch(floored, 3, [x], [y])
            wp.launch(times, 3, [x, y], [z])
            wp.launch(total, 3, [z], [loss])
        tape.backward(loss)

    assert facts(program) == []


def test_indices_are_no_ways() -> None:
    def program() -> None:
        x, y, loss = floats(1, 2, 3), zeros(), zeros(1)
        at = wp.array([2, 1, 0], dtype=int)
        with wp.Tape() as tape:
            wp.launch(gather, 3, [x, at], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)

    assert facts(program) == []


def test_a_member_of_a_struct_that_was_cut_off() -> None:
    def program() -> None:
        x, squares, y, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)
        b = Body()
        b.v, b.scale = floats(4, 5, 6), 2.0
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [squares])
            b.x = wp.clone(squares, requires_grad=False)
            wp.launch(body_force, 3, [b], [y])
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)

    f = one(program)
    assert f.kind == "clone" and "b.x = wp.clone" in said(f.site)


def test_every_input_behind_a_cut_is_named() -> None:
    def program() -> None:
        x, w, y, loss = floats(1, 2, 3), floats(4, 5, 6), zeros(), zeros(1)
        with wp.Tape() as tape:
            wp.launch(times, 3, [x, w], [y])
            wp.launch(total, 3, [wp.clone(y, requires_grad=False)], [loss])
        tape.backward(loss)

    (f,) = broken(facts(program))
    assert f.inputs == ("w", "x")


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.host("copies through NumPy are not followed on GPUs")
def test_the_name_of_the_copy_is_not_that_of_what_it_depends_on(assigned: bool) -> None:
    def program() -> None:
        h, w, loss = floats(1, 2, 3), floats(4, 5, 6), zeros(1)
        with wp.Tape() as tape:
            o = zeros()
            wp.launch(times, 3, [h, w], [o])
            if assigned:
                h.assign(o.numpy())
            else:
                h = wp.array(o.numpy(), dtype=float, requires_grad=True)
            wp.launch(total, 3, [h], [loss])
        tape.backward(loss)

    (f,) = broken(facts(program))
    assert f.kind == "copy" and f.inputs == ("o", "w")


def test_what_an_optimizer_does_between_tapes() -> None:
    def program() -> None:
        x, y, loss = floats(1, 2, 3), zeros(), zeros(1)
        for _ in range(3):
            loss.zero_()
            with wp.Tape() as tape:
                wp.launch(square, 3, [x], [y])
                wp.launch(total, 3, [y], [loss])
            tape.backward(loss)
            wp.launch(descend, 3, [x, x.grad])
            tape.zero()

    assert facts(program) == []


@pytest.mark.parametrize("taped", [False, True])
def test_an_input_of_a_tape_that_is_gone_was_on_a_tape(taped: bool) -> None:
    """A launch off the tape makes what a tape reads; its input was on one, or on none, before."""

    def evaluate(x: Any) -> None:
        with wp.Tape():
            wp.launch(square, 3, [x], [zeros()])

    def program() -> None:
        x, y, loss = floats(1, 2, 3), zeros(), zeros(1)
        if taped:
            evaluate(x)
        wp.launch(square, 3, [x], [y])
        with wp.Tape() as tape:
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        x.grad.numpy()

    assert [f.kind for f in broken(facts(program))] == ([] if taped else ["launch"])


def test_a_tape_that_goes_on_from_what_another_left() -> None:
    def program() -> None:
        x, w, loss = floats(1, 2, 3), floats(1, 2, 3), zeros(1)
        for _ in range(3):
            loss.zero_()
            y = zeros()
            with wp.Tape() as tape:
                wp.launch(times, 3, [x, w], [y])
                wp.launch(total, 3, [y], [loss])
            tape.backward(loss)
            tape.zero()
            x = wp.clone(y)

    assert facts(program) == []


def test_launches_of_the_tape_that_run_again_off_it() -> None:
    def program() -> None:
        x, y, z, k = floats(1, 2, 3), zeros(), zeros(), zeros()

        def forward() -> None:
            wp.launch(square, 3, [x], [y])
            wp.copy(k, y)
            wp.launch(square, 3, [k], [z])

        with wp.Tape() as tape:
            forward()
        x.assign([4.0, 5.0, 6.0])
        forward()
        tape.backward(grads=ones(z))

    assert facts(program) == []


def test_scratch_memory_of_two_uses() -> None:
    """Written off the tape, then by a launch on it, whole."""

    def program() -> None:
        x, y, z, loss = floats(1, 2, 3), zeros(), zeros(), zeros(1)
        tape = wp.Tape()
        with tape:
            wp.launch(square, 3, [x], [y])
        wp.launch(square, 3, [y], [z])
        with tape:
            wp.launch(twice, 3, [x], [z])
            wp.launch(total, 3, [z], [loss])
        tape.backward(loss)

    assert facts(program) == []


@wp.kernel
def reciprocal(a: wp.array(dtype=float), b: wp.array(dtype=float)):
    i = wp.tid()
    b[i] = 1.0 / (a[i] + 2.0)


@wp.kernel
def with_more_than_it_reads(
    x: wp.array(dtype=float), unread: wp.array(dtype=float), y: wp.array(dtype=float)
):
    i = wp.tid()
    y[i] = x[i] * x[i]


@pytest.mark.parametrize("handed_on", [False, True])
def test_gradients_that_a_pass_makes_for_what_nothing_reads(handed_on: bool) -> None:
    """Nobody asked for them: that they are zero is no fault, as it is where somebody did."""

    def program() -> None:
        model, inverse = floats(1.5, 2.5, 3.5), zeros()
        wp.launch(reciprocal, 3, [model], [inverse])
        for _ in range(2):
            y = zeros()
            with wp.Tape() as tape:
                other = model if handed_on else zeros()
                wp.launch(with_more_than_it_reads, 3, [inverse, other], [y])
            tape.backward(grads=ones(y))
            if not handed_on:
                assert not model.grad.numpy().any()

    found = broken(facts(program))
    assert [(f.kind, f.name) for f in found[:1]] == (
        [] if handed_on else [("launch", "reciprocal")]
    )


def by_graph(capture: Callable[[Any, Any], Any], inside: bool = True) -> Callable[[], None]:
    """What `capture` makes of x in y is captured; the tape sums it up."""

    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        with wp.ScopedCapture() as captured:
            capture(x, y)
        if not inside:
            wp.capture_launch(captured.graph)
        tape = wp.Tape()
        with tape:
            if inside:
                wp.capture_launch(captured.graph)
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        assert x.grad.numpy().tolist() == [0.0, 0.0, 0.0]

    return program


@pytest.mark.parametrize(
    ("capture", "name", "inputs"),
    [
        (lambda x, y: wp.launch(square, 3, [x], [y]), "square", ("x",)),
        (lambda x, y: wp.copy(y, x), "", ()),  # where it is captured is not known
    ],
)
def test_a_graph_that_is_launched_in_the_block(capture: Any, name: str, inputs: Any) -> None:
    (f,) = facts(by_graph(capture))
    assert (f.kind, f.name, f.partial, f.inputs) == ("graph", name, False, inputs)
    assert "wp.capture_launch(captured.graph)" in said(f.site)


def test_a_graph_with_the_loss_and_all() -> None:
    x, loss = floats(1.5, 2.5, 3.5), zeros(1)
    with wp.ScopedCapture() as captured:
        wp.launch(total, 3, [x], [loss])

    def program() -> None:
        with wp.Tape() as tape:
            wp.capture_launch(captured.graph)
        tape.backward(loss)

    f = one(program)
    assert (f.kind, f.name) == ("graph", "total")
    assert x.grad.numpy().tolist() == [0.0, 0.0, 0.0]


def test_a_part_of_the_gradient_that_a_graph_takes_away() -> None:
    x, y, z, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(), zeros(1)
    with wp.ScopedCapture() as captured:
        wp.launch(square, 3, [x], [y])

    def program() -> None:
        with wp.Tape() as tape:
            wp.launch(square, 3, [x], [z])
            wp.capture_launch(captured.graph)
            for a in (y, z):
                wp.launch(total, 3, [a], [loss])
        tape.backward(loss)

    f = one(program)
    assert (f.kind, f.partial) == ("graph", True)


def test_graphs_that_take_nothing_away() -> None:
    x, y, z, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(), zeros(1)
    constant = floats(1.0, 2.0, 3.0, grad=False)
    with wp.ScopedCapture() as aside:
        wp.launch(square, 3, [constant], [y])  # of nothing that has a gradient
    with wp.ScopedCapture() as again:
        wp.launch(square, 3, [x], [z])  # what the tape has recorded
    with wp.ScopedCapture() as whole, wp.Tape() as own:
        wp.launch(square, 3, [x], [z])
        wp.launch(total, 3, [z], [loss])

    def program() -> None:
        with wp.Tape() as tape:
            wp.capture_launch(aside.graph)
            wp.launch(square, 3, [x], [z])
            wp.capture_launch(again.graph)
            for a in (y, z):
                wp.launch(total, 3, [a], [loss])
        tape.backward(loss)

    assert facts(program) == []
    wp.capture_launch(whole.graph)
    own.backward(loss)


@pytest.mark.parametrize("inside", [True, False])
def test_a_command_is_on_no_tape(inside: bool) -> None:
    def program() -> None:
        x, y, loss = floats(1.5, 2.5, 3.5), zeros(), zeros(1)
        command = wp.launch(square, 3, [x], [y], record_cmd=True)
        if not inside:
            command.launch()
        with wp.Tape() as tape:
            if inside:
                command.launch()
            wp.launch(total, 3, [y], [loss])
        tape.backward(loss)
        assert x.grad.numpy().tolist() == [0.0, 0.0, 0.0]
        assert loss.numpy()[0] == pytest.approx(1.5**2 + 2.5**2 + 3.5**2)

    f = one(program)
    assert (f.kind, f.name) == ("command" if inside else "launch", "square")
    assert "command.launch()" in said(f.site)


def test_a_graph_before_the_tape_is_a_launch_beside_it() -> None:
    f = one(by_graph(lambda x, y: wp.launch(square, 3, [x], [y]), inside=False))
    assert f.kind == "launch" and "wp.launch(square, 3, [x], [y])" in said(f.site)
