"""Quotients of integer literals that stand for floats, and divisions by zero."""

import engine as wp

COUNT = 3


@wp.func
def half_of(x: float):
    return x * 0.5


@wp.kernel
def literals(x: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), n: int):
    x[0] = x[1] ** (1 / 2)
    #      ^^^^^^^^^^^^^^^ E104 a quotient of integers, which is 0 here, stands for a float
    x[2] = wp.max(x[1], 9 / 2)
    #      ^^^^^^^^^^^^^^^^^^^ E104 a quotient of integers, which is 4 here, stands for a float
    x[3] = float(1 / COUNT)
    #            ^^^^^^^^^ E104 a quotient of integers, which is 0 here, stands for a float
    v[0] = wp.vec3(-(1 / 2), 4 / 2, 1.0)
    #              ^^^^^^^^ E104 a quotient of integers, which is 0 here, stands for a float
    x[4] = half_of(1 / 2 + 1)
    #              ^^^^^^^^^ E104 parameter `x` of `half_of` has type float32
    x[5] = 1.0 if n > 0 or 1 / 2 else 2.0
    #                      ^^^^^ E104 a quotient of integers, which is 0 here, is a condition
    x[6] = wp.where(n > 0, x[0], 2 / COUNT)
    #      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 a quotient of integers, which is 0 here


@wp.kernel
def zero(x: wp.array(dtype=int), n: int):
    x[0] = n // 0
    #      ^^^^^^ E104 an integer is divided by zero
    x[1] = 5 % 0
    #      ^^^^^ E104 an integer is divided by zero
    n = n / 0
    #   ^^^^^ E104 an integer is divided by zero
