"""Design an audio filter; its taps are windowed by NumPy and assigned back on the tape."""

# expect: exit=1
import numpy as np

import engine as wp

TAPS = 7
SAMPLES = 40


@wp.kernel
def convolve(
    signal: wp.array(dtype=float), taps: wp.array(dtype=float), out: wp.array(dtype=float)
):
    t = wp.tid()
    total = float(0.0)
    for k in range(taps.shape[0]):
        if t - k >= 0:
            total += taps[k] * signal[t - k]
    out[t] = total


@wp.kernel
def power_error(
    out: wp.array(dtype=float), wanted: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    t = wp.tid()
    wp.atomic_add(loss, 0, (out[t] - wanted[t]) * (out[t] - wanted[t]))


class Filter:
    def __init__(self):
        self.raw = wp.full(TAPS, 0.2, dtype=float, requires_grad=True)
        self.taps = wp.zeros(TAPS, dtype=float, requires_grad=True)

    def apply(self, signal):
        out = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
        self.taps.assign(self.raw.numpy() * np.hamming(TAPS))  # expect: G004 a
        wp.launch(convolve, SAMPLES, [signal, self.taps], [out])  # expect: G004 a
        return out


rng = np.random.default_rng(28)
noise = rng.normal(size=SAMPLES)
signal = wp.array(noise, dtype=float)
wanted = wp.array(np.convolve(noise, [0.1, 0.2, 0.4, 0.2, 0.1])[:SAMPLES], dtype=float)
fir = Filter()
for epoch in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        filtered = fir.apply(signal)
        wp.launch(power_error, dim=SAMPLES, inputs=[filtered, wanted], outputs=[loss])
    tape.backward(loss)
    fir.raw.assign(fir.raw.numpy() - 0.01 * fir.raw.grad.numpy())
    fir.raw.grad.zero_()
    tape.zero()
    print(epoch, loss.numpy()[0])
