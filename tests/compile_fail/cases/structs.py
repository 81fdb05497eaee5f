# fmt: off
import engine as wp


@wp.struct
class Body:
    mass: float
    pos: wp.vec3


@wp.struct
class Other:
    mass: float


@wp.struct
class Bag:
    body: Body
    data: wp.array(dtype=float)


CAPTURED = Body()


@wp.func
def take(b: Body):
    return b.mass


@wp.func
def mixed(b: Body, flag: bool):
    if flag:
        return b
    return Other()
    # ^^^^^^^^^^^^ E104 Other returned here, but Body on line 33


@wp.func
def two_arrays(x: wp.array(dtype=float), y: wp.array2d(dtype=float), flag: bool):
    if flag:
        return x
    return y
    # ^^^^^^ E104 array(dtype=float32, ndim=2) returned here, but array(dtype=float32) on line 41


@wp.func
def two_local_arrays(flag: bool):
    a = wp.zeros(3, dtype=float)
    b = wp.zeros(4, dtype=float)
    if flag:
        return a
    return b
    # ^^^^^^ E104 this is another array than the one returned on line 51


@wp.func
def annotated(g: Bag) -> wp.array(dtype=int):
    return g.data
    # ^^^^^^^^^^^ E104 the annotation of the result says array(dtype=int32), but this is


@wp.func
def part_of_local():
    a = wp.zeros(shape=3, dtype=float)
    return a[1:]
    #      ^^^^^ E104 a function cannot return a part of a local array


@wp.kernel
def kernel(a: wp.array(dtype=Body), o: wp.array(dtype=float), g: Bag):
    b = a[0]
    o[0] = b
    #      ^ E104 `b` is a struct of type Body
    o[0] = b.mas
    #      ^^^^^ E102 Body has no field `mas`
    o[0] = b + b
    #      ^ E104 a value is needed here, but `b` is a struct of type Body
    #          ^ E104 a value is needed here, but `b` is a struct of type Body
    b.mass = True
    #        ^^^^ E104 has type float32, but this is bool
    b.pos = 1.0
    #       ^^^ E104 has type vec3, but this is float32
    a[0] = Other()
    #      ^^^^^^^ E104 has type Body, but this is Other
    a[0].pos = wp.vec2(0.0)
    #          ^^^^^^^^^^^^ E104 an element of `a.pos` has type vec3, but this is vec2
    c = Body(1.0, wp.vec3(), 2.0)
    #   ^^^^^^^^^^^^^^^^^^^^^^^^^ E109 Body has 2 fields, got 3 values
    d = Body(mess=1.0)
    #             ^^^ E106 Body has no field `mess`
    e = Body(1.0, mass=2.0)
    #                  ^^^ E106 field `mass` is given twice
    f = Body(1)
    o[1] = take(Other())
    #           ^^^^^^^ E104 parameter `b` of `take` has type Body, but this is Other
    o[2] = take(1.0)
    #           ^^^ E104 parameter `b` of `take` has type Body, but this is float32
    o[3] = b[0]
    #      ^ E104 a value is needed here, but `b` is a struct of type Body
    o[4] = f.mass + CAPTURED.mass
    #               ^^^^^^^^ E107 `CAPTURED` is a value of the struct `Body`
    wp.atomic_add(a, 0, b)
    #                   ^ E104 a value is needed here
    wp.atomic_add(a, 0, 1.0)
    # ^^^^^^^^^^^^^^^^^^^^^^ E104 `atomic_add` does not work on structs
    if b:
    #  ^ E104 a value is needed here, but `b` is a struct
        o[5] = 1.0


@wp.kernel
def variables(a: wp.array(dtype=Body), o: wp.array(dtype=float), g: Bag,
              wide: wp.array2d(dtype=float)):
    b = a[0]
    for i in range(3):
        b = Other()
        #   ^^^^^^^ E105 `b` has type Body, but this is Other
        b = 1.0
        #   ^^^ E105 `b` has type Body, but this is float32
    m = 1.0
    for i in range(3):
        o[0] = m
        m = a[0]
        #   ^^^^ E105 `m` has type float32, but this is Body
    take(mixed(b, True))
    h = Bag()
    o[0] = h.data[0]
    #      ^^^^^^ E102 `h.data` holds no array here
    h.data = o
    h.data = g.data
    if o[0] > 1.0:
        h.data = o
    h.data = a
    #        ^ E104 has type array(dtype=float32), but this is array(dtype=Body)
    k = two_arrays(o, wide, False)
    n = two_local_arrays(False)
    annotated(g)
    part_of_local()
