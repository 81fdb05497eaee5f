# fmt: off
import engine as wp


@wp.func
def square(x: float, a: wp.array(dtype=int)):
    return x * x


@wp.func_grad(square)
def adj_square(x: float, a: wp.array(dtype=int), adj_ret: float):
    wp.adjoint[a][0] += adj_ret
    #          ^ E102 `a` is not an input that has a derivative
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


@wp.func
def counted(n: wp.array(dtype=int)):
    return wp.atomic_add(n, 0, 1)


@wp.func_replay(counted)
def replay_counted(n: wp.array(dtype=int)):
# ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E110 the replay `replay_counted` writes memory
    return wp.atomic_add(n, 0, -1)


@wp.kernel
def kernel(a: wp.array(dtype=float), n: wp.array(dtype=int)):
    a[0] = float(counted(n))
    a[0] = square(a[1], n) + cube(a[1]) + fourth(a[1])
    wp.adjoint[a] += 1.0
    # ^^^^^^^^^^^ E106 `adjoint` has a meaning only in a custom gradient
