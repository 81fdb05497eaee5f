# fmt: off
import engine as wp


@wp.func
def factorial(n: int):
    if n <= 1:
        return 1
    return n * factorial(n - 1)
    #          ^^^^^^^^^^^^^^^^ E108 `factorial` calls itself


@wp.func
def even(n: int):
    return odd(n - 1)


@wp.func
def odd(n: int):
    return even(n - 1)
    #      ^^^^^^^^^^^ E108 `even` calls itself (even -> odd -> even)


@wp.kernel
def kernel(a: wp.array(dtype=int)):
    a[0] = factorial(3)
    a[1] = even(4)
