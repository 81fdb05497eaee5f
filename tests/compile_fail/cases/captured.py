# fmt: off
import numpy as np

import engine as wp

table = [1.0, 2.0]
grid = np.zeros(3)
device_array = wp.zeros(3, dtype=float)
name = "x"


class Config:
    dt = 0.1


config = Config()


@wp.kernel
def kernel(a: wp.array(dtype=float)):
    a[0] = table[0]
    #      ^^^^^ E107 `table` is a list, which a kernel cannot capture
    a[0] = grid[0]
    #      ^^^^ E107 `grid` is an array, which a kernel cannot capture
    a[0] = device_array[0]
    #      ^^^^^^^^^^^^ E107 `device_array` is an array, which a kernel cannot capture
    a[0] = name
    #      ^^^^ E107 `name` is a string, which a kernel cannot capture
    a[0] = config.dt
    #      ^^^^^^ E107 `config` is an object of type `Config`, which a kernel cannot capture
    a[0] = Config.dt
