"""Tapes: recording, functions, scopes, lifetimes."""

import gc
import linecache
import sys

import numpy as np
import pytest

import engine as wp
from engine import TapeError
from engine.tape.records import FunctionRecord, LaunchRecord
from tests.unit.tape.kernels import (
    double,
    grad_of,
    source,
    square,
    square_in_place,
    total,
)

# ---- recording


def test_chain():
    x, loss = source(), wp.zeros(1, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(total, 3, [y, loss])
    tape.backward(loss)
    assert loss[0] == 14
    assert x.grad.list() == [2, 4, 6]
    assert tape.loss is loss
    assert [r.name for r in tape.records] == ["square", "total"]
    assert tape.launches is tape.records


def test_gradients_accumulate_until_zero():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
    for k in (1, 2):
        tape.backward(grads={y: wp.ones(3)})
        assert x.grad.list() == [2 * k] * 3
    tape.zero()
    assert x.grad.list() == [0, 0, 0]
    assert set(tape.gradients) == {x, y}
    assert tape.gradients[x] is x.grad
    assert tape.get_adjoint(x) is x.grad
    assert tape.get_adjoint(3) is None


def test_outputs_are_consumed_unless_retained():
    x, y, z = source(), wp.zeros(3, requires_grad=True), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(double, 3, [y], [z])
    tape.backward(grads={z: wp.ones(3)})
    assert y.grad.list() == z.grad.list() == [0, 0, 0]
    y.retain_grad = z.retain_grad = True
    assert grad_of(tape, x, z) == [4, 4, 4]
    assert y.grad.list() == [2, 2, 2]
    assert z.grad.list() == [1, 1, 1]


def test_retained_gradient_is_of_the_last_value():
    x = source()
    y = wp.zeros(3, requires_grad=True, retain_grad=True)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(square_in_place, 3, [y])
        wp.launch(total, 3, [y], [loss])
    tape.backward(loss)
    assert y.grad.list() == [1, 1, 1]
    assert x.grad.list() == [8, 16, 24]


def test_retained_gradient_through_a_view():
    x = source()
    y = wp.zeros(3, requires_grad=True, retain_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 2, [x[:2]], [y[1:]])
    tape.backward(grads={y: wp.ones(3)})
    assert y.grad.list() == [1, 1, 1]
    assert x.grad.list() == [2, 2, 0]


def test_off_tape_and_record_tape():
    x = source()
    y = wp.zeros_like(x)
    tape = wp.Tape()
    wp.launch(double, 3, [x], [y])
    with tape:
        wp.launch(double, 3, [x], [y], record_tape=False)
    assert tape.records == []
    assert y.list() == [2, 4, 6]


def test_a_tape_goes_on_in_a_second_block():
    x = source()
    y, z = wp.zeros_like(x), wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 3, [x], [y])
    with tape:
        wp.launch(double, 3, [y], [z])
    assert grad_of(tape, x, z) == [4, 4, 4]


def test_nesting_is_refused():
    with wp.Tape() as tape:
        with pytest.raises(TapeError) as e, wp.Tape():
            pass
        assert e.value.diagnostics[0].code == "E401"
        with pytest.raises(TapeError), tape:
            pass
    with wp.Tape():
        pass


def test_an_exception_ends_recording():
    with pytest.raises(ZeroDivisionError), wp.Tape():
        _ = 1 / 0
    with wp.Tape():
        pass


def test_backward_inside_the_block_records_nothing():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        tape.backward(grads={y: wp.ones(3)})
        wp.launch(double, 3, [x], [y])
    assert len(tape.records) == 2
    assert x.grad.list() == [2, 2, 2]


def test_site():
    x = source()
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [wp.zeros_like(x)])
    site = tape.records[0].site
    assert site.file == __file__
    assert linecache.getline(__file__, site.line).lstrip().startswith("wp.launch(double")
    if sys.version_info >= (3, 11):
        assert (site.col, site.end_col) == (9, 54)


def test_reset():
    x = source()
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 3, [x], [y])
    tape.backward(grads={y: wp.ones(3)})
    tape.reset()
    assert tape.records == []
    assert tape.gradients == {}
    assert x.grad.list() == [0, 0, 0]
    with tape:
        wp.launch(square, 3, [x], [y])
    assert grad_of(tape, x, y) == [2, 4, 6]


def test_launch_of_no_threads_is_recorded():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 0, [x], [y])
    assert len(tape.records) == 1
    assert grad_of(tape, x, y) == [0, 0, 0]


# ---- functions, launches, scopes


def test_record_func():
    x = source()
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        y.assign(np.sin(x.numpy()))

        def backward():
            x.grad.assign(x.grad.numpy() + np.cos(x.numpy()) * y.grad.numpy())

        tape.record_func(backward, [x, y])
    assert isinstance(tape.records[-1], FunctionRecord)
    tape.backward(grads={y: wp.ones(3)})
    assert np.allclose(x.grad.numpy(), np.cos(x.numpy()))
    assert set(tape.gradients) == {x, y}
    tape.zero()
    assert x.grad.list() == [0, 0, 0]
    with pytest.raises(TapeError):
        tape.record_func(3, [])


def test_record_launch():
    x = source()
    y = wp.zeros_like(x)
    tape = wp.Tape()
    wp.launch(square, 3, [x], [y])
    tape.record_launch(square, 3, 0, [x], [y], x.device)
    assert isinstance(tape.records[0], LaunchRecord)
    assert grad_of(tape, x, y) == [2, 4, 6]
    with pytest.raises(TapeError, match="square_in_place"):
        tape.record_launch(square_in_place, 3, 0, [x], [], x.device)


def test_scopes(capsys):
    x = source()
    y = wp.zeros_like(x)
    tape = wp.Tape()
    with tape:
        wp.launch(double, 3, [x], [y])
        with wp.ScopedTimer("outer", print=False):
            tape.record_scope_begin("inner", {"k": 1})
            wp.launch(double, 3, [x], [y])
            tape.record_scope_end()
        tape.record_scope_begin("empty")
        tape.record_scope_end()
        with wp.ScopedTimer("not here", skip_tape=True, print=False):
            wp.launch(double, 3, [x], [y])
    assert tape.scopes == [
        (1, "outer", {}),
        (1, "inner", {"k": 1}),
        (2, None, None),
        (2, None, None),
    ]
    with pytest.raises(TapeError, match=r"E401.*scope not present"):
        tape.record_scope_end()


def test_scopes_side_by_side_and_left_open():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        tape.record_scope_begin("all")
        for name in ("a", "b"):
            tape.record_scope_begin(name)
            wp.launch(double, 3, [x], [y])
            tape.record_scope_end()
        tape.record_scope_begin("kept")
        tape.record_scope_end(remove_scope_if_empty=False)
    assert tape.scopes == [
        (0, "all", {}),
        (0, "a", {}),
        (1, None, None),
        (1, "b", {}),
        (2, None, None),
        (2, "kept", {}),
        (2, None, None),
    ]
    tape.record_scope_end()
    assert tape.scopes[-1] == (2, None, None)
    tape.reset()
    assert tape.scopes == []


# ---- lifetimes


def test_records_keep_their_arrays():
    x = source()
    with wp.Tape() as tape:
        y = wp.zeros_like(x)
        wp.launch(double, 3, [x], [y])
        z = wp.zeros_like(x)
        wp.launch(double, 3, [y], [z])
        del y
    gc.collect()
    assert grad_of(tape, x, z) == [4, 4, 4]


def test_launch_errors_record_nothing():
    x = source()
    with wp.Tape() as tape:
        with pytest.raises(wp.LaunchError):
            wp.launch(double, 3, [x], [wp.zeros(3, dtype=int)])
        with pytest.raises(wp.LaunchError):
            wp.launch(double, -3, [x], [x])
    assert tape.records == []


@pytest.mark.parametrize("pick", [lambda a: a, lambda a: [a, None], lambda a: [a.numpy()]])
def test_record_func_takes_a_list_of_arrays(pick):
    """One array alone was taken apart into its numbers, and `zero` fell over them."""
    a = wp.ones(2, dtype=float, requires_grad=True)
    a.grad.fill_(2.0)
    tape = wp.Tape()
    with pytest.raises(wp.TapeError, match="record_func takes a list of arrays") as refused:
        tape.record_func(lambda: None, pick(a))
    found = refused.value.diagnostics[0]
    assert (found.code, found.span.file, bool(found.help)) == ("E401", __file__, True)
    assert not tape.records
    tape.record_func(lambda: None, (a,))
    tape.zero()
    assert a.grad.list() == [0.0, 0.0]
