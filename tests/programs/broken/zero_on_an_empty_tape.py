"""Fit a damped oscillator; the gradients are zeroed through a tape that knows no array yet."""

# expect: exit=1
import numpy as np

import engine as wp

SAMPLES = 30


@wp.kernel
def oscillator(p: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    t = 0.1 * float(i)
    y[i] = wp.exp(-p[0] * t) * wp.cos(p[1] * t)


@wp.kernel
def misfit(y: wp.array(dtype=float), data: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (y[i] - data[i]) * (y[i] - data[i]) / float(y.shape[0]))


class Fit:
    def __init__(self, start):
        self.p = wp.array(start, dtype=float, requires_grad=True)

    def step(self, data, rate):
        tape = wp.Tape()
        tape.zero()  # the arrays of a new tape: there are none
        y = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with tape:
            wp.launch(oscillator, dim=SAMPLES, inputs=[self.p], outputs=[y])
            wp.launch(misfit, dim=SAMPLES, inputs=[y, data], outputs=[loss])
        tape.backward(loss)  # expect: G013
        self.p.assign(self.p.numpy() - rate * self.p.grad.numpy())
        return float(loss.numpy()[0])


def main():
    time = 0.1 * np.arange(SAMPLES)
    data = wp.array(np.exp(-0.4 * time) * np.cos(2.0 * time), dtype=float)
    fit = Fit([0.2, 1.6])
    losses = [fit.step(data, 0.3) for _ in range(8)]
    print("losses", np.round(losses, 4), "parameters", fit.p.numpy())


if __name__ == "__main__":
    main()
