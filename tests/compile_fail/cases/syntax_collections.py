# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int):
    i = wp.tid()
    xs = [1.0, 2.0]
    #    ^^^^^^^^^^ E101 a list is not supported
    d = {1: 2.0}
    #   ^^^^^^^^ E101 a dictionary is not supported
    s = {1, 2}
    #   ^^^^^^ E101 a set is not supported
    t = [a[k] for k in range(n)]
    #   ^^^^^^^^^^^^^^^^^^^^^^^^ E101 a list comprehension is not supported
    u = sum(a[k] for k in range(n))
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^ E106 `sum` cannot be called in a kernel
    #      ^^^^^^^^^^^^^^^^^^^^^^^^ E101 a generator expression is not supported
    a[i] = xs[0] + d[1] + t[0]
