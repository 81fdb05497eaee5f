"""Fit the frequencies of random features; the features are made before the tape is entered."""

# expect: exit=1
import numpy as np

import engine as wp

POINTS = 25
FEATURES = 5


@wp.kernel
def fourier_features(
    x: wp.array(dtype=float), frequency: wp.array(dtype=float), phi: wp.array2d(dtype=float)
):
    i, f = wp.tid()
    phi[i, f] = wp.cos(frequency[f] * x[i])  # expect: G004 a


@wp.kernel
def combine(phi: wp.array2d(dtype=float), a: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    total = float(0.0)
    for f in range(a.shape[0]):
        total += phi[i, f] * a[f]
    y[i] = total


@wp.kernel
def residual_norm(
    y: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - data[i]) * (y[i] - data[i]))


class Model:
    def __init__(self, rng):
        self.frequency = wp.array(rng.uniform(0.5, 4.0, FEATURES), dtype=float, requires_grad=True)
        self.amplitude = wp.array(rng.normal(size=FEATURES), dtype=float, requires_grad=True)

    def features(self, x):
        phi = wp.zeros((POINTS, FEATURES), dtype=float, requires_grad=True)
        inputs = [x, self.frequency]
        wp.launch(fourier_features, phi.shape, inputs=inputs, outputs=[phi])  # expect: G004 a
        return phi


def main():
    rng = np.random.default_rng(25)
    grid = np.linspace(-1.0, 1.0, POINTS)
    x, data = wp.array(grid, dtype=float), wp.array(np.abs(grid), dtype=float)
    model = Model(rng)
    for epoch in range(4):
        phi = model.features(x)  # expect: G004 a
        y = wp.zeros(POINTS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(combine, POINTS, [phi, model.amplitude], [y])  # expect: G004 a
            wp.launch(residual_norm, dim=POINTS, inputs=[y, data], outputs=[loss])
        tape.backward(loss)
        for p in (model.frequency, model.amplitude):
            p.assign(p.numpy() - 0.01 * p.grad.numpy())
        tape.zero()
        print(epoch, loss.numpy()[0])


if __name__ == "__main__":
    main()
