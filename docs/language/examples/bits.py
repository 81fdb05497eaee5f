"""Counting and moving bits; the bytes of a float."""

import engine as wp


@wp.kernel
def spread(x: wp.array(dtype=wp.uint32), ones: wp.array(dtype=int), y: wp.array(dtype=wp.uint32)):
    i = wp.tid()
    ones[i] = wp.bit_count(x[i])
    y[i] = ((x[i] << wp.uint32(4)) | x[i]) & wp.uint32(255)


x = wp.array([1, 6, 15], dtype=wp.uint32)
ones, y = wp.zeros(3, dtype=int), wp.zeros(3, dtype=wp.uint32)
wp.launch(spread, dim=3, inputs=[x], outputs=[ones, y])
print("bits set:", ones)
print("spread:  ", y)
print("bytes of 1.0:", hex(wp.cast(wp.float32(1.0), wp.uint32)))
