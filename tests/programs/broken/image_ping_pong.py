"""Denoise a picture by edge-preserving diffusion, and learn the edge threshold."""

# expect: exit=1
import numpy as np

import engine as wp

wp.config.overwrites = "present"

SIDE = 12
PASSES = 5


@wp.func
def edge_stop(d: float, threshold: float) -> float:
    return d * wp.exp(-d * d / (threshold * threshold))


@wp.kernel
def diffuse(
    src: wp.array2d(dtype=float), threshold: wp.array(dtype=float), dst: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    c = src[i, j]  # expect: G003 a
    t = threshold[0]
    n = edge_stop(src[wp.max(i - 1, 0), j] - c, t)  # expect: G003 a
    s = edge_stop(src[wp.min(i + 1, src.shape[0] - 1), j] - c, t)  # expect: G003 a
    w = edge_stop(src[i, wp.max(j - 1, 0)] - c, t)  # expect: G003 a
    e = edge_stop(src[i, wp.min(j + 1, src.shape[1] - 1)] - c, t)  # expect: G003 a
    dst[i, j] = c + 0.2 * (n + s + w + e)  # expect: G003 a


@wp.kernel
def difference(
    image: wp.array2d(dtype=float), clean: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = image[i, j] - clean[i, j]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(12)
    clean = np.zeros((SIDE, SIDE))
    clean[3:9, 4:10] = 1.0
    noisy = clean + rng.normal(0.0, 0.1, clean.shape)
    clean = wp.array(clean, dtype=float)
    threshold = wp.array([0.6], dtype=float, requires_grad=True)
    for _ in range(3):
        # Two buffers are enough for the values, but not for the gradient.
        front = wp.array(noisy, dtype=float, requires_grad=True)
        back = wp.zeros_like(front)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for _ in range(PASSES):
                wp.launch(diffuse, (SIDE, SIDE), [front, threshold], [back])  # expect: G003 a
                front, back = back, front
            wp.launch(difference, dim=(SIDE, SIDE), inputs=[front, clean], outputs=[loss])
        tape.backward(loss)
        threshold.assign(threshold.numpy() - 0.02 * threshold.grad.numpy())
        tape.zero()
        print(loss.numpy()[0], threshold.numpy()[0])


if __name__ == "__main__":
    main()
