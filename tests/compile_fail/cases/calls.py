# fmt: off
import math

import numpy as np

import engine as wp


def plain(x):
    return x * 2.0


@wp.func
def twice(x: float):
    return x * 2.0


@wp.func
def nothing(x: float):
    pass


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int):
    a[0] = plain(a[0])
    #      ^^^^^^^^^^^ E106 `plain` cannot be called in a kernel
    a[0] = np.sinc(a[0])
    #      ^^^^^^^^^^^^^ E106 `np.sinc` cannot be called in a kernel
    a[0] = round(a[0], 2)
    #      ^^^^^^^^^^^^^^ E104 `round` does not take (float32, int32)
    a[0] = math.gamma(a[0])
    #      ^^^^^^^^^^^^^^^^ E106 `math.gamma` cannot be called in a kernel
    a[0] = wp.clamp(a[0], low=0.0, hi=1.0)
    #                         ^^^ E106 `clamp` takes no argument `low` here
    a[0] = twice
    #      ^^^^^ E106 `twice` is a function or type, not a value
    a[0] = twice(n)
    #            ^ E104 parameter `x` of `twice` has type float32, but this is int32
    a[0] = twice(a)
    #            ^ E104 parameter `x` of `twice` has type float32, but this is array
    a[0] = twice(1.0, 2.0)
    #      ^^^^^^^^^^^^^^^ E109 `twice` takes 1 argument, got 2
    a[0] = twice(y=1.0)
    #              ^^^ E109 `twice` takes no other argument `y`
    a[0] = nothing(1.0)
    #      ^^^^^^^^^^^^ E109 this call gives no value
    a[0] = n(1)
    #      ^^^^ E106 `n` is a value, not a function
    a[0] = wp.sin()
    #      ^^^^^^^^ E104 `sin` does not take ()
    wp.launch(kernel, dim=1, inputs=[a])
    #                               ^^^ E101 a list is not supported
    # ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E106 `wp.launch` cannot be called in a kernel
