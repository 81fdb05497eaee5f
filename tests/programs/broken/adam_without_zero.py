"""Fit a spring's stiffness by Adam; the gradient is never cleared between the steps."""

# expect: exit=1

import numpy as np

import engine as wp
from engine.optim import Adam

SAMPLES = 16


@wp.kernel
def stretch(load: wp.array(dtype=float), k: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = load[i] / (k[0] + k[1] * load[i])


@wp.kernel
def misfit(out: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - seen[i]) * (out[i] - seen[i]))


load = np.linspace(0.5, 3.0, SAMPLES)
loads = wp.array(load, dtype=float)
seen = wp.array(load / (2.0 + 0.3 * load), dtype=float)
k = wp.array([1.0, 0.1], dtype=float, requires_grad=True)
adam = Adam([k], lr=0.05)
for step in range(5):
    out = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(stretch, dim=SAMPLES, inputs=[loads, k], outputs=[out])
        wp.launch(misfit, dim=SAMPLES, inputs=[out, seen], outputs=[loss])
    tape.backward(loss)  # expect: G013
    adam.step([k.grad])
print("stiffness", k.numpy())
