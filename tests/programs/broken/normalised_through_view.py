"""Fit a mixture of bumps to a spectrum; heights are rescaled through a NumPy view."""

# expect: exit=1
import numpy as np

import engine as wp

PEAKS = 4
BINS = 40


@wp.kernel
def spectrum(
    height: wp.array(dtype=float), place: wp.array(dtype=float), out: wp.array(dtype=float)
):
    b = wp.tid()
    x = float(b) / float(out.shape[0])
    total = float(0.0)
    for k in range(height.shape[0]):
        d = (x - place[k]) / 0.08
        total += height[k] * wp.exp(-d * d)  # expect: G003 a
    out[b] = total


@wp.kernel
def mismatch(
    model: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    b = wp.tid()
    d = model[b] - seen[b]
    wp.atomic_add(loss, 0, d * d)


def main():
    rng = np.random.default_rng(18)
    seen = wp.array(rng.uniform(0.0, 1.0, BINS), dtype=float)
    place = wp.array([0.15, 0.4, 0.6, 0.85], dtype=float, requires_grad=True)
    height = wp.array([1.0, 2.0, 0.5, 1.5], dtype=float, requires_grad=True)
    heights = height.numpy()  # shares the memory
    for _ in range(4):
        model = wp.zeros(BINS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(spectrum, BINS, [height, place], [model])  # expect: G003 a
            wp.launch(mismatch, dim=BINS, inputs=[model, seen], outputs=[loss])
        # Keep the sum of all heights, but the tape has not been run backward yet.
        heights[:] = heights / heights.sum()  # expect: G003 a
        tape.backward(loss)  # expect: G003 a
        place.assign(place.numpy() - 0.001 * place.grad.numpy())
        heights -= 0.002 * height.grad.numpy()
        tape.zero()
        print(loss.numpy()[0], place.numpy().round(3), heights.round(3))


if __name__ == "__main__":
    main()
