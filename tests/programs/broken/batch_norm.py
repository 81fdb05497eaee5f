"""A layer with batch normalisation; one of the features never changes in the batch."""

# expect: exit=1
import numpy as np

import engine as wp

BATCH = 16
FEATURES = 4


@wp.kernel
def dense(x: wp.array2d(dtype=float), w: wp.array2d(dtype=float), out: wp.array2d(dtype=float)):
    b, f = wp.tid()
    total = float(0.0)
    for k in range(x.shape[1]):
        total += x[b, k] * w[k, f]
    out[b, f] = wp.max(total, -0.9 + 0.1 * float(f))


@wp.kernel
def batch_norm(
    z: wp.array2d(dtype=float), scale: wp.array(dtype=float), out: wp.array2d(dtype=float)
):
    f = wp.tid()
    n = float(z.shape[0])
    mean = float(0.0)
    for b in range(z.shape[0]):
        mean += z[b, f] / n
    variance = float(0.0)
    for b in range(z.shape[0]):
        variance += (z[b, f] - mean) * (z[b, f] - mean) / n
    # The epsilon belongs under the root.
    deviation = wp.sqrt(variance) + 1.0e-5  # expect: G002
    for b in range(z.shape[0]):
        out[b, f] = scale[f] * (z[b, f] - mean) / deviation


@wp.kernel
def energy(a: wp.array2d(dtype=float), y: wp.array2d(dtype=float), loss: wp.array(dtype=float)):
    b, f = wp.tid()
    wp.atomic_add(loss, 0, (a[b, f] - y[b, f]) * (a[b, f] - y[b, f]))


rng = np.random.default_rng(6)
features = rng.normal(size=(BATCH, 3))
weights = rng.normal(size=(3, FEATURES))
weights[:, 2] = 0.0  # a dead unit: its output is 0 for the whole batch
x = wp.array(features, dtype=float)
y = wp.array(rng.normal(size=(BATCH, FEATURES)), dtype=float)
w = wp.array(weights, dtype=float, requires_grad=True)
scale = wp.ones(FEATURES, dtype=float, requires_grad=True)
z = wp.zeros((BATCH, FEATURES), dtype=float, requires_grad=True)
a = wp.zeros((BATCH, FEATURES), dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(dense, dim=(BATCH, FEATURES), inputs=[x, w], outputs=[z])
    wp.launch(batch_norm, dim=FEATURES, inputs=[z, scale], outputs=[a])
    wp.launch(energy, dim=(BATCH, FEATURES), inputs=[a, y], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0])
print(w.grad.numpy())
