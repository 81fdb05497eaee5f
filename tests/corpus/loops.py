"""Loops with `else`, over several names, and literals that take a type: their gradients."""

import engine as wp
from tests.corpus.case import arr, case, out

TABLE = (0.7, 1.3, -0.4)
PAIRS = ((0, 0.7), (2, -1.1), (1, 0.3))


@case(4, arr(4, 5), out(4), 5)
def for_else(T):
    @wp.kernel
    def for_else(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = 1.0
        for j in range(n):
            s = s * x[i, j]
            if s > 1.3 or s < 0.7:
                s = s * s
                break
        else:
            s = s + x[i, 0] * x[i, 1]
        y[i] = s

    return for_else


@case(4, arr(4, 3), out(4), 3)
def while_else_in_a_loop(T):
    @wp.kernel
    def while_else_in_a_loop(x: wp.array2d(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        total = 0.0
        for j in range(n):
            v = x[i, j]
            k = 0
            while k < 4:
                k += 1
                v = v * v
                if v > 2.0:
                    break
            else:
                if j in (0, 2):
                    total += v * x[i, 1]
                    continue
            total = total * 0.5 + v
        y[i] = total

    return while_else_in_a_loop


@case(4, arr(4, 3), out(4))
def several_names(T):
    @wp.kernel
    def several_names(x: wp.array2d(dtype=T), y: wp.array(dtype=T)):
        i = wp.tid()
        s = 0.5
        for k, c in PAIRS:
            s = s * x[i, k] + c
        for k, c in enumerate(TABLE):
            s += c * x[i, k] * s
        for c, (k, d) in zip(TABLE, PAIRS, strict=True):
            if k not in (1, 5):
                s = s * c + d * x[i, k]
        y[i] = s

    return several_names


@case(4, arr(4), out(4), 3)
def chosen_literals(T):
    @wp.kernel
    def chosen_literals(x: wp.array(dtype=T), y: wp.array(dtype=T), n: int):
        i = wp.tid()
        s = x[i]
        for j in range(n):
            s = s * TABLE[j] + (0.3 if j == 1 else -0.2) * x[i]
            s = s * wp.where(s > 0.0, 1.7, 0.6) + wp.max(TABLE[j], 0.1) * s * s
        y[i] = s

    return chosen_literals
