"""A cooling fin: heat is put in so that the tip gets a wanted temperature."""

# expect: exit=1
import numpy as np

import engine as wp

CELLS = 12
STEPS = 8


@wp.kernel
def conduct(t: wp.array(dtype=float), heat: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    left = t[wp.max(i - 1, 0)]
    right = t[wp.min(i + 1, t.shape[0] - 1)]
    out[i] = t[i] + 0.2 * (left - 2.0 * t[i] + right) + heat[i]  # expect: G004 a


@wp.kernel
def radiate(t: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = t[i] - 0.05 * t[i] * t[i] * t[i] * t[i]  # expect: G004 a


@wp.kernel
def tip_error(t: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    d = t[t.shape[0] - 1] - wanted
    loss[0] = d * d


def simulate(heat):
    t = wp.zeros(CELLS, dtype=float, requires_grad=True)
    for _ in range(STEPS):
        warm = wp.zeros(CELLS, dtype=float)  # expect: G004 a
        cool = wp.zeros(CELLS, dtype=float, requires_grad=True)
        wp.launch(conduct, dim=CELLS, inputs=[t, heat], outputs=[warm])  # expect: G004 a
        wp.launch(radiate, dim=CELLS, inputs=[warm], outputs=[cool])  # expect: G004 a
        t = cool
    return t


heat = wp.array(np.full(CELLS, 0.05), dtype=float, requires_grad=True)
for _ in range(3):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        fin = simulate(heat)
        wp.launch(tip_error, dim=1, inputs=[fin, 0.6], outputs=[loss])
    tape.backward(loss)
    heat.assign(heat.numpy() - 0.1 * heat.grad.numpy())
    print(loss.numpy()[0], np.abs(heat.grad.numpy()).max())
    tape.zero()
