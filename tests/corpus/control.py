"""Control flow: what peers get wrong."""

import engine as wp
from tests.corpus.case import arr, case, out


@case(4, arr(4, 3), out(4), 3)
def product_loop(T):
    @wp.kernel
    def product_loop(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        prod = T(1.0)
        for j in range(n):
            prod *= x[i, j]
        y[i] = prod

    return product_loop


@case(4, arr(4, 3), arr(4, 3), out(4), 3)
def weighted_mean(T):
    @wp.kernel
    def weighted_mean(x: wp.array2d(dtype=T), w: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        total = T(0.0)
        norm = T(0.0)
        for j in range(n):
            total += x[i, j] * w[i, j]
            norm += w[i, j]
        y[i] = total / norm

    return weighted_mean


@case(4, arr(4), out(4))
def newton_while(T):
    @wp.kernel
    def newton_while(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = x[i]
        g = a
        steps = 0
        while steps < 6 and g * g - a > T(1.0e-12) or steps < 3:
            g = T(0.5) * (g + a / g)
            steps += 1
        y[i] = g * a

    return newton_while


@case(5, arr(5), out(5))
def data_dependent_exit(T):
    @wp.kernel
    def data_dependent_exit(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i]
        while v < T(20.0):
            v = v * v + x[i]
        y[i] = v

    return data_dependent_exit


@case(4, arr(4, 6), out(4), 6)
def loop_break(T):
    @wp.kernel
    def loop_break(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = T(1.0)
        for j in range(n):
            s = s * (T(1.0) + x[i, j])
            if s > T(8.0):
                break
        y[i] = s

    return loop_break


@case(4, arr(4, 6), out(4), 6)
def loop_continue(T):
    @wp.kernel
    def loop_continue(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = T(1.0)
        for j in range(n):
            if j % 2 == 1:
                continue
            s = s * x[i, j] + x[i, j]
        y[i] = s

    return loop_continue


@case(4, arr(4, 4), out(4), 4)
def nested_loops(T):
    @wp.kernel
    def nested_loops(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = T(1.0)
        for j in range(n):
            t = T(0.0)
            for k in range(j + 1):
                t += x[i, k] * s
                if t > T(9.0):
                    break
            s = s * T(0.5) + t
        y[i] = s

    return nested_loops


@case(3, arr(3, 4), out(3), 4)
def loop_with_while_inside(T):
    @wp.kernel
    def loop_with_while_inside(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = T(1.0)
        for j in range(n):
            k = 0
            while k < j:
                s = s * x[i, k] + T(0.1)
                k += 1
                if s > T(50.0):
                    continue
                s = s + x[i, j] * x[i, j]
        y[i] = s

    return loop_with_while_inside


@case(5, arr(5), out(5))
def early_return(T):
    @wp.kernel
    def early_return(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i]
        if i == 1:
            return
        if v > T(1.0):
            y[i] = v * v
            return
        for j in range(5):
            v = v * T(1.1) + x[i] * x[i]
            if v > T(3.0):
                y[i] = v * x[i]
                return
        y[i] = v

    return early_return


@case(5, arr(5), out(5))
def branches(T):
    @wp.kernel
    def branches(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i]
        if v < T(0.8):
            r = v * v
        elif v < T(1.1):
            r = v * v * v
            v = r + T(1.0)
        else:
            r = wp.sin(v)
        y[i] = r * v

    return branches


@case(4, arr(4), out(4))
def reversed_range(T):
    @wp.kernel
    def reversed_range(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        s = T(0.0)
        for j in range(7, 0, -2):
            s = s * x[i] + T(j)
        y[i] = s

    return reversed_range


@case(1, arr(6), out(1), 1, 6, 2)
def runtime_range(T):
    @wp.kernel
    def runtime_range(x: wp.array(dtype=T), y: wp.array(dtype=T), a: int, b: int, c: int):
        s = T(1.0)
        for j in range(a, b, c):
            s = s * x[j]
        for j in range(b - 1, a, 0 - c):
            s = s + s * x[j]
        y[0] = s

    return runtime_range


@case(4, arr(4), out(4))
def conditional_expression(T):
    @wp.kernel
    def conditional_expression(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a = x[i] * T(2.0) if x[i] > T(1.0) else x[i] * x[i]
        b = a if i > 1 and a > T(0.5) or i == 0 else T(1.0) / a
        y[i] = a * b

    return conditional_expression


@case(3, arr(3), out(3))
def loop_variable_after(T):
    @wp.kernel
    def loop_variable_after(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        s = x[i]
        j = 0
        for j in range(4):
            s = s * x[i]
            if s > T(1.2):
                break
        y[i] = s * T(j + 1)

    return loop_variable_after


@case(4, arr(4), out(4))
def swap_and_tuples(T):
    @wp.kernel
    def swap_and_tuples(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a, b = x[i], x[i] * x[i]
        for j in range(5):
            a, b = b, a + b * T(0.5)
        y[i] = a * b

    return swap_and_tuples


@case(4, arr(4), out(4))
def functions(T):
    @wp.func
    def poly(v: T, k: int):
        r = T(1.0)
        for j in range(k):
            r = r * v + T(1.0)
            if r > T(40.0):
                return r
        return r

    @wp.func
    def pair(v: T):
        if v > T(1.0):
            return v * v, poly(v, 2)
        return poly(v, 3), v

    @wp.kernel
    def functions(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        a, b = pair(x[i])
        c = T(0.0)
        for j in range(3):
            c += poly(a, j) * b
        y[i] = c

    return functions


@case(3, arr(3, 5), out(3), 5)
def function_with_array(T):
    @wp.func
    def row_norm(x: wp.array2d(dtype=T), i: int, n: int):
        s = T(0.0)
        for j in range(n):
            if x[i, j] < T(0.6):
                continue
            s += x[i, j] * x[i, j]
        return wp.sqrt(s + T(0.1))

    @wp.kernel
    def function_with_array(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        y[i] = row_norm(x, i, n) * x[i, 0]

    return function_with_array


@case(4, arr(4), out(4))
def captured_constants(T):
    scale = 1.75
    power = 3
    shift = wp.vec3(1.0, 2.0, 3.0)

    @wp.kernel
    def captured_constants(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        s = x[i]
        for j in range(power):
            s = s * scale
        y[i] = s * x[i] + T(shift[1]) * x[i]

    return captured_constants


@case(2, arr(2, 3), out(2), 0)
def empty_loop(T):
    @wp.kernel
    def empty_loop(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = x[i, 0]
        for j in range(n):
            s = s * x[i, 1]
        while s < T(0.0):
            s = s + T(1.0)
        y[i] = s * s

    return empty_loop


@case(4, arr(4), out(4))
def while_test_assigns(T):
    @wp.kernel
    def while_test_assigns(x: wp.array(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        v = x[i]
        while (v := v * v * T(0.5)) > T(0.01):
            y[i] += v
            if v > T(10.0):
                break
        y[i] += v * T(3.0)

    return while_test_assigns
