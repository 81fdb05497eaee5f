# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int, x: float):
    for v in a:
        #    ^ E101 a loop over anything but `range(...)`, a tuple
        a[0] += v
    for k, v in enumerate(a):
        #       ^^^^^^^^^^^^ E101 a loop over anything but `range(...)`, a tuple
    #   ^^^^ E101 a loop over several variables is not supported
        a[k] = v
    for j in zip(a, a):
        #    ^^^^^^^^^ E101 a loop over anything but `range(...)`, a tuple
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
    for r in reversed(range(wp.uint32(n))):
        #    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 a range of uint32 cannot be turned round
        a[int(r)] = 0.0
    for w in reversed(n):
        #    ^^^^^^^^^^^ E101 a loop over anything but `range(...)`
        a[w] = 0.0
    t = (x, x)
    for y in range(n):
        #    ^^^^^^^^ E107 or it is an index of a tuple, but the bounds are not constant
        a[0] = t[y]
    a[0] = wp.max(*a)
    #             ^^ E104 the length of an array is not known
    a[0] = wp.max(*a[0:])
    #              ^^^^^ E104 this one has no end
    a[0] = wp.max(*a[:n])
    #                 ^ E104 are constant integers from 0 on
    a[0] = wp.max(*a[0:-1])
    #                  ^^ E104 are constant integers from 0 on
    a[0] = wp.max(*x)
    #             ^^ E104 but this is float32
    a[0] = wp.max(*t[:n])
    #                 ^ E104 the bounds of a slice of a vector, matrix or tuple
    b, c, *d, e = t
    # ^^^^^^^^^ E109 4 names for 2 values
