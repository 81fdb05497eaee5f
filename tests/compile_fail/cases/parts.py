# fmt: off
import engine as wp


@wp.kernel
def slicing(a: wp.array(dtype=wp.vec4), m: wp.mat33, n: int, y: wp.array(dtype=float)):
    v = a[0]
    y[0] = v[n:][0]
    #        ^ E104 the bounds of a slice of a vector, matrix or tuple are constant integers
    y[0] = v[2:2][0]
    #             ^ E104 index 0 is out of range for 0 components
    y[0] = v[::0][0]
    #          ^ E104 the step of a slice is 0
    y[0] = v[1:3][2]
    #             ^ E104 index 2 is out of range for 2 components
    y[0] = v[1:3][0, 1]
    #      ^^^^^^^^^^^^ E109 a vec2 takes 1 index, but 2 are given
    y[0] = m[0, :, 1][0]
    #      ^^^^^^^^^^ E109 a mat33 takes 2 indices, but 3 are given
    v[1:3] = wp.vec3(1.0, 2.0, 3.0)
    #        ^^^^^^^^^^^^^^^^^^^^^^ E104 `v[1:3]` has type vec2, but this is vec3
    v[1:3] = 1
    v[1:3] += n
    # ^^^^^^^^^ E104 `+` cannot combine vec2 and int32
    a[0][1:3] = wp.vec2d()
    #           ^^^^^^^^^^ E104 `a[0][1:3]` has type vec2, but this is vec2d
    m[:, 0] = n
    #         ^ E104 `m[:, 0]` has type float32, but this is int32
    y[0] = a[0:2][0].v
    #      ^^^^^^^^^^^ E102 vec4 has no attribute `v`
    y[0] = v["a":][0]
    #        ^^^ E101 a string is not supported in kernels
    n[1:] = 2
    # ^^^ E109 a number takes no indices, but 1 is given


@wp.kernel
def members(t: wp.transform, q: wp.quat, y: wp.array(dtype=float)):
    y[0] = t.x
    #      ^^^ E102 transform has no attribute `x`
    y[0] = q.p
    #      ^^^ E102 quat has no attribute `p`
    y[0] = t.q.v
    #      ^^^^^ E102 quat has no attribute `v`
    y[0] = t.p.w
    #      ^^^^^ E102 vec3 has no attribute `w`
    t.p = q
    #     ^ E104 `t.p` has type vec3, but this is quat
    t.q = wp.vec4()
    #     ^^^^^^^^^ E104 `t.q` has type quat, but this is vec4
    t.p[3] = 1.0
    #   ^ E104 index 3 is out of range for 3 components


@wp.kernel
def mixing(t: wp.transform, q: wp.quat, d: wp.quatd, v: wp.vec4, y: wp.array(dtype=float)):
    a = q + v
    #   ^^^^^ E104 `+` cannot combine quat and vec4
    b = q * d
    #   ^^^^^ E104 `*` cannot combine quat and quatd
    c = q * v
    #   ^^^^^ E104 `*` cannot combine quat and vec4
    e = t * v
    #   ^^^^^ E104 `*` cannot combine transform and vec4
    f = wp.cw_mul(q, q)
    #   ^^^^^^^^^^^^^^^ E104 `cw_mul` does not take (quat, quat)
    g = wp.dot(t, t)
    #   ^^^^^^^^^^^^ E104 `dot` does not take (transform, transform)
    h = wp.abs(q)
    #   ^^^^^^^^^ E104 `abs` does not take (quat)
    i = wp.outer(q, q)
    #   ^^^^^^^^^^^^^^ E104 `outer` does not take (quat, quat)
    j = wp.mat44() * q
    #   ^^^^^^^^^^^^^^ E104 `*` cannot combine mat44 and quat
    k = q
    k = v
    #   ^ E105 `k` has type quat, but this is vec4


@wp.kernel
def making(v: wp.vec3, q: wp.quat, h: wp.float16, y: wp.array(dtype=float)):
    a = wp.vector(length=0, dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 `vector` makes no value: the length is a constant
    b = wp.vector(dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^^ E104 `vector` makes no value: its length is missing
    c = wp.vector(1.0, h)
    d = wp.vector(y[0], h)
    #   ^^^^^^^^^^^^^^^^^^ E104 `vector` makes no value: its components have several types
    e = wp.matrix(1.0, 2.0)
    #   ^^^^^^^^^^^^^^^^^^^ E104 `matrix` makes no value: its shape is missing
    f = wp.matrix(1.0, 2.0, shape=(2, 2))
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E109 mat22 takes 4 components, got 2
    g = wp.matrix(shape=3, dtype=float)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 `matrix` makes no value: the shape of a matrix is
    i = wp.quaternion(v, h)
    #                 ^ E104 a component of quat is a number, but this is vec3
    j = wp.transform(q, v)
    #                ^ E104 a component of transform is a number, but this is quat
    k = wp.types.vector(length=3, dtype=wp.vec3)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 `vector` makes no type: the dtype is a scalar
    l = wp.types.quaternion(dtype=int)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ E104 `quaternion` makes no type: components of a quaternion
    m = wp.vector(1.0, size=3)
    #   ^^^^^^^^^^^^^^^^^^^^^^ E104 `vector` makes no value: there is no argument `size`
    n = wp.quat_identity(int)
    #                    ^^^ E104 `quat_identity`: the dtype is a float type
    o = wp.transform_identity(1, 2)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^^^ E109 `transform_identity` takes a dtype or nothing
    p = h * y[0]
    #   ^^^^^^^^ E104 `*` cannot combine float16 and float32
    r = wp.spatial_vector(v, q)
    #                     ^ E104 a component of spatial_vector is a number, but this is vec3
