"""Focus a microscope by contrast: the variance as the mean of squares minus the squared mean."""

# expect: exit=0
import numpy as np

import engine as wp

PIXELS = 32


@wp.kernel
def expose(
    scene: wp.array(dtype=float), focus: wp.array(dtype=float), image: wp.array(dtype=float)
):
    p = wp.tid()
    blur = wp.exp(-(focus[0] - 0.3) * (focus[0] - 0.3))
    image[p] = 200000.0 + blur * scene[p]


@wp.kernel
def contrast(image: wp.array(dtype=float), loss: wp.array(dtype=float)):  # expect: warning[G011] a
    n = float(image.shape[0])
    mean = float(0.0)
    squares = float(0.0)
    for p in range(image.shape[0]):
        mean += image[p] / n
        squares += image[p] * image[p] / n
    # Two numbers near 4e10 are subtracted; their difference is about 1.
    loss[0] = -(squares - mean * mean)  # expect: warning[G011] a


def main():
    rng = np.random.default_rng(45)
    scene = wp.array(rng.normal(size=PIXELS), dtype=float)
    focus = wp.array([1.0], dtype=float, requires_grad=True)
    for step in range(3):
        image = wp.zeros(PIXELS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(expose, dim=PIXELS, inputs=[scene, focus], outputs=[image])
            wp.launch(contrast, dim=1, inputs=[image], outputs=[loss])  # expect: warning[G011] a
        tape.backward(loss)
        print(step, "contrast", -loss.numpy()[0], "gradient", focus.grad.numpy()[0])
        focus.assign(focus.numpy() - 0.01 * np.sign(focus.grad.numpy()))
        tape.zero()


if __name__ == "__main__":
    main()
