"""Blind deconvolution of a picture: a 3 x 3 kernel with clamped indices at the border."""

# expect: exit=0
import numpy as np

import engine as wp

H = 9
W = 12


@wp.func
def at(image: wp.array2d(dtype=float), i: int, j: int) -> float:
    return image[wp.clamp(i, 0, image.shape[0] - 1), wp.clamp(j, 0, image.shape[1] - 1)]


@wp.kernel
def blur(
    image: wp.array2d(dtype=float), taps: wp.array2d(dtype=float), out: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    total = float(0.0)
    for a in range(3):
        for b in range(3):
            total += taps[a, b] * at(image, i + a - 1, j + b - 1)
    out[i, j] = total


@wp.kernel
def difference(
    out: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    wp.atomic_add(loss, 0, (out[i, j] - seen[i, j]) * (out[i, j] - seen[i, j]))


def main():
    rng = np.random.default_rng(68)
    image = wp.array(rng.uniform(0.0, 1.0, (H, W)), dtype=float, requires_grad=True)
    seen = wp.array(rng.uniform(0.2, 0.8, (H, W)), dtype=float)
    taps = wp.full((3, 3), 1.0 / 9.0, dtype=float, requires_grad=True)
    for iteration in range(4):
        out = wp.zeros((H, W), dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(blur, dim=(H, W), inputs=[image, taps], outputs=[out])
            wp.launch(difference, dim=(H, W), inputs=[out, seen], outputs=[loss])
        tape.backward(loss)
        image.assign(image.numpy() - 0.1 * image.grad.numpy())
        taps.assign(taps.numpy() - 0.001 * taps.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
