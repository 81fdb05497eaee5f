# fmt: off
import engine as wp


@wp.func
def two(x: float):
    return x, x


@wp.func
def uneven(x: float):
    if x > 0.0:
        return x
    return x, x
    # ^^^^^^^^^ E109 2 values returned here, but 1 on line 13


@wp.func
def mixed(x: float):
    if x > 0.0:
        return x
    return 1 < 2
    # ^^^^^^^^^^ E104 bool returned here, but float32 on line 21


@wp.func
def annotated(x: float) -> int:
    return x
    #      ^ E104 the result has type int32, but this is float32


@wp.func
def silent(x: float) -> float:
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E109 `silent` is annotated with a result but returns nothing
    pass


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    i, j, k, l, m = wp.tid()
    #               ^^^^^^^^ E109 `tid` gives 1 to 4 values, not 5
    x, y, z = two(a[0])
    # ^^^^^ E109 3 names for 2 values
    p, q = a[0]
    # ^^ E109 2 names for one value of type float32
    a[0] = two(a[0])
    #      ^^^^^^^^^ E109 a value is needed here, but this is 2 values
    a[0] = uneven(a[0]) + uneven(a[0]) + mixed(a[0]) + annotated(a[0]) + silent(a[0])
    v = wp.vec3(1.0, 2.0)
    #   ^^^^^^^^^^^^^^^^^ E109 vec3 takes 3 components, got 2
    wp.atomic_add(a, 1.0)
    # ^^^^^^^^^^^^^^^^^^^ E109 `atomic_add` takes at least 3 arguments
    wp.atomic_add(a, 0, 0, 1.0)
    # ^^^^^^^^^^^^^^^^^^^^^^^^^ E109 `atomic_add` got 2 indices for an array of 1 dimension
    return a[0]
    # ^^^^^^^^^ E109 a kernel cannot return a value


@wp.kernel
def with_result(a: wp.array(dtype=float)) -> float:
    #                                        ^^^^^ E109 a kernel cannot return a value
    a[0] = 1.0
