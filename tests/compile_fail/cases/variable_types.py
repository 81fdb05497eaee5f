# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), c: wp.array(dtype=float), n: int):
    count = 0
    for i in range(n):
        count = a[i]
        #       ^^^^ E105 `count` has type int32, but this is float32
    x = a[0]
    x = b[0]
    #   ^^^^ E105 `x` has type float32, but this is vec3
    y: int = 1.5
    #        ^^^ E105 `y` has type int32, but this is float32
    target = a
    if n > 0:
        target = b
        #        ^ E105 `target` has type array(dtype=float32), but this is array(dtype=vec3)
    if n > 1:
        target = c
    a[0] = x
    target[0] = 1.0
