# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), n: int):
    for i in range(n):
        total = total + a[i]
        #       ^^^^^ E102 `total` is read before it has a value
    gravity += 1.0
    # ^^^^^ E102 `gravity` is read before it has a value
    a[0] = total


gravity = 9.8
