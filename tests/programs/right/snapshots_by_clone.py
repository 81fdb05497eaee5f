"""Learned optics: differentiable clones and copies carry the wavefront from stage to stage."""

# expect: exit=0
import numpy as np

import engine as wp

N = 16


@wp.kernel
def phase_plate(
    field: wp.array(dtype=wp.vec2), plate: wp.array(dtype=float), out: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    c = wp.cos(plate[i])
    s = wp.sin(plate[i])
    f = field[i]
    out[i] = wp.vec2(c * f[0] - s * f[1], s * f[0] + c * f[1])


@wp.kernel
def spread(field: wp.array(dtype=wp.vec2), out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    n = field.shape[0]
    out[i] = 0.5 * field[i] + 0.25 * (field[(i + 1) % n] + field[(i + n - 1) % n])


@wp.kernel
def focus(field: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    i = wp.tid()
    power = wp.dot(field[i], field[i])
    if i == 8:
        wp.atomic_add(loss, 0, -power)
    else:
        wp.atomic_add(loss, 0, 0.1 * power)


def propagate(plates, stages):
    field = wp.full(N, wp.vec2(0.5, 0.1), dtype=wp.vec2, requires_grad=True)
    for k, plate in enumerate(plates):
        turned = wp.zeros(N, dtype=wp.vec2, requires_grad=True)
        wp.launch(phase_plate, dim=N, inputs=[field, plate], outputs=[turned])
        wp.copy(stages, turned, dest_offset=k * N, count=N)
        field = wp.clone(turned, requires_grad=True)
        out = wp.zeros_like(field)
        wp.launch(spread, dim=N, inputs=[field], outputs=[out])
        field = out
    return field


rng = np.random.default_rng(90)
plates = [wp.array(rng.normal(size=N), dtype=float, requires_grad=True) for _ in range(3)]
for iteration in range(4):
    stages = wp.zeros(3 * N, dtype=wp.vec2, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        screen = propagate(plates, stages)
        wp.launch(focus, dim=N, inputs=[screen], outputs=[loss])
        wp.launch(focus, dim=N, inputs=[stages[N : 2 * N]], outputs=[loss])
    tape.backward(loss)
    for plate in plates:
        plate.assign(plate.numpy() - 0.3 * plate.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0])
