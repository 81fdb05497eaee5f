# fmt: off
import engine as wp


@wp.kernel
def kernel(a: wp.array(dtype=float), b: wp.array(dtype=wp.vec3), n: int, d: wp.uint64):
    i = wp.tid()
    x = a[i] + n
    #   ^^^^^^^^ E104 `+` cannot combine float32 and int32
    y = b[i] * b[i]
    #   ^^^^^^^^^^^ E104 `*` cannot combine vec3 and vec3
    z = n < d
    #   ^^^^^ E104 `<` cannot combine int32 and uint64
    w = ~a[i]
    #   ^^^^^ E104 `~` cannot be applied to float32
    u = a + 1.0
    #   ^ E104 a value is needed here, but this is an array
    if b[i]:
    #  ^^^^ E104 vec3 cannot be a condition
        a[i] = 1.0
    t = a[i] if n > 0 else n
    #   ^^^^^^^^^^^^^^^^^^^^ E104 must have one type, but they are float32 and int32
    a[i] = wp.dot(b[i], a[i])
    #      ^^^^^^^^^^^^^^^^^^ E104 `dot` does not take (vec3, float32)
    a[i] = n
    #      ^ E104 an element of `a` has type float32, but this is int32
    a[i] += n
    #       ^ E104 an element of `a` has type float32, but this is int32
    a[i] = 7.0 if x < y else z
    v = wp.vec3(1.0, n, 2.0)
    #                ^ E104 a component of vec3 has type float32, but this is int32
