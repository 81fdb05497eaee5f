# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int, x: float):
    for v in a:
        #    ^ E101 a loop over anything but `range(...)` is not supported
        a[0] += v
    for k, v in enumerate(a):
        #       ^^^^^^^^^^^^ E101 a loop over anything but `range(...)` is not supported
    #   ^^^^ E101 a loop over several variables is not supported
        a[k] = v
    for j in zip(a, a):
        #    ^^^^^^^^^ E101 a loop over anything but `range(...)` is not supported
        a[0] = 1.0
    for i in range(n):
        a[i] = 0.0
    else:
        a[0] = 1.0
        # ^^^^^^^^ E101 `for ... else` is not supported
    while n > 0:
        n -= 1
    else:
        a[1] = 1.0
        # ^^^^^^^^ E101 `while ... else` is not supported
    for m in range(x):
        #          ^ E104 an argument of `range` must be an integer
        a[m] = 0.0
    for p in range(0, n, 0):
        #                ^ E104 the step of `range` is zero
        a[p] = 0.0
    for q in range():
        #    ^^^^^^^ E109 `range` takes 1 to 3 arguments
        a[q] = 0.0
