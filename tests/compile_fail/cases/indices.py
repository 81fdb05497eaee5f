# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), m: wp.array2d(dtype=float), x: float):
    v = wp.vec3(1.0, 2.0, 3.0)
    a[0] = v[3]
    #        ^ E104 index 3 is out of range
    a[0] = a[x]
    #        ^ E104 an index must be an integer, but this is float32
    a[0] = m[0]
    #      ^^^^ E109 the array has 2 dimensions, but 1 index is given
    a[0] = m[0, 1, 2]
    #      ^^^^^^^^^^ E109 the array has 2 dimensions, but 3 indices are given
    a[0] = x[0]
    #      ^^^^ E109 a number takes no indices
    m[0] += 1.0
    # ^^ E109 the array has 2 dimensions, but 1 index is given
    a.shape = 3
    # ^^^^^ E101 `a.shape` cannot be assigned to
    wp.abs(v)[0] = 1.0
    # ^^^^^^^^^^ E101 cannot be assigned to
