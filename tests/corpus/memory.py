"""Array elements: in-place arithmetic, scatter, store after read, several dimensions."""

from typing import Any

import engine as wp
from tests.corpus.case import arr, case, inout, out


@case(4, inout(4), arr(4))
def inplace_multiply(T):
    @wp.kernel
    def inplace_multiply(a: wp.array(dtype=T), b: wp.array(dtype=T)):
        i = wp.tid()
        a[i] = a[i] * b[i]

    return inplace_multiply


@case(4, inout(4), arr(4))
def augmented_elements(T):
    @wp.kernel
    def augmented_elements(a: wp.array(dtype=T), b: wp.array(dtype=T)):
        i = wp.tid()
        a[i] *= b[i]
        a[i] += b[i] * b[i]
        a[i] /= b[i] + T(1.0)
        a[i] -= b[i]

    return augmented_elements


@case(4, inout(4), arr(4), out(4))
def store_read_store(T):
    @wp.kernel
    def store_read_store(a: wp.array(dtype=T), b: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        y[i] = a[i] * a[i]
        a[i] = b[i] * T(3.0)
        y[i] = y[i] * a[i]
        a[i] = y[i] + a[i] * b[i]

    return store_read_store


@case(4, inout(4), out(4))
def read_then_overwrite(T):
    @wp.kernel
    def read_then_overwrite(a: wp.array(dtype=T), b: wp.array(dtype=T)):
        i = wp.tid()
        b[i] = a[i] * a[i]
        a[i] = T(1.0)

    return read_then_overwrite


@case(1, arr(5), inout(6), 5)
def recurrence(T):
    @wp.kernel
    def recurrence(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        for j in range(n):
            y[j + 1] = y[j] * x[j]

    return recurrence


@case(3, inout(3, 4), arr(3, 4), 4)
def inplace_in_loop(T):
    @wp.kernel
    def inplace_in_loop(a: wp.array2d(dtype=T), b: wp.array2d(dtype=T), n: int):
        i = wp.tid()
        for k in range(3):
            for j in range(n):
                if a[i, j] > T(2.0):
                    continue
                a[i, j] = a[i, j] * b[i, j] + a[i, (j + 1) % n]

    return inplace_in_loop


@case(3, inout(3), out(3))
def while_on_memory(T):
    @wp.kernel
    def while_on_memory(a: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        while a[i] < T(10.0):
            a[i] = a[i] * a[i] + T(1.0)
        y[i] = a[i] * T(2.0)

    return while_on_memory


@case(6, arr(6), out(2))
def scatter(T):
    @wp.kernel
    def scatter(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        wp.atomic_add(y, i % 2, x[i] * x[i])
        wp.atomic_sub(y, 0, x[i] * T(0.5))
        y[1] += x[i]

    return scatter


@case(6, arr(6), out(6), out(1))
def atomic_results(T):
    @wp.kernel
    def atomic_results(x: wp.array(dtype=T), y: wp.array(dtype=T), total: wp.array(dtype=T)):
        i = wp.tid()
        wp.atomic_add(total, 0, x[i])
        before = wp.atomic_add(y, i, x[i] * T(2.0))
        y[i] = before + x[i] * x[i]

    return atomic_results


@case(6, arr(6), inout(2))
def extrema(T):
    @wp.kernel
    def extrema(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        wp.atomic_max(y, 0, x[i] * x[i])
        wp.atomic_min(y, 1, x[i] * T(0.9))

    return extrema


@case((2, 3), arr(2, 3), out(3, 2))
def transposed(T):
    @wp.kernel
    def transposed(x: wp.array2d(dtype=T), y: wp.array2d(dtype=T)):
        i, j = wp.tid()
        y[j, i] = x[i, j] * x[1 - i, j]

    return transposed


@case((2, 2, 2), arr(2, 2, 2), out(2, 2, 2))
def three_dimensions(T):
    @wp.kernel
    def three_dimensions(x: wp.array3d(dtype=T), y: wp.array3d(dtype=T)):
        i, j, k = wp.tid()
        y[i, j, k] = x[i, j, k] * x[k, i, j]

    return three_dimensions


@case((2, 1, 2, 2), arr(2, 1, 2, 2), out(2, 1, 2, 2))
def four_dimensions(T):
    @wp.kernel
    def four_dimensions(x: wp.array4d(dtype=T), y: wp.array4d(dtype=T)):
        i, j, k, l = wp.tid()
        y[i, j, k, l] = wp.sin(x[i, j, l, k]) * x[i, j, k, l]

    return four_dimensions


@case(5, arr(5), out(5))
def stencil(T):
    @wp.kernel
    def stencil(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        n = x.shape[0]
        if i == 0 or i == n - 1:
            y[i] = x[i]
        else:
            y[i] = x[i - 1] * x[i + 1] - T(2.0) * x[i] * x[i]

    return stencil


@wp.func
def squared_in_place(a: wp.array(dtype=Any), k: int):
    a[k] = a[k] * a[k] + a[0]
    return a[k] * a[1]


@case(3, inout(3, 3), arr(3), out(3))
def updates_that_write_their_target(T):
    @wp.kernel
    def updates_that_write_their_target(
        a: wp.array2d(dtype=T), x: wp.array(dtype=T), y: wp.array(dtype=T)
    ):
        i = wp.tid()
        row = a[i]
        row[0] += squared_in_place(row, 0) * x[i]
        row[1] *= squared_in_place(row, 1)
        for k in range(3):
            row[k] -= squared_in_place(row, 2) if k != 1 else squared_in_place(row, k) * x[k]
        other = a[i, 1:3] if x[i] > T(1.0) else row
        other[1] += squared_in_place(other, 1)
        y[i] = row[0] * row[1] + row[2]

    return updates_that_write_their_target
