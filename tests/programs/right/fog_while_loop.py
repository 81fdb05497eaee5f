"""Light through fog: a `while` loop marches until the ray is dark or has left the box."""

# expect: exit=0
import numpy as np

import engine as wp

RAYS = 12


@wp.func
def fog_density(x: float, y: float, p: wp.array(dtype=float)) -> float:
    return p[0] * wp.exp(-((x - 1.0) * (x - 1.0) + (y - p[1]) * (y - p[1])) / p[2])


@wp.kernel
def transmit(p: wp.array(dtype=float), light: wp.array(dtype=float)):
    r = wp.tid()
    y = float(r) / float(light.shape[0])
    x = float(0.0)
    bright = float(1.0)
    steps = 0
    while x < 2.0 and bright > 0.05:
        bright = bright * wp.exp(-0.1 * fog_density(x, y, p))
        x += 0.1
        steps += 1
        if steps > 40:
            break
    light[r] = bright


@wp.kernel
def sensor_error(
    light: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    r = wp.tid()
    d = wp.log(light[r]) - wp.log(seen[r])
    wp.atomic_add(loss, 0, d * d)


rng = np.random.default_rng(76)
seen = wp.array(rng.uniform(0.3, 0.9, RAYS), dtype=float)
p = wp.array([1.3, 0.45, 0.2], dtype=float, requires_grad=True)
for iteration in range(4):
    light = wp.zeros(RAYS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(transmit, dim=RAYS, inputs=[p], outputs=[light])
        wp.launch(sensor_error, dim=RAYS, inputs=[light, seen], outputs=[loss])
    tape.backward(loss)
    p.assign(p.numpy() - 0.01 * p.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0], p.numpy())
