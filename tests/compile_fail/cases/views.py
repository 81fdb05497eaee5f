# fmt: off
import engine as wp


@wp.func
def total(a: wp.array(dtype=float)):
    return a[0]


@wp.kernel
def kernel(x: wp.array2d(dtype=float), o: wp.array(dtype=float), n: int):
    o[0] = x[0:2, 1]
    #      ^^^^^^^^^ E104 a value is needed here, but `x[0:2, 1]` is an array
    o[1] = x[0][1][2]
    #      ^^^^^^^^^^ E109 a number takes no indices
    o[2] = x[::0.5][0, 0]
    #          ^^^ E104 a step must be an integer, but this is float32
    o[3] = x[::0][0, 0]
    #          ^ E104 Slice step cannot be zero
    o[4] = x[0.5:][0, 0]
    #        ^^^ E104 a bound of a slice must be an integer, but this is float32
    o[5] = total(x)
    #            ^ E104 but this is array(dtype=float32, ndim=2)
    o[6] = total(x[0, 0])
    #            ^^^^^^^ E104 but this is float32
    w = (o, n)[n:1]
    #          ^ E104 the bounds of a slice of a vector, matrix or tuple
    x[0] = o
    # ^^ E109 the array has 2 dimensions, but 1 index is given
    o[0:2] = 1.0
    # ^^^^ E104 is an array
    o[7] = wp.sin(x[0])
    #             ^^^^ E109 the array has 2 dimensions, but 1 index is given


@wp.kernel
def rebinding(x: wp.array2d(dtype=float), y: wp.array2d(dtype=float),
              o: wp.array(dtype=float), n: int):
    row = x[0]
    if n > 1:
        row = y
        # ^ E105 `row` would stand for different arrays
    o[0] = row[0]
    own = wp.zeros((2, 2), dtype=float)
    part = x[0]
    for i in range(n):
        o[1] = part[0]
        part = own[0]
        # ^^ E105 `part` would stand for different arrays
    other = x[0] if n > 2 else y
    #       ^^^^^^^^^^^^^^^^^^^^ E104 must have one type, but they are
    whole = x if n > 2 else own
    #       ^^^^^^^^^^^^^^^^^^^ E104 refer to different arrays, of which one is local
