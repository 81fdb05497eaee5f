"""Fit the colour matrix of a camera: linear light, a matrix, then display gamma."""

# expect: exit=1
import numpy as np

import engine as wp

PATCHES = 10


@wp.kernel
def develop(
    raw: wp.array(dtype=wp.vec3), matrix: wp.array(dtype=wp.mat33), shown: wp.array(dtype=wp.vec3)
):
    i = wp.tid()
    linear = matrix[0] @ raw[i]
    r = wp.pow(linear[0], 1.0 / 2.2)  # expect: G002 a
    g = wp.pow(linear[1], 1.0 / 2.2)  # expect: G002 a
    b = wp.pow(linear[2], 1.0 / 2.2)  # expect: G002 a
    shown[i] = wp.vec3(r, g, b)


@wp.kernel
def colour_difference(
    shown: wp.array(dtype=wp.vec3), chart: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)
):
    i = wp.tid()
    d = shown[i] - chart[i]
    wp.atomic_add(loss, 0, wp.dot(d, d))


rng = np.random.default_rng(7)
colours = rng.uniform(0.05, 1.0, (PATCHES, 3))
colours[-1] = 0.0  # the black patch of the chart
raw = wp.array(colours @ np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]]), wp.vec3)
chart = wp.array((colours + 0.02) ** (1.0 / 2.2), dtype=wp.vec3)
matrix = wp.array([np.eye(3)], dtype=wp.mat33, requires_grad=True)
shown = wp.zeros(PATCHES, dtype=wp.vec3, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(develop, dim=PATCHES, inputs=[raw, matrix], outputs=[shown])
    wp.launch(colour_difference, dim=PATCHES, inputs=[shown, chart], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], "gradient\n", matrix.grad.numpy()[0])
