"""Place a lamp: the gradient is printed first, by a backward pass of its own."""

# expect: exit=1
import numpy as np

import engine as wp

FACETS = 20


@wp.kernel
def irradiance(
    lamp: wp.array(dtype=wp.vec3), facet: wp.array(dtype=wp.vec3), light: wp.array(dtype=float)
):
    f = wp.tid()
    d = lamp[0] - facet[f]
    r2 = wp.dot(d, d)
    light[f] = d[1] / (r2 * wp.sqrt(r2))


@wp.kernel
def evenness(light: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    f = wp.tid()
    wp.atomic_add(loss, 0, (light[f] - wanted) * (light[f] - wanted))


def report(tape, loss, lamp):
    tape.backward(loss)  # expect: G013 a
    print("loss", loss.numpy()[0], "gradient", lamp.grad.numpy()[0])


rng = np.random.default_rng(41)
floor = rng.uniform(-1.0, 1.0, (FACETS, 3)) * [1.0, 0.0, 1.0]
facet = wp.array(floor, dtype=wp.vec3)
lamp = wp.array([[0.5, 1.0, -0.4]], dtype=wp.vec3, requires_grad=True)
light = wp.zeros(FACETS, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(irradiance, dim=FACETS, inputs=[lamp, facet], outputs=[light])
    wp.launch(evenness, dim=FACETS, inputs=[light, 0.4], outputs=[loss])
report(tape, loss, lamp)
tape.backward(loss)  # expect: G013 a
lamp.assign(lamp.numpy() - 0.05 * lamp.grad.numpy())
print("lamp", lamp.numpy()[0])
