"""Blend shapes of a face: weights go through a softmax that NumPy computes."""

# expect: exit=1
import numpy as np

import engine as wp

SHAPES = 4
VERTICES = 14


@wp.kernel
def scale_logits(raw: wp.array(dtype=float), temperature: float, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = raw[i] / temperature


@wp.kernel
def blend(
    weight: wp.array(dtype=float),
    shapes: wp.array2d(dtype=wp.vec3),
    mesh: wp.array(dtype=wp.vec3),
):
    v = wp.tid()
    p = wp.vec3(0.0, 0.0, 0.0)
    for s in range(weight.shape[0]):
        p += weight[s] * shapes[s, v]
    mesh[v] = p


@wp.kernel
def scan_distance(
    mesh: wp.array(dtype=wp.vec3), scan: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    v = wp.tid()
    d = mesh[v] - scan[v]
    wp.atomic_add(loss, 0, wp.dot(d, d))


def softmax(values):
    e = np.exp(values - values.max())
    return e / e.sum()


rng = np.random.default_rng(24)
table = rng.normal(size=(SHAPES, VERTICES, 3))
shapes = wp.array(table, dtype=wp.vec3)
scan = wp.array(np.tensordot([0.1, 0.6, 0.2, 0.1], table, axes=1), dtype=wp.vec3)
raw = wp.zeros(SHAPES, dtype=float, requires_grad=True)
for _ in range(3):
    logits = wp.zeros(SHAPES, dtype=float, requires_grad=True)
    mesh = wp.zeros(VERTICES, dtype=wp.vec3, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(scale_logits, dim=SHAPES, inputs=[raw, 0.5], outputs=[logits])  # expect: G004 a
        values = softmax(logits.numpy())  # expect: G004 a
        weight = wp.array(values, dtype=float, requires_grad=True)  # expect: G004 a
        wp.launch(blend, VERTICES, inputs=[weight, shapes], outputs=[mesh])  # expect: G004 a
        wp.launch(scan_distance, dim=VERTICES, inputs=[mesh, scan], outputs=[loss])
    tape.backward(loss)
    print(loss.numpy()[0], "gradient", raw.grad.numpy())
    raw.assign(raw.numpy() - 0.1 * raw.grad.numpy())
    tape.zero()
