"""Constructive solids by min and max of distances, all of them away from ties."""

# expect: exit=0
import numpy as np

import engine as wp

PROBES = 18


@wp.func
def sphere(p: wp.vec3, center: wp.vec3, radius: float) -> float:
    return wp.length(p - center) - radius


@wp.func
def scene(p: wp.vec3, shape: wp.array(dtype=float)) -> float:
    ball = sphere(p, wp.vec3(shape[0], 0.2, 0.0), shape[1])
    hole = sphere(p, wp.vec3(0.3, shape[2], 0.1), shape[3])
    floor = p[1] + 1.0
    return wp.min(floor, wp.max(ball, -hole))


@wp.kernel
def occlusion(
    probe: wp.array(dtype=wp.vec3), shape: wp.array(dtype=float), out: wp.array(dtype=float)
):
    i = wp.tid()
    shadow = float(1.0)
    for k in range(5):
        h = 0.15 * float(k + 1)
        d = scene(probe[i] + wp.vec3(0.0, h, 0.02 * h), shape)
        shadow = wp.min(shadow, wp.clamp(0.5 + 2.0 * d / h, 0.0, 1.0))
    out[i] = shadow


@wp.kernel
def compare(out: wp.array(dtype=float), photo: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - photo[i]) * (out[i] - photo[i]))


def main():
    rng = np.random.default_rng(72)
    probe = wp.array(rng.uniform(-0.8, 0.8, (PROBES, 3)) - [0.0, 0.6, 0.0], dtype=wp.vec3)
    photo = wp.array(rng.uniform(0.3, 0.8, PROBES), dtype=float)
    shape = wp.array([0.05, 0.4, 0.33, 0.21], dtype=float, requires_grad=True)
    for iteration in range(3):
        out = wp.zeros(PROBES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(occlusion, dim=PROBES, inputs=[probe, shape], outputs=[out])
            wp.launch(compare, dim=PROBES, inputs=[out, photo], outputs=[loss])
        tape.backward(loss)
        shape.assign(shape.numpy() - 0.01 * shape.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
