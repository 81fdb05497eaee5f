# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    i = wp.tid()
    assert i >= 0, i
    #              ^ E101 a message of `assert` that is not a string is not supported
    raise ValueError()
    # ^^^^^^^^^^^^^^^^ E101 `raise` is not supported


@wp.kernel
def blocks(a: wp.array(dtype=float)):
    global counter
    # ^^^^^^^^^^^^ E101 `global` is not supported
    try:
    # ^^ E101 `try` is not supported
        a[0] = 1.0
    finally:
        a[1] = 1.0
    with wp.ScopedTimer("t"):
    # ^^ E101 `with` is not supported
        a[2] = 1.0
    match 1:
    # ^^ E101 `match` is not supported
        case 1:
            a[3] = 1.0
    del a
    # ^^^ E101 `del` is not supported
