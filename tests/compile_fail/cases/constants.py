# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    s = "text"
    #   ^^^^^^ E101 a string is not supported
    n = None
    #   ^^^^ E101 `None` is not supported
    c = 1j
    #   ^^ E101 a complex number is not supported
    f = f"{a}"
    #   ^^^^^^ E101 an f-string is not supported
    b = b"x"
    #   ^^^^ E101 a bytes literal is not supported
    a[0] = a[1:2]
    #      ^^^^^^ E104 a value is needed here, but `a[1:2]` is an array
    if n is None:
    #  ^^^^^^^^^ E101 `is` is not supported
        a[1] = 1.0
    if 1 in a:
    #  ^^^^^^ E101 `in` asks for the items of tuples only
        a[1] = 1.0
