"""A soft histogram of a picture: two pixels of one bin add to it without an atomic."""

# expect: exit=1
import numpy as np

import engine as wp

PIXELS = 40
BINS = 6


@wp.kernel
def brighten(pixel: wp.array(dtype=float), gain: wp.array(dtype=float), out: wp.array(dtype=float)):
    p = wp.tid()
    out[p] = gain[0] * pixel[p]


@wp.kernel
def fill_bins(
    pixel: wp.array(dtype=float), bin_of: wp.array(dtype=int), histogram: wp.array(dtype=float)
):
    p = wp.tid()
    b = bin_of[p]
    so_far = histogram[b]  # expect: G009 a
    histogram[b] = so_far + pixel[p]  # expect: G009 a


@wp.kernel
def bin_error(
    histogram: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    b = wp.tid()
    d = histogram[b] - wanted[b]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(36)
    values = rng.uniform(0.0, 1.0, PIXELS)
    pixel = wp.array(values, dtype=float)
    bin_of = wp.array(np.minimum(values * BINS, BINS - 1).astype(np.int32), dtype=int)
    wanted = wp.full(BINS, 4.0, dtype=float)
    gain = wp.array([0.5], dtype=float, requires_grad=True)
    for iteration in range(4):
        bright = wp.zeros(PIXELS, dtype=float, requires_grad=True)
        histogram = wp.zeros(BINS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(brighten, dim=PIXELS, inputs=[pixel, gain], outputs=[bright])
            wp.launch(fill_bins, dim=PIXELS, inputs=[bright, bin_of], outputs=[histogram])
            wp.launch(bin_error, dim=BINS, inputs=[histogram, wanted], outputs=[loss])
        tape.backward(loss)
        gain.assign(gain.numpy() - 0.001 * gain.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], gain.numpy())


if __name__ == "__main__":
    main()
