"""Launches and assignments that are refused because they could not mean anything."""

from types import SimpleNamespace

import numpy as np
import pytest

import engine as wp
from engine import LaunchError
from engine.compile.backend import Entry
from engine.runtime.device import HOST
from engine.runtime.execute import Executable


@wp.kernel
def copies(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i]


@wp.func
def peek(x: wp.array(dtype=float), i: int):
    return x[i]


@wp.kernel
def peeks(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = peek(x, i)


@wp.kernel
def counts(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = float(x.shape[0])
    for j in range(x.shape[0]):
        y[i] += x[j]


@wp.func
def missing(x: wp.array(dtype=float)):
    return x.shape[0] == 0


@wp.kernel
def guards(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0
    if x:
        y[i] = x[i]
    if missing(x):
        return
    y[i] += x[-1]


@wp.kernel
def optional(x: wp.array(dtype=float), use: bool, y: wp.array(dtype=float)):
    i = wp.tid()
    if use:
        y[i] = x[i]


@wp.kernel
def unused(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[wp.tid()] = 1.0


@wp.kernel
def from_the_end(x: wp.array(dtype=float), n: int, y: wp.array(dtype=float)):
    y[-1] = x[n]


@wp.kernel
def linear(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def flat(x: wp.array(dtype=float)):
    i, j = wp.tid()
    if i == 0 and j == 0:
        x[0] = 1.0


def refused(action, code):
    with pytest.raises(LaunchError) as error:
        action()
    (found,) = error.value.diagnostics
    assert found.code == code
    return found


@pytest.mark.parametrize(("kernel", "args", "name"), [
    (copies, lambda y: [None, y], "x"),
    (copies, lambda y: [y, None], "y"),
    (peeks, lambda y: [None, y], "x"),
    (peeks, lambda y: [y, None], "y"),
    (from_the_end, lambda y: [None, 0, y], "x"),
    (from_the_end, lambda y: [y, 0, None], "y"),
])  # fmt: skip
def test_none_for_an_array_that_the_kernel_touches(kernel, args, name):
    y = wp.zeros(2, dtype=float)
    for again in range(2):
        found = refused(lambda: wp.launch(kernel, dim=2, inputs=args(y)), "E202")
        assert kernel.key in found.message and repr(name) in found.message, again
        assert "but got None" in found.message
        assert f"`if {name}:`" in found.help


def test_none_in_a_command():
    y = wp.zeros(2, dtype=float)
    command = wp.launch(copies, dim=2, inputs=[y, y], record_cmd=True)
    command.set_param_by_name("x", None)
    refused(command.launch, "E202")


def test_none_where_it_does_no_harm():
    y = wp.full(2, 5.0, dtype=float)
    wp.launch(copies, dim=0, inputs=[None, y])
    wp.launch(copies, dim=(2, 0), inputs=[None, None])
    assert y.numpy().tolist() == [5.0, 5.0]
    wp.launch(counts, dim=2, inputs=[None, y])
    assert y.numpy().tolist() == [0.0, 0.0]
    wp.launch(guards, dim=2, inputs=[None, y])
    assert y.numpy().tolist() == [2.0, 2.0]
    wp.launch(optional, dim=2, inputs=[None, False, y])
    assert y.numpy().tolist() == [2.0, 2.0]
    wp.launch(unused, dim=2, inputs=[None, y])
    assert y.numpy().tolist() == [1.0, 1.0]


def test_none_that_only_a_custom_gradient_reads():
    @wp.func
    def f(a: float, table: wp.array(dtype=float)):
        return a

    @wp.func_grad(f)
    def adj_f(a: float, table: wp.array(dtype=float), g: float):
        wp.adjoint[a] += table[0] * g

    @wp.kernel
    def k(table: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = f(y[1], table)

    y = wp.zeros(2, dtype=float)
    refused(lambda: wp.launch(k, dim=1, inputs=[None, y]), "E202")


# ---- item assignment


@pytest.mark.parametrize("index", [0, (0, slice(None)), slice(0, 2), Ellipsis, (slice(None), 1)])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (3,), (4,), (6,), (8,), (12,), (1, 4), (2, 1),
                                   (2, 4), (3, 4), (4, 3), (1, 1, 4)])  # fmt: skip
@pytest.mark.parametrize("source", ["numpy", "list", "array"])
def test_item_assignment_broadcasts_as_numpy_does(index, shape, source):
    data = np.arange(1.0, 1.0 + np.prod(shape), dtype=np.float32).reshape(shape)
    value = {"numpy": data, "list": data.tolist(), "array": data[()]}[source]
    if source == "array" and shape != ():  # an array of ours has dimensions: a number stays one
        value = wp.array(data, dtype=float)
    wanted = np.zeros((3, 4), np.float32)
    b = wp.zeros((3, 4), dtype=float)
    try:
        wanted[index] = data
    except ValueError:
        refused(lambda: b.__setitem__(index, value), "E207")
    else:
        b[index] = value
    np.testing.assert_array_equal(b.numpy(), wanted)


def test_item_assignment_of_vectors():
    b = wp.zeros((2, 2), dtype=wp.vec3)
    b[0] = [[1, 2, 3], [4, 5, 6]]
    b[1] = [[7, 8, 9]]
    b[1, 0] = wp.vec3(1.0, 1.0, 1.0)
    assert b.numpy().tolist() == [[[1, 2, 3], [4, 5, 6]], [[1, 1, 1], [7, 8, 9]]]
    refused(lambda: b.__setitem__(0, np.ones((3, 3))), "E207")
    refused(lambda: b.__setitem__(0, [[1, 2], [3]]), "E206")


def test_item_assignment_on_a_tape():
    x = wp.array([1, 2, 3, 4], dtype=float, requires_grad=True)
    b = wp.zeros((3, 4), dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        b[0] = x
        b[2] = x
        refused(lambda: b.__setitem__(slice(0, 2), x), "E207")
        b[1] = [7.0]
    tape.backward(grads={b: wp.ones_like(b)})
    assert x.grad.numpy().tolist() == [2.0] * 4
    assert b.numpy().tolist() == [[1, 2, 3, 4], [7] * 4, [1, 2, 3, 4]]


def test_assign_fills_the_first_elements_as_in_warp():
    b = wp.zeros((3, 4), dtype=float)
    b.assign([1, 2])
    assert b.numpy().ravel().tolist() == [1, 2] + [0] * 10
    refused(lambda: b.assign(np.ones(13)), "E207")


# ---- errors of running kernels


@pytest.mark.parametrize(("kernel", "dim"), [
    (linear, (1 << 31) - 1), (linear, ((1 << 31) - 1, 2)), (flat, (1, (1 << 31) - 1)),
])  # fmt: skip
@pytest.mark.parametrize("on_tape", [False, True])
def test_more_threads_than_an_index_counts(kernel, dim, on_tape):
    x = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()

    def launch():
        if not on_tape:
            wp.launch(kernel, dim=dim, inputs=[x])
            return
        with tape:
            wp.launch(kernel, dim=dim, inputs=[x])

    found = refused(launch, "E205")
    assert f"{kernel.key!r}" in found.message
    assert "32-bit" in found.notes[0]
    assert x.numpy().tolist() == [0.0]
    tape.backward(grads={x: wp.ones_like(x)})  # nothing was recorded
    assert x.grad.numpy().tolist() == [1.0]


@pytest.mark.parametrize(("error", "code"), [(1, "E209"), (2, "E401"), (3, "E205"), (9, "E209")])
def test_what_the_error_numbers_of_kernels_say(error, code, monkeypatch):
    monkeypatch.setattr(wp.config, "native_after", 200)  # also under --native

    def call(blob, state):
        state._obj.error = error

    entry = Entry("my_kernel_0123456789abcdef", call)
    variants = SimpleNamespace(entry=lambda *names: entry, debug=False)
    executable = Executable(HOST.backend, variants, "forward")
    found = refused(lambda: executable.execute((2,), b""), code)
    assert "'my_kernel'" in found.message
