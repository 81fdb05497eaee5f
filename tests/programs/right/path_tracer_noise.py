"""Monte Carlo rendering: random directions in the kernel, from a seed and the thread's number."""

# expect: exit=0
import numpy as np

import engine as wp

PIXELS = 16
SAMPLES = 12


@wp.kernel
def render(
    seed: int,
    material: wp.array(dtype=wp.vec3),
    sun: wp.array(dtype=wp.vec3),
    image: wp.array(dtype=wp.vec3),
):
    pixel = wp.tid()
    state = wp.rand_init(seed, pixel)
    total = wp.vec3(0.0, 0.0, 0.0)
    for _ in range(SAMPLES):
        d = wp.sample_unit_hemisphere(state)
        lobe = wp.exp(4.0 * (wp.dot(d, wp.normalize(sun[0])) - 1.0))
        total += wp.cw_mul(material[pixel % 4], wp.vec3(1.0, 0.9, 0.8)) * lobe * d[2]
    image[pixel] = total / float(SAMPLES)


@wp.kernel
def difference(
    image: wp.array(dtype=wp.vec3), photo: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    pixel = wp.tid()
    d = image[pixel] - photo[pixel]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def main():
    rng = np.random.default_rng(92)
    photo = wp.array(rng.uniform(0.1, 0.5, (PIXELS, 3)), dtype=wp.vec3)
    material = wp.array(rng.uniform(0.3, 0.9, (4, 3)), dtype=wp.vec3, requires_grad=True)
    sun = wp.array([[0.3, 0.2, 0.9]], dtype=wp.vec3, requires_grad=True)
    for iteration in range(4):
        image = wp.zeros(PIXELS, dtype=wp.vec3, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(render, dim=PIXELS, inputs=[iteration, material, sun], outputs=[image])
            wp.launch(difference, dim=PIXELS, inputs=[image, photo], outputs=[loss])
        tape.backward(loss)
        for p, rate in ((material, 0.05), (sun, 0.02)):
            p.assign(p.numpy() - rate * p.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
