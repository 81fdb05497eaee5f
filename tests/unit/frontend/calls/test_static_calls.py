"""`static(...)`, captured constants, and factories that make several kernels of one name."""

import gc

import numpy as np
import pytest

import engine as wp
from engine.frontend import lower_kernel
from tests.unit.frontend import shared_functions as shared

limit = 3
table = [0.5, 1.5, 2.5]
mode = "fast"
index = 999
GRAVITY = wp.constant(wp.vec3(0.0, -9.8, 0.0))
LEVEL = wp.constant(4)


@wp.func
def plus_two():
    return wp.static(limit + 2)


@wp.func
def add(a: int, b: int):
    return a + b


@wp.func
def subtract(a: int, b: int):
    return a - b


choices = {"add": add, "subtract": subtract}


@wp.kernel
def expressions(out: wp.array(dtype=float)):
    k = 3
    out[0] = float(plus_two())
    out[1] = float(wp.static(plus_two() + k))
    out[2] = wp.static(sum(x * x for x in table))
    out[3] = wp.static(wp.vec3(1.0, 2.0, 3.0) * 2.0)[2]
    out[4] = float(wp.static(choices["subtract"])(7, 2))
    out[5] = wp.static({"fast": 2.5, "slow": 0.5}[mode])
    if wp.static(limit in {2, 3, 5} and len(table) == 3):
        out[6] = 1.0
    elif wp.static(mode == f"{'fa'}st"):
        out[6] = 2.0
    m = wp.identity(n=wp.static(limit - 1), dtype=float)
    out[7] = wp.trace(m) + GRAVITY[1] + float(LEVEL)
    out[8] = float(wp.static(-limit < k < 2 * limit))


def test_expressions() -> None:
    out = wp.zeros(9, dtype=float)
    wp.launch(expressions, dim=1, inputs=[out])
    want = [5, 8, 0.25 + 2.25 + 6.25, 6, 5, 2.5, 1, 2 - 9.8 + 4, 1]
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)


@wp.kernel
def loops(out: wp.array(dtype=float)):
    s = 0.0
    for i in range(wp.static(len(table))):
        s += wp.static(table[i])
        if wp.static(i > 0):
            s += previous  # noqa: F821
        previous = wp.static(10.0 * i)  # noqa: F841
    out[0] = s + float(i)
    for index in range(3, 0, -1):
        for j in range(wp.static(2)):
            out[index] += wp.static(100 * index + j)
    last = 0
    for index in range(2):
        for index in range(3):
            last += 1
        out[4 + index] = wp.static(7.0)
    for k in range(4):
        last = last + wp.static(k)
        if last > 8:
            out[7] = float(last)
            return


def test_loops_are_unrolled_over_their_variables() -> None:
    out = wp.zeros(8, dtype=float)
    wp.launch(loops, dim=1, inputs=[out])
    # 0.5 + 1.5 + 0 + 2.5 + 10, and i = 2
    assert out.numpy().tolist() == [16.5, 201, 401, 601, 0, 0, 7, 9]


@wp.kernel
def chain(x: wp.array(dtype=float), out: wp.array(dtype=float)):
    y = x[0]
    for i in range(3):
        y = wp.static([wp.sin, wp.exp, shared.triple_it][i])(y)
    out[0] = y


def test_functions_chosen_in_a_loop_have_their_gradient() -> None:
    x = wp.array([0.7], dtype=float, requires_grad=True)
    out = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(chain, dim=1, inputs=[x], outputs=[out])
    tape.backward(out)
    value = 3 * np.exp(np.sin(0.7))
    np.testing.assert_allclose(out.numpy(), [value], rtol=1e-6)
    np.testing.assert_allclose(x.grad.numpy(), [value * np.cos(0.7)], rtol=1e-6)


def test_python_gets_the_value() -> None:
    assert wp.static(3) == 3


# ---- factories


def make_power(n):
    @wp.kernel
    def power(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = x[0]
        for _i in range(n - 1):
            y[0] = y[0] * x[0]

    return power


def make_apply(f, scale=2.0):
    @wp.func
    def inner(x: float):
        return scale * f(x)

    @wp.kernel
    def apply(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = inner(x[0])

    return apply


def gradient(kernel, value=2.0):
    x = wp.array([value], dtype=float, requires_grad=True)
    y = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(kernel, dim=1, inputs=[x], outputs=[y])
    tape.backward(y)
    return float(y.numpy()[0]), float(x.grad.numpy()[0])


def test_each_kernel_of_a_factory_has_its_own_values() -> None:
    made = [make_power(n) for n in (2, 3, 5)]
    assert len({k.key for k in made}) == 1
    for _ in range(2):  # the second time from what is cached
        assert [gradient(k) for k in made] == [(4, 4), (8, 12), (32, 80)]
    again = make_power(3)
    assert gradient(again) == (8, 12)


def test_functions_captured_by_a_factory() -> None:
    made = [make_apply(shared.triple_it), make_apply(wp.exp), make_apply(shared.triple_it, 5.0)]
    e = float(np.exp(np.float32(2)))
    np.testing.assert_allclose([gradient(k) for k in made], [(12, 6), (2 * e, 2 * e), (30, 15)],
                               rtol=1e-6)  # fmt: skip


def test_a_kernel_made_in_a_loop_sees_the_value_at_its_launch() -> None:
    got = []
    for f in (add, subtract):

        @wp.kernel
        def k(out: wp.array(dtype=int)):
            out[0] = wp.static(f)(3, 2)
            out[1] = f(3, 2)

        out = wp.zeros(2, dtype=int)
        wp.launch(k, dim=1, inputs=[out])
        got.append(out.numpy().tolist())
    assert got == [[5, 5], [1, 1]]


def made_in_a_loop(values):
    made = []
    for value in values:

        @wp.func
        def scaled(x: float):
            return wp.static(2.0 * value) * x

        @wp.kernel
        def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            y[0] = wp.static(scaled)(x[0]) + wp.static(value)

        made.append(k)
    return made


def test_kernels_made_in_a_loop_keep_their_values_until_they_are_launched() -> None:
    made = made_in_a_loop([1.0, 5.0, 10.0])
    assert [gradient(k) for k in reversed(made)] == [(50, 20), (25, 10), (5, 2)]
    gc.collect()  # kernels of other tests leave the group now, not between the hashes
    assert len({k.module.get_module_hash() for k in made}) == 1  # they are of one group
    hashes = []
    for value in (1.0, 2.0):

        @wp.kernel(module="unique")
        def k(y: wp.array(dtype=float)):
            y[0] = wp.static(value)

        hashes.append(k.module.get_module_hash())
    assert hashes[0] != hashes[1]


def test_functions_chosen_in_a_loop_keep_what_they_are() -> None:
    @wp.func
    def square(x: float):
        return x * x

    @wp.func
    def cube(x: float):
        return x * x * x

    made = []
    for f in (square, cube, wp.exp):

        @wp.kernel
        def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            y[0] = wp.static(f)(x[0])

        made.append(k)
    e = float(np.exp(np.float32(2)))
    np.testing.assert_allclose([gradient(k) for k in made], [(4, 4), (8, 12), (e, e)], rtol=1e-6)

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 7.0 * adj_ret

    assert gradient(made[0]) == (4, 7)  # the name means another function by now


def test_what_the_decorator_computes_is_computed_once() -> None:
    counted = []

    def count():
        counted.append(len(counted))
        return float(len(counted))

    calculated = wp.static

    @wp.kernel
    def k(y: wp.array(dtype=float)):
        y[0] = wp.static(10.0 * wp.static(count()))
        y[1] = wp.static(expr=count())
        y[2] = calculated(count())
        for i in range(2):
            y[3] += wp.static(later[i])

    assert counted == [0, 1, 2]
    calculated = later = [4.0, 5.0]
    y = wp.zeros(4, dtype=float)
    wp.launch(k, dim=1, inputs=[y])
    assert y.numpy().tolist() == [10, 2, 3, 9]
    assert counted == [0, 1, 2]
    assert calculated is later


@wp.kernel
def changed_counts(out: wp.array(dtype=float)):
    for index in range(2):
        out[index] = wp.static(10.0 * index)
        for index in range(3):
            out[2] += 1.0
        out[3] += wp.static(1.0 * index)


@wp.kernel
def lost_counts(n: int, out: wp.array(dtype=float)):
    for i in range(2):
        for j in range(n):
            i = 5
        out[0] = float(wp.static(i))
    for i in range(2):
        while out[1] < 1.0:
            out[1] += float(wp.static(i + 1))
            i = 3
    for i in range(2):
        for i in range(n):
            out[2] += 1.0
        out[3] = float(wp.static(i))
    for i in range(2):
        if n > 1:
            i = 7
        out[4] = float(wp.static(i))


def test_variables_of_loops_that_the_body_changes() -> None:
    out = wp.zeros(4, dtype=float)
    wp.launch(changed_counts, dim=1, inputs=[out])
    assert out.numpy().tolist() == [0, 10, 6, 4]
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(lost_counts.func)
    first = lost_counts.func.__code__.co_firstlineno
    assert [(d.code, d.span.line - first) for d in e.value.diagnostics] == [
        ("E107", 5), ("E107", 8), ("E107", 13), ("E107", 17),
    ]  # fmt: skip


def test_names_that_are_not_there_are_errors_of_python_too() -> None:
    @wp.kernel
    def k(out: wp.array(dtype=float)):
        out[0] = missing(1.0)  # noqa: F821

    for kind in (KeyError, AttributeError, RuntimeError, wp.WarpCodegenKeyError):
        with pytest.raises(kind, match="`missing` is not defined"):
            wp.launch(k, dim=1, inputs=[wp.zeros(1)])


def test_a_function_of_a_table_that_gets_a_gradient_makes_its_kernels_stale() -> None:
    @wp.func
    def square(x: float):
        return x * x

    functions = [square]

    @wp.kernel
    def k(x: wp.array(dtype=float), y: wp.array(dtype=float)):
        y[0] = wp.static(functions[0])(x[0])

    assert gradient(k) == (4, 4)

    @wp.func_grad(square)
    def adj_square(x: float, adj_ret: float):
        wp.adjoint[x] += 7.0 * adj_ret

    assert gradient(k) == (4, 7)


@wp.struct
class Pair:
    x: float
    v: wp.vec2


def made() -> Pair:
    p = Pair()
    p.x, p.v = 2.5, wp.vec2(1.0, -1.0)
    return p


@wp.kernel
def values(out: wp.array(dtype=float)):
    p = wp.static(made())
    out[0] = p.x + p.v[0]
    v = wp.vec3(out[1], 2.0, 3.0)
    m = wp.identity(n=wp.static(len(v) - 1), dtype=float)
    out[1] = wp.trace(m)
    k = 0
    for x in wp.static([1.5, 2.5, 4.0]):
        k += 1
        if k == 2:
            continue
        out[2] += x
        if out[2] > 100.0:
            break
    for _ in range(wp.static(True)):
        out[3] += 1.0


def test_structs_lists_lengths_and_bools() -> None:
    out = wp.zeros(4, dtype=float)
    wp.launch(values, dim=1, inputs=[out])
    np.testing.assert_array_equal(out.numpy(), [3.5, 2.0, 5.5, 1.0])


# ---- refusals


@wp.kernel
def wrong(n: int, out: wp.array(dtype=float)):
    out[0] = wp.static(1.0 / 0.0)
    out[1] = wp.static(n * 2)
    out[2] = wp.static("text")
    out[3] = wp.static(None)
    out[4] = wp.static(wp.zeros(3))
    out[5] = wp.static(1, 2)
    for i in range(n):
        out[6] += wp.static(i)
    for i in range(10):
        out[7] += wp.static(i)
        if n > 3:
            break
    for i in range(10000):
        out[8] += wp.static(i)
    t = out[0]
    out[9] = wp.static(t)


def test_refusals() -> None:
    with pytest.raises(wp.KernelError) as e:
        lower_kernel(wrong.func)
    first = wrong.func.__code__.co_firstlineno
    told = [(d.code, d.span.line - first) for d in e.value.diagnostics]
    assert told == [
        ("E107", 2), ("E107", 3), ("E107", 4), ("E107", 5), ("E107", 6), ("E109", 7),
        ("E107", 8), ("E101", 14), ("E107", 17),
    ]  # fmt: skip
    assert all(d.help for d in e.value.diagnostics)
    assert "ZeroDivisionError" in e.value.diagnostics[0].message
    assert "engine/" not in str(e.value)
