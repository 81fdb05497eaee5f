"""Learn a filter; the volume is set by a meter, a NumPy view of the output that is kept."""

# expect: exit=1
import numpy as np

import engine as wp

N = 32


@wp.kernel
def smooth(x: wp.array(dtype=float), taps: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = float(0.0)
    for k in range(3):
        j = i + k - 1
        if j >= 0 and j < N:
            s += taps[k] * x[j]
    y[i] = s


@wp.kernel
def amplify(y: wp.array(dtype=float), gain: float, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = gain * y[i]


@wp.kernel
def power(y: wp.array(dtype=float), target: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    d = y[i] - target[i]
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(2)
x = wp.array(rng.standard_normal(N), dtype=float)
target = wp.array(rng.standard_normal(N), dtype=float)
taps = wp.array([0.2, 0.5, 0.2], dtype=float, requires_grad=True)
y = wp.zeros(N, dtype=float, requires_grad=True)
meter = y.numpy()  # expect: G004 a
for _ in range(4):
    out = wp.zeros(N, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(smooth, dim=N, inputs=[x, taps], outputs=[y])
        gain = 1.0 / float(np.abs(meter).max())
        wp.launch(amplify, dim=N, inputs=[y, gain], outputs=[out])  # expect: G004 a
        wp.launch(power, dim=N, inputs=[out, target], outputs=[loss])
    tape.backward(loss)
    taps.assign(taps.numpy() - 0.01 * taps.grad.numpy())
    tape.zero()
print(taps.numpy())
