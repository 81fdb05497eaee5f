# fmt: off
import engine as wp


@wp.struct
class Holder:
    data: wp.array(dtype=float)


@wp.func
def scaled(a: wp.array(dtype=float), by: float):
    return a[0] * by


@wp.func_grad(scaled)
def adj_scaled(a: wp.array(dtype=float), by: float, adj: float):
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E110 with a local array
    wp.adjoint[by] += adj


@wp.kernel
def kernel(o: wp.array(dtype=float), n: int):
    a = wp.zeros(n, dtype=float)
    #            ^ E104 the shape of a local array must be 1 to 4 constant positive integers
    b = wp.zeros(shape=(2, 0), dtype=float)
    #                  ^^^^^^ E104 the shape of a local array must be 1 to 4 constant
    c = wp.zeros(shape=(64, 32), dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 at most 1024 components, but this one has 2048
    d = wp.zeros(dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^ E109 a local array takes a shape and a dtype
    e = wp.zeros(4, dtype=o)
    #                     ^ E104 this is not a type of elements
    f = wp.zeros(4, device=0)
    #                      ^ E106 a local array takes no argument `device`
    g = wp.zeros(4, dtype=Holder)
    #                     ^^^^^^ E104 elements of an array cannot hold arrays
    h = wp.zeros(4, dtype=float)
    o[9] = h[4]
    #        ^ E104 index 4 is out of range for 4 elements
    h[0] = wp.vec3()
    #      ^^^^^^^^^ E104 an element of this array has type float32, but this is vec3
    s = Holder()
    s.data = h
    #        ^ E104 cannot hold a local array
    o[0] = h
    #      ^ E104 is an array
    o[1] = scaled(h, 2.0)
    p = wp.empty(4, dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^ E106 cannot be called in a kernel


@wp.kernel
def variables(o: wp.array(dtype=float), n: int):
    abc = wp.zeros(4, dtype=float)
    for i in range(n):
        abc = wp.zeros(5, dtype=float)
        # ^ E105 `abc` would stand for different arrays
    o[0] = abc[0]
