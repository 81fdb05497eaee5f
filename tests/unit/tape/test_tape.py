"""Tapes: recording, seeds, gradients, copies, overwrites."""

import gc
import linecache
import sys
import warnings

import numpy as np
import pytest

import engine as wp
from engine import TapeError
from engine.tape.records import CopyRecord, FuncRecord, LaunchRecord, OverwriteRecord


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 2.0


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel
def total(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i])


@wp.kernel
def square_in_place(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * x[i]


@wp.kernel(enable_backward=False)
def no_backward(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * 2.0


@wp.kernel
def lengths(v: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.dot(v[i], v[i])


@wp.kernel
def grid(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float)):
    i, j = wp.tid()
    y[i, j] = x[i, j] * x[i, j]


@wp.kernel
def total64(x: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.float64)):
    i = wp.tid()
    wp.atomic_add(out, 0, x[i] * x[i])


@wp.kernel
def indices(x: wp.array(dtype=int), y: wp.array(dtype=int)):
    i = wp.tid()
    y[i] = x[i]


def source(n=3):
    return wp.array(np.arange(1, n + 1), dtype=float, requires_grad=True)


def grad_of(tape, x, y):
    tape.zero()
    tape.backward(grads={y: np.ones(y.shape, np.float32)})
    return x.grad.list()


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


# ---- what the adjoint needs


def test_in_place_is_exact():
    x, loss = source(), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, [x])
        wp.launch(square_in_place, 3, [x])
        wp.launch(total, 3, [x, loss])
    tape.backward(loss)
    assert x.grad.list() == [4.0 * v**3 for v in (1, 2, 3)]
    tape.zero()
    tape.backward(loss)  # the journal is read again
    assert x.grad.list() == [4.0 * v**3 for v in (1, 2, 3)]


def test_aliased_arguments_are_exact():
    x, loss = source(), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [x])  # read and written through two parameters
        wp.launch(total, 3, [x, loss])
    tape.backward(loss)
    assert x.grad.list() == [2, 4, 6]


def test_overlapping_views_are_exact():
    base = wp.array([2.0, 3, 5, 7], dtype=float, requires_grad=True)
    loss = wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 2, [base[1:4]], [base[1:3]])
        wp.launch(total, 4, [base, loss])
    tape.backward(loss)
    assert base.grad.list() == [1, 6, 10, 1]


def test_vectors_and_grids():
    v = wp.array([[1, 2, 3], [4, 5, 6]], dtype=wp.vec3, requires_grad=True)
    out = wp.zeros(2, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(lengths, 2, [v], [out])
    tape.backward(grads={out: wp.ones(2)})
    assert v.grad.list() == [wp.vec3(2, 4, 6), wp.vec3(8, 10, 12)]
    x = wp.array(np.arange(6).reshape(2, 3), dtype=float, requires_grad=True)
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(grid, (3, 2), [x.transpose()], [y.transpose()])
    tape.backward(grads={y: wp.ones((2, 3))})
    assert x.grad.list() == [0, 2, 4, 6, 8, 10]


def test_requires_grad_dropped_after_recording():
    x, w = source(), source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
        wp.launch(square_in_place, 3, [w])
    x.requires_grad = False
    w.requires_grad = False
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad is None
    assert y.grad.list() == [0, 0, 0]


def test_requires_grad_set_after_recording():
    x, y = wp.array([1, 2, 3], dtype=float), wp.zeros(3, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(square, 3, [x], [y])
    x.requires_grad = True
    tape.backward(grads={y: wp.ones(3)})
    assert x.grad.list() == [2, 4, 6]


def test_requires_grad_set_too_late():
    x = wp.array([1, 2, 3], dtype=float)
    with wp.Tape() as tape:
        wp.launch(square_in_place, 3, [x])
    x.requires_grad = True
    with pytest.raises(TapeError, match="requires_grad was set on x"):
        tape.backward(grads={x: wp.ones(3)})


def test_replaced_gradient_arrays_are_used():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
    mine = wp.zeros(3)
    x.grad = mine
    tape.backward(grads={y: wp.ones(3)})
    assert mine.list() == [2, 2, 2]


def test_kernels_without_backward_warn():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(no_backward, 3, [x], [y])
    with pytest.warns(UserWarning, match="no_backward"):
        tape.backward(grads={y: wp.ones(3)})
    assert x.grad.list() == [0, 0, 0]
    out = wp.zeros(3)
    with wp.Tape() as tape, warnings.catch_warnings():
        wp.launch(no_backward, 3, [x], [out])
        tape.backward()


def test_integer_launches_do_nothing_backward():
    a, b = wp.array([1, 2], dtype=int), wp.zeros(2, dtype=int)
    with wp.Tape() as tape:
        wp.launch(indices, 2, [a], [b])
    tape.backward()
    assert tape.gradients == {}


# ---- seeds


@pytest.mark.parametrize(
    "seed",
    [
        lambda: {"loss": wp.zeros(1)},
        lambda: {"loss": wp.zeros(2, requires_grad=True)},
        lambda: {"loss": wp.zeros(0, requires_grad=True)},
        lambda: {"loss": wp.zeros(1, dtype=wp.vec3, requires_grad=True)},
        lambda: {"loss": 1.0},
        lambda: {"grads": {wp.zeros(1): wp.zeros(1)}},
        lambda: {"grads": {wp.zeros(1, dtype=int): wp.zeros(1, dtype=int)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): wp.zeros(3)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): wp.zeros(2, dtype=wp.float64)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): np.zeros(3)}},
        lambda: {"grads": {wp.zeros(2, requires_grad=True): ["a", "b"]}},
        lambda: {"grads": {"x": wp.zeros(3)}},
        lambda: {"grads": [wp.zeros(3)]},
    ],
)
def test_bad_seeds(seed):
    with pytest.raises(TapeError) as e:
        wp.Tape().backward(**seed())
    assert e.value.diagnostics[0].code == "E402"
    assert e.value.diagnostics[0].span.file == __file__


def test_seeds_are_copied():
    y = wp.zeros(3, requires_grad=True)
    seed = wp.full(3, 5.0)
    wp.Tape().backward(grads={y: seed})
    assert y.grad.list() == [5, 5, 5]
    assert y.grad is not seed
    seed.zero_()
    assert y.grad.list() == [5, 5, 5]
    tape = wp.Tape()
    tape.backward(grads={y: None})
    assert y.grad.list() == [5, 5, 5]
    tape.backward(grads={y: y.grad})
    assert y.grad.list() == [5, 5, 5]
    tape.backward(grads={y: np.arange(3)})
    assert y.grad.list() == [0, 1, 2]
    tape.zero()
    assert y.grad.list() == [0, 0, 0]


def test_loss_and_seeds_together():
    x = source()
    y, loss = wp.zeros_like(x), wp.zeros(1, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        wp.launch(total, 3, [x], [loss])
    tape.backward(loss, grads={y: wp.ones(3)})
    assert x.grad.list() == [3, 3, 3]


def test_empty_tape():
    tape = wp.Tape()
    tape.backward()
    assert tape.gradients == {}
    tape.reset()


# ---- copies and overwrites


@pytest.mark.parametrize(
    "how",
    [
        lambda z, y: wp.copy(z, y),
        lambda z, y: z.assign(y),
        lambda z, y: z.__setitem__(slice(None), y),
        lambda z, y: wp.copy(z[::-1], y[::-1]),
        lambda z, y: wp.copy(z.reshape((3, 1)), y),
    ],
)
def test_copies_pass_gradients(how):
    x = source()
    y, z = wp.zeros_like(x), wp.full_like(x, 9.0)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        how(z, y)
    assert isinstance(tape.records[1], CopyRecord)
    assert z.list() == [2, 4, 6]
    assert grad_of(tape, x, z) == [2, 2, 2]
    assert z.grad.list() == [0, 0, 0]


def test_clone_passes_gradients():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        z = wp.clone(y)
        cut = wp.clone(y, requires_grad=False)
    assert cut.list() == z.list()
    assert len(tape.records) == 2
    assert grad_of(tape, x, z) == [2, 2, 2]


def test_partial_copy():
    x = wp.array([1, 2, 3, 4], dtype=float, requires_grad=True)
    y = wp.array([5, 6, 7, 8], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x, dest_offset=1, src_offset=2, count=2)
    assert y.list() == [5, 3, 4, 8]
    tape.backward(grads={y: np.array([1, 2, 3, 4])})
    assert x.grad.list() == [0, 0, 2, 3]
    assert y.grad.list() == [1, 0, 0, 4]


def test_copy_within_an_array():
    x = wp.array([1, 2, 3, 4], dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(x, x, dest_offset=1, count=3)
    tape.backward(grads={x: np.array([1, 10, 100, 1000])})
    assert x.grad.list() == [11, 100, 1000, 0]


def test_copy_between_widths():
    x = source()
    y, loss = wp.zeros(3, dtype=wp.float64, requires_grad=True), None
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.copy(y, x)
        wp.launch(total64, 3, [y, loss])
    tape.backward(loss)
    assert x.grad.list() == [2, 4, 6]
    assert x.grad.dtype is wp.float32


def test_copy_of_what_has_no_gradient_cuts_it():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        y.assign([1, 2, 3])
    assert grad_of(tape, x, y) == [0, 0, 0]


@pytest.mark.parametrize(
    "how", [lambda y: y.zero_(), lambda y: y.fill_(3.0), lambda y: y.__setitem__(slice(None), 1.0)]
)
def test_an_overwritten_array_passes_no_gradient(how):
    x = source()
    y, z = wp.zeros_like(x), wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        how(y)
        wp.launch(double, 3, [y], [z])
    assert isinstance(tape.records[1], OverwriteRecord)
    assert grad_of(tape, x, z) == [0, 0, 0]


def test_a_buffer_zeroed_before_it_is_used():
    x = source()
    y, loss = wp.ones_like(x), wp.ones(1, requires_grad=True)
    with wp.Tape() as tape:
        y.zero_()
        loss.zero_()
        wp.launch(double, 3, [x], [y])
        wp.launch(total, 3, [y, loss])
    for _ in range(2):
        tape.backward(loss)
        assert x.grad.list() == [2, 2, 2]
        tape.zero()


def test_partly_overwritten():
    x = source()
    y = wp.zeros_like(x)
    with wp.Tape() as tape:
        wp.launch(double, 3, [x], [y])
        y[1] = 0.0
    assert grad_of(tape, x, y) == [2, 0, 2]


def test_writes_without_gradient_are_not_recorded():
    x = source()
    with wp.Tape() as tape:
        wp.zeros(3).zero_()
        x.grad.zero_()
        wp.clone(wp.zeros(3))
    assert tape.records == []


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
    assert isinstance(tape.records[-1], FuncRecord)
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
    tape.record_launch(square, 3, 0, [x], [y], "cpu")
    assert isinstance(tape.records[0], LaunchRecord)
    assert grad_of(tape, x, y) == [2, 4, 6]
    with pytest.raises(TapeError, match="square_in_place"):
        tape.record_launch(square_in_place, 3, 0, [x], [], "cpu")


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
    assert [(s.name, s.begin, s.end, s.depth) for s in tape.scopes] == [
        ("outer", 1, 2, 0),
        ("inner", 1, 2, 1),
    ]
    assert tape.scopes[1].metadata == {"k": 1}
    with pytest.raises(TapeError):
        tape.record_scope_end()


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
