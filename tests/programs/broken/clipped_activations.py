"""Train a tiny recurrent cell; its activations are clipped on the host for a histogram."""

# expect: exit=1
import numpy as np

import engine as wp

UNITS = 6


@wp.kernel
def cell(
    h: wp.array(dtype=float), w: wp.array2d(dtype=float), u: float, out: wp.array(dtype=float)
):
    i = wp.tid()
    total = u
    for k in range(h.shape[0]):
        total += w[i, k] * h[k]  # expect: G003 a
    out[i] = total + 0.3 * wp.sin(total)


@wp.kernel
def readout(h: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    total = float(0.0)
    for k in range(h.shape[0]):
        total += h[k]
    loss[0] = (total - wanted) * (total - wanted)


def main():
    rng = np.random.default_rng(19)
    w = wp.array(rng.normal(scale=0.3, size=(UNITS, UNITS)), dtype=float, requires_grad=True)
    for epoch in range(3):
        states = [wp.zeros(UNITS, dtype=float, requires_grad=True) for _ in range(4)]
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for t, u in enumerate([1.0, -0.4, 0.7]):
                wp.launch(cell, UNITS, [states[t], w, u], [states[t + 1]])  # expect: G003 a
            wp.launch(readout, dim=1, inputs=[states[3], 0.5], outputs=[loss])
        seen = states[2].numpy()
        np.clip(seen, -0.25, 0.25, out=seen)  # expect: G003 a
        histogram = np.histogram(seen, bins=4)[0]
        tape.backward(loss)  # expect: G003 a
        w.assign(w.numpy() - 0.001 * w.grad.numpy())
        tape.zero()
        print(epoch, loss.numpy()[0], histogram)


if __name__ == "__main__":
    main()
