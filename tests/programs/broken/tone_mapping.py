"""Recover the exposure of every light of a small scene from a tone-mapped photograph."""

# expect: exit=1
import numpy as np

import engine as wp

LIGHTS = 5
PIXELS = 64


@wp.func
def reinhard(radiance: float) -> float:
    return radiance / (1.0 + radiance)


@wp.func_grad(reinhard)
def adj_reinhard(radiance: float, adj_ret: float):  # expect: G001 a
    # The derivative of r / (1 + r) has a square below.
    wp.adjoint[radiance] += adj_ret / (1.0 + radiance)  # expect: G001 a


@wp.kernel
def shade(
    basis: wp.array2d(dtype=float),
    exposure: wp.array(dtype=float),
    image: wp.array(dtype=float),
):
    pixel = wp.tid()
    radiance = float(0.0)
    for light in range(exposure.shape[0]):
        radiance += basis[pixel, light] * wp.exp(exposure[light])
    image[pixel] = reinhard(radiance)


@wp.kernel
def photo_error(
    image: wp.array(dtype=float), photo: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    pixel = wp.tid()
    d = image[pixel] - photo[pixel]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(1)
    basis = wp.array(rng.uniform(0.0, 1.0, (PIXELS, LIGHTS)), dtype=float)
    truth = wp.array(rng.normal(0.0, 0.5, LIGHTS), dtype=float)
    photo = wp.zeros(PIXELS, dtype=float)
    wp.launch(shade, dim=PIXELS, inputs=[basis, truth], outputs=[photo])

    exposure = wp.zeros(LIGHTS, dtype=float, requires_grad=True)
    for iteration in range(12):
        image = wp.zeros(PIXELS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(shade, dim=PIXELS, inputs=[basis, exposure], outputs=[image])
            wp.launch(photo_error, dim=PIXELS, inputs=[image, photo], outputs=[loss])
        tape.backward(loss)
        exposure.assign(exposure.numpy() - 0.2 * exposure.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
