# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    import math
    # ^^^^^^^^^ E101 `import` inside a kernel is not supported

    def helper(x):
        # ^^^^^^^^^ E101 a function inside a kernel is not supported
        return x * 2.0

    f = lambda x: x + 1.0
    #   ^^^^^^^^^^^^^^^^^ E101 `lambda` is not supported
    a[0] = helper(f(a[0])) + math.pi
