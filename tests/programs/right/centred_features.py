"""Normalise features by their mean on the tape: the loss does not move with the mean at all.

Each term of that derivative is large, and their sum is zero but for rounding. Running statistics
for later are kept on the tape, too, and carry no gradient.
"""
# expect: exit=0

import numpy as np

import engine as wp

BATCH = 48


@wp.kernel
def features(x: wp.array(dtype=float), w: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    z[i] = wp.tanh(w[0] * x[i]) + w[1]


@wp.kernel
def batch_mean(z: wp.array(dtype=float), mean: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(mean, 0, z[i] / float(z.shape[0]))


@wp.kernel
def keep(mean: wp.array(dtype=float), running: wp.array(dtype=float)):
    running[0] = 0.9 * running[0] + 0.1 * mean[0]


@wp.kernel
def misfit(
    z: wp.array(dtype=float),
    mean: wp.array(dtype=float),
    target: wp.array(dtype=float),
    loss: wp.array(dtype=float),
):
    i = wp.tid()
    e = z[i] - mean[0] - target[i]
    wp.atomic_add(loss, 0, e * e)


rng = np.random.default_rng(9)
data = rng.normal(size=BATCH)
wanted = np.tanh(1.4 * data)
x = wp.array(data, dtype=float)
target = wp.array(wanted - wanted.mean(), dtype=float)
w = wp.array([0.3, 0.2], dtype=float, requires_grad=True)
running = wp.zeros(1, dtype=float)
losses = []
for step in range(12):
    z = wp.zeros(BATCH, dtype=float, requires_grad=True)
    mean = wp.zeros(1, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(features, dim=BATCH, inputs=[x, w], outputs=[z])
        wp.launch(batch_mean, dim=BATCH, inputs=[z], outputs=[mean])
        wp.launch(keep, dim=1, inputs=[mean], outputs=[running])
        wp.launch(misfit, dim=BATCH, inputs=[z, mean, target], outputs=[loss])
    tape.backward(loss)
    w.assign(w.numpy() - 0.03 * w.grad.numpy())
    tape.zero()
    losses.append(float(loss.numpy()[0]))
print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, running mean {running.numpy()[0]:.4f}")
assert losses[-1] < 0.1 * losses[0]
