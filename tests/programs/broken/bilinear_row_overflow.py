"""Deblur a picture with a small horizontal kernel; the last column runs into the next row."""

# expect: exit=1
import numpy as np

import engine as wp

H = 9
W = 11


@wp.kernel
def blur(image: wp.array2d(dtype=float), taps: wp.array(dtype=float), out: wp.array2d(dtype=float)):
    i, j = wp.tid()
    right = image[i, j + 1]  # expect: G008
    below = image[i + 1, j]
    out[i, j] = taps[0] * image[i, j] + taps[1] * right + taps[2] * below


@wp.kernel
def picture_error(
    out: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = out[i, j] - seen[i, j]
    wp.atomic_add(loss, 0, d * d / float(out.shape[0] * out.shape[1]))


def main():
    rng = np.random.default_rng(32)
    sharp = rng.uniform(0.0, 1.0, (H + 1, W))
    seen = wp.array(0.7 * sharp[:H] + 0.3 * np.roll(sharp[:H], -1, axis=1), dtype=float)
    image = wp.array(sharp, dtype=float)
    taps = wp.array([1.0, 0.0, 0.0], dtype=float, requires_grad=True)
    for iteration in range(5):
        out = wp.zeros((H, W), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(blur, dim=(H, W), inputs=[image, taps], outputs=[out])
            wp.launch(picture_error, dim=(H, W), inputs=[out, seen], outputs=[loss])
        tape.backward(loss)
        taps.assign(taps.numpy() - 0.5 * taps.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], taps.numpy())


if __name__ == "__main__":
    main()
