# fmt: off
from typing import Any

import engine as wp


@wp.kernel
def kernel(a, b: "no_such_type", c: str, d: Any, e: wp.array(dtype=float), *rest):
    #      ^ E103 parameter `a` has no annotation
    #         ^^^^^^^^^^^^^^^^^ E103 parameter `b`
    #                            ^^^^^^ E103 parameter `c`
    #                                    ^^^^^^ E103 parameter `d` may have any type here
    #                                                                       ^^^^ E103 `*rest`
    x: str = 1.0
    #  ^^^ E103 `str` is not a type
    y: wp.array(dtype=float)
    #  ^^^^^^^^^^^^^^^^^^^^^ E103 a local variable for an array needs the array
    e[0] = x
