"""Register two pictures: the shift between them, with a lookup of the nearest pixel."""

# expect: exit=1
import numpy as np

import engine as wp

SIDE = 16


@wp.kernel
def warp_image(
    image: wp.array2d(dtype=float), shift: wp.array(dtype=float), out: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    # The shift moves the picture by whole pixels only, and a cast has no derivative.
    row = wp.clamp(int(float(i) + shift[0] + 0.5), 0, image.shape[0] - 1)  # expect: G004 a
    col = wp.clamp(int(float(j) + shift[1] + 0.5), 0, image.shape[1] - 1)  # expect: G004 a
    out[i, j] = image[row, col]  # expect: G004 a


@wp.kernel
def photometric(
    out: wp.array2d(dtype=float), fixed: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = out[i, j] - fixed[i, j]
    wp.atomic_add(loss, 0, d * d)


def main():
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    moving = wp.array(np.exp(-((x - 7.0) ** 2 + (y - 7.0) ** 2) / 12.0), dtype=float)
    fixed = wp.array(np.exp(-((x - 9.0) ** 2 + (y - 8.0) ** 2) / 12.0), dtype=float)
    shift = wp.array([0.2, -0.3], dtype=float, requires_grad=True)
    for iteration in range(3):
        out = wp.zeros((SIDE, SIDE), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(warp_image, dim=(SIDE, SIDE), inputs=[moving, shift], outputs=[out])
            wp.launch(photometric, dim=(SIDE, SIDE), inputs=[out, fixed], outputs=[loss])
        tape.backward(loss)
        shift.assign(shift.numpy() - 0.1 * shift.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], shift.numpy())


if __name__ == "__main__":
    main()
