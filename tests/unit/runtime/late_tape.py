"""A kernel for a process of its own: see `test_whole_launches`."""

import engine as wp


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]
