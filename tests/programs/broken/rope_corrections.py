"""Position-based rope: each constraint writes the corrections of both of its particles."""

# expect: exit=1
import numpy as np

import engine as wp

PARTICLES = 9


@wp.kernel
def project_constraints(
    x: wp.array(dtype=wp.vec2), rest: wp.array(dtype=float), correction: wp.array(dtype=wp.vec2)
):
    c = wp.tid()
    d = x[c + 1] - x[c]
    length = wp.length(d)
    half = d * (0.5 * (length - rest[c]) / length)
    # Particle c + 1 belongs to constraint c + 1 as well.
    correction[c] = half  # expect: G009 a
    correction[c + 1] = -half  # expect: G009 a


@wp.kernel
def apply_corrections(
    x: wp.array(dtype=wp.vec2), correction: wp.array(dtype=wp.vec2), out: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    out[i] = x[i] + correction[i]


@wp.kernel
def end_distance(x: wp.array(dtype=wp.vec2), goal: wp.vec2, loss: wp.array(dtype=float)):
    d = x[x.shape[0] - 1] - goal
    loss[0] = wp.dot(d, d)


rng = np.random.default_rng(37)
line = np.stack([np.linspace(0.0, 1.0, PARTICLES), np.zeros(PARTICLES)], axis=1)
x0 = wp.array(line + rng.normal(scale=0.02, size=line.shape), dtype=wp.vec2)
rest = wp.full(PARTICLES - 1, 0.1, dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    x = x0
    for _ in range(5):
        correction = wp.zeros(PARTICLES, dtype=wp.vec2, requires_grad=True)
        moved = wp.zeros(PARTICLES, dtype=wp.vec2, requires_grad=True)
        wp.launch(project_constraints, PARTICLES - 1, inputs=[x, rest], outputs=[correction])
        wp.launch(apply_corrections, PARTICLES, inputs=[x, correction], outputs=[moved])
        x = moved
    wp.launch(end_distance, dim=1, inputs=[x, wp.vec2(0.8, 0.1)], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], "gradient", rest.grad.numpy().round(4))
