"""Gradients that must be exact and often are not: overwritten state in variables and memory."""

import engine as wp
from tests.corpus.case import arr, case, inout, out
from tests.corpus.values import matrix, vector


@case(3, arr(3, element="v3"), arr(3, 5), out(3, element="v3"), 5)
def loop_over_vectors(T):
    @wp.kernel
    def loop_over_vectors(p: wp.array(dtype=vector(T, 3)), w: wp.array2d(dtype=T),
                          y: wp.array(dtype=vector(T, 3)), n: int):  # fmt: skip
        i = wp.tid()
        v = p[i]
        d = p[i] * T(0.5)
        for j in range(n):
            d = wp.cross(d, v) * w[i, j] + v
            v = v * (T(1.0) / (T(1.0) + wp.dot(d, v)))
            if wp.length(d) > T(1.6):
                d = d * T(0.5)
        y[i] = v * wp.length(d)

    return loop_over_vectors


@case(3, arr(3, element="v3"), arr(3, 7), out(3, element="v3"), 7)
def component_at_run_time(T):
    @wp.kernel
    def component_at_run_time(p: wp.array(dtype=vector(T, 3)), w: wp.array2d(dtype=T),
                              y: wp.array(dtype=vector(T, 3)), n: int):  # fmt: skip
        i = wp.tid()
        v = p[i]
        for j in range(n):
            v[j % 3] = v[(j + 1) % 3] * w[i, j] + v[j % 3] * v[j % 3]
            v[(j * 2) % 3] *= w[i, j]
            if v[0] > T(2.0):
                v[0] = v[0] * T(0.25)
        y[i] = v

    return component_at_run_time


@case(2, arr(2, element="m33"), arr(2, 6), out(2, element="m33"), 6)
def matrix_entry_at_run_time(T):
    @wp.kernel
    def matrix_entry_at_run_time(p: wp.array(dtype=matrix(T, 3)), w: wp.array2d(dtype=T),
                                 y: wp.array(dtype=matrix(T, 3)), n: int):  # fmt: skip
        i = wp.tid()
        m = p[i]
        for j in range(n):
            for k in range(j):
                m[k % 3, j % 3] = m[j % 3, k % 3] * w[i, j] + wp.sin(m[k % 3, k % 3])
        y[i] = m

    return matrix_entry_at_run_time


@case(4, arr(4, 5), out(4), 5)
def return_inside_nested_functions(T):
    @wp.func
    def first_large(x: wp.array2d(dtype=T), i: int, start: T, n: int):
        s = start
        for j in range(n):
            for k in range(3):
                s = s * x[i, j] + T(0.1)
                if s > T(2.0):
                    return s, j
                if s < T(0.3):
                    break
            if j == 3:
                return s * s, j
        return -s, n

    @wp.func
    def again(x: wp.array2d(dtype=T), i: int, n: int):
        total = x[i, 0]
        for j in range(n):
            s, at = first_large(x, i, total, n)
            if at == 2:
                return total * s
            if at == 0:
                continue
            total = total + wp.sin(s) * x[i, at % n]
        return total

    @wp.kernel
    def return_inside_nested_functions(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        r = x[i, 1]
        for j in range(3):
            r = r * again(x, i, n - j)
            if r > T(4.0):
                return
            y[i] = r

    return return_inside_nested_functions


@case(1, arr(6), inout(6), 6)
def array_recurrence(T):
    @wp.kernel
    def array_recurrence(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        for j in range(1, n):
            y[j] = y[j - 1] * x[j]

    return array_recurrence


@case(1, arr(7), inout(7), out(1), 7)
def array_recurrence_of_two_steps(T):
    @wp.kernel
    def array_recurrence_of_two_steps(x: wp.array(dtype=T), y: wp.array(dtype=T),
                                      z: wp.array(dtype=T), n: int):  # fmt: skip
        j = 2
        while j < n:
            y[j] = y[j - 1] * x[j] + y[j - 2] * y[j - 2]
            if y[j] > T(3.0):
                y[j] = T(3.0) / y[j]
            y[j - 2] *= x[j]
            j += 1
        z[0] = y[n - 1] * y[0]

    return array_recurrence_of_two_steps


@case(2, inout(2, 5), arr(2, 5), 5)
def sort_by_insertion(T):
    @wp.kernel
    def sort_by_insertion(a: wp.array2d(dtype=T), w: wp.array2d(dtype=T), n: int):
        i = wp.tid()
        for j in range(1, n):
            v = a[i, j] * w[i, j]
            k = j - 1
            while k >= 0 and a[i, wp.max(k, 0)] > v:
                a[i, k + 1] = a[i, k]
                k -= 1
            a[i, k + 1] = v

    return sort_by_insertion


@case(4, inout(4), out(4))
def write_after_read(T):
    @wp.kernel
    def write_after_read(a: wp.array(dtype=T), b: wp.array(dtype=T)):
        i = wp.tid()
        b[i] = a[i] * a[i]
        a[i] = T(1.0)
        b[i] = b[i] * b[i] + a[i]

    return write_after_read


@case(6, arr(6), inout(2), out(6))
def extrema_and_what_was_there(T):
    @wp.kernel
    def extrema_and_what_was_there(x: wp.array(dtype=T), m: wp.array(dtype=T),
                                   y: wp.array(dtype=T)):  # fmt: skip
        i = wp.tid()
        before = wp.atomic_max(m, 0, x[i] * T(1.2))
        least = wp.atomic_min(m, 1, x[i] * x[i])
        y[i] = before * x[i] + wp.sin(least)

    return extrema_and_what_was_there


@case(5, arr(5, element="v3"), inout(1, element="v3"))
def extrema_of_vectors(T):
    @wp.kernel
    def extrema_of_vectors(x: wp.array(dtype=vector(T, 3)), m: wp.array(dtype=vector(T, 3))):
        i = wp.tid()
        wp.atomic_max(m, 0, x[i] * x[i][0])
        wp.atomic_add(m, 0, x[i])

    return extrema_of_vectors


@case(7, arr(7), out(7), 3)
def divided_by_integers(T):
    @wp.kernel
    def divided_by_integers(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        half = x[i // 2] / T(n)
        rest = x[(i * 5 + 1) % 7] % T(n + i) + (x[i] * T(7.0)) % T(2.0)
        scale = T(i // n) + T(-i % n) * T(0.25) + T(1.0)
        y[i] = (half * rest) / scale + T(i) / (x[i] + T(n))

    return divided_by_integers
