# fmt: off
import engine as wp


@wp.func
def square(x: float, a: wp.array(dtype=float)):
    return x * x


@wp.func_grad(square)
def adj_square(x: float, a: wp.array(dtype=float), adj_ret: float):
    wp.adjoint[a][0] += adj_ret
    # ^^^^^^^^^^^ E112 the adjoint of an array is not supported
    wp.adjoint[adj_ret] += 1.0
    #          ^^^^^^^ E102 `adj_ret` is not an input that has a derivative
    return x
    # ^^^^^^ E109 a custom gradient cannot return a value


@wp.func
def cube(x: float):
    return x * x * x


@wp.func_grad(cube)
def adj_cube(x: float):
# ^^^^^^^^^^^^^^^^^^^^^ E109 a gradient of `cube` takes 2 parameters, but `adj_cube` has 1
    wp.adjoint[x] += 1.0


@wp.func
def fourth(x: float):
    return x * x * x * x


@wp.func_grad(fourth)
def adj_fourth(x: float, adj_ret: int):
    #                    ^^^^^^^^^^^^ E104 must have type float32, but is annotated int32
    wp.adjoint[x] += 1.0


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    a[0] = square(a[1], a) + cube(a[1]) + fourth(a[1])
    wp.adjoint[a] += 1.0
    # ^^^^^^^^^^^ E106 `adjoint` has a meaning only in a custom gradient
