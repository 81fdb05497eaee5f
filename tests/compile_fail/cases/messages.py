# fmt: off
import engine as wp


@wp.kernel
def printing(a: wp.array(dtype=float), m: wp.array2d(dtype=float)):
    i = wp.tid()
    print(a)
    #     ^ E104 an array cannot be printed
    print(m[i])
    #     ^^^^ E109 the array has 2 dimensions, but 1 index is given
    print("x", nope)
    #          ^^^^ E102 `nope` is not defined
    print(f"{a[i]:.3f} {nope} {i} {i}")
    #     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E102 `nope` is not defined
    print(f"{a[i]!r:>4}")
    #     ^^^^^^^^^^^^^^ E101 this format is not supported
    print(i, end=i)
    #            ^ E106 `print` takes no argument `end` like this
    print(i, file=1)
    #             ^ E106 `print` takes no argument `file` like this
    a[0] = print(i)
    #      ^^^^^^^^ E109 this call gives no value
    a[0] = wp.sin("x")
    #             ^^^ E101 a string is not supported


@wp.kernel
def formats(a: wp.array(dtype=float)):
    i = wp.tid()
    printf("%d", a[i])
    #            ^^^^ E104 `%d` prints an integer, but this is float32
    wp.printf("%f", i)
    #               ^ E104 `%f` prints a float, but this is int32
    wp.printf("%f", wp.vec3())
    #               ^^^^^^^^^ E104 `%f` prints a float, but this is vec3
    wp.printf("%d %d", i)
    # ^^^^^^^^^^^^^^^^^^^ E109 there is no value for `%d`
    wp.printf("%d", i, i)
    #                  ^ E109 the format has no place for this value
    wp.printf("%p", i)
    #         ^^^^ E106 `%p` is not a format
    wp.printf(i)
    # ^^^^^^^^^^ E106 `printf` takes a format
    wp.printf()
    # ^^^^^^^^^ E106 `printf` takes a format


@wp.kernel
def tests(a: wp.array(dtype=float)):
    i = wp.tid()
    wp.expect_eq(i, a[i])
    # ^^^^^^^^^^^^^^^^^^^ E104 `==` cannot combine int32 and float32
    wp.expect_eq(i)
    # ^^^^^^^^^^^^^ E109 `expect_eq` got 1 arguments
    wp.expect_near(i, i)
    # ^^^^^^^^^^^^^^^^^^ E104 `expect_near` compares floats
    wp.expect_near(a[i], 1.0, wp.float64(0.1))
    #                         ^^^^^^^^^^^^^^^ E104 the tolerance must be float32
    assert wp.vec3()
    #      ^^^^^^^^^ E104 vec3 cannot be a condition


@wp.kernel
def places(a: wp.array(dtype=float), n: wp.array(dtype=int), m: wp.array(dtype=wp.mat33)):
    x = wp.cast(a[0], wp.float64)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^ E104 `cast` cannot read float32 as float64
    y = wp.cast(a[0])
    #   ^^^^^^^^^^^^^ E109 `cast` takes a value and a type
    z = wp.cast(a[0], 3)
    #                 ^ E104 the second argument of `cast` must be a type
    wp.atomic_or(a, 0, 1.0)
    # ^^^^^^^^^^^^^^^^^^^^^ E104 `atomic_or` changes bits of integers
    wp.atomic_cas(n, 0, 1)
    # ^^^^^^^^^^^^^^^^^^^^ E109 `atomic_cas` takes at least 4 arguments
    wp.atomic_exch(n, 0, 1.0)
    #                    ^^^ E104 an element of `n` has type int32, but this is float32
    k = wp.lower_bound(n, 1.0)
    #   ^^^^^^^^^^^^^^^^^^^^^^ E104 `lower_bound` does not take
    wp.qr3(m[0], m[1] * 2.0, m[2])
    #            ^^^^^^^^^^ E106 `qr3` assigns to this argument, but it is not a variable
    r = wp.randf(1.5)
    #   ^^^^^^^^^^^^^ E104 `randf` does not take (float32)
