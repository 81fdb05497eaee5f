# fmt: off
import math

import engine as wp

gravity = 9.8


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    i = wp.tid()
    a[i] = gravty
    #      ^^^^^^ E102 `gravty` is not defined
    a[i] = wp.sine(a[i])
    #      ^^^^^^^ E102 `wp.sine` is not defined
    a[i] = math.tao
    #      ^^^^^^^^ E102 `math.tao` is not defined
    a[i] = later
    #      ^^^^^ E102 `later` is read before it has a value
    later = 1.0
    a[i] = self_made + 1.0
    #      ^^^^^^^^^ E102 `self_made` is not defined
    v = wp.vec3(1.0)
    a[i] = v.w
    #      ^^^ E102 vec3 has no attribute `w`
    a[i] = a.length
    #      ^^^^^^^^ E102 array(dtype=float32) has no attribute `length`
