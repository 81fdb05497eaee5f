"""Calibrate a sensor model: one tape, and every launch is run again before each backward pass."""

# expect: exit=0
import numpy as np

import engine as wp

READINGS = 30


@wp.kernel
def linearise(raw: wp.array(dtype=float), p: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = wp.exp(p[0] * raw[i]) + p[1] * raw[i] * raw[i]


@wp.kernel
def compensate(x: wp.array(dtype=float), p: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = x[i] / (1.0 + p[2] * p[2] * x[i])


@wp.kernel
def squared(out: wp.array(dtype=float), truth: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - truth[i]) * (out[i] - truth[i]))


class Calibration:
    def __init__(self, raw, truth):
        self.raw, self.truth = wp.array(raw, dtype=float), wp.array(truth, dtype=float)
        self.p = wp.array([0.5, 0.1, 0.3], dtype=float, requires_grad=True)
        self.x = wp.zeros(READINGS, dtype=float, requires_grad=True)
        self.y = wp.zeros(READINGS, dtype=float, requires_grad=True)
        self.loss = wp.zeros(1, dtype=float, requires_grad=True)
        self.tape = wp.Tape()
        with self.tape:
            self.evaluate()

    def evaluate(self):
        wp.launch(linearise, dim=READINGS, inputs=[self.raw, self.p], outputs=[self.x])
        wp.launch(compensate, dim=READINGS, inputs=[self.x, self.p], outputs=[self.y])
        wp.launch(squared, dim=READINGS, inputs=[self.y, self.truth], outputs=[self.loss])

    def step(self, rate):
        self.tape.backward(self.loss)
        self.p.assign(self.p.numpy() - rate * self.p.grad.numpy())
        self.tape.zero()
        self.loss.zero_()
        self.evaluate()


raw = np.linspace(0.0, 1.0, READINGS)
calibration = Calibration(
    raw, (np.exp(0.8 * raw) + 0.3 * raw**2) / (1.0 + 0.05 * np.exp(0.8 * raw))
)
for iteration in range(8):
    calibration.step(0.01)
    print(iteration, calibration.loss.numpy()[0], calibration.p.numpy())
