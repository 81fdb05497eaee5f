# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int, x: float):
    for v in a:
        #    ^ E101 a loop over anything but `range(...)`, a tuple
        a[0] += v
    for k, v in enumerate(a):
        #       ^^^^^^^^^^^^ E101 a loop over anything but `range(...)`, a tuple
        a[k] = v
    for j in zip(a, a):
        #    ^^^^^^^^^ E101 a loop over anything but `range(...)`, a tuple
        a[0] = 1.0
    for i, k in range(n):
    #   ^^^^ E109 several names for one number of `range`
        a[i] = 0.0
    for i, k in ((1, 2), (3, 4, 5)):
    #   ^^^^ E109 2 names for 3 values
        a[i] = 0.0
    for a[0] in (1.0, 2.0):
    #   ^^^^ E101 a loop that assigns to anything but names is not supported
        a[1] = 0.0
    for i, v in enumerate((x, x), n):
        #                         ^ E104 `enumerate` starts with a constant integer
        a[i] = v
    for i, v in enumerate((x, x), 1, 2):
        #       ^^^^^^^^^^^^^^^^^^^^^^^ E109 `enumerate` takes the items, and a number to start with
        a[i] = v
    for i, v in zip((1, 2), (x,), strict=True):
        #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E109 has items of lengths 2, 1
        a[i] = v
    for i, v in zip((1, 2), (x,), longest=True):
        #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E109 `zip` takes sequences
        a[i] = v
    for i, v in reversed(enumerate((x, x))):
        #       ^^^^^^^^^^^^^^^^^^^^^^^^^^^ E101 a loop over anything but `range(...)`
        a[i] = v
    for i in range(n):
        if i not in a:
        #  ^^^^^^^^^^ E101 `not in` asks for the items of tuples only
            break
    else:
        a[0] = b"x"
        #      ^^^^ E101 a bytes literal is not supported
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
        #    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 a range of uint32 cannot be reversed
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
