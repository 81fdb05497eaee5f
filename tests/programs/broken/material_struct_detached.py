"""A membrane on springs: stiffness is found from sag, with all material fields in a struct."""

# expect: exit=1
import numpy as np

import engine as wp

NODES = 10
SWEEPS = 6


@wp.struct
class Membrane:
    stiffness: wp.array(dtype=float)
    tension: wp.array(dtype=float)
    load: float


@wp.kernel
def set_tension(m: Membrane):
    i = wp.tid()
    m.tension[i] = 0.5 + m.stiffness[i] * m.stiffness[i]  # expect: G004 a


@wp.kernel
def relax(m: Membrane, u: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    left = float(0.0)
    right = float(0.0)
    if i > 0:
        left = u[i - 1]
    if i < u.shape[0] - 1:
        right = u[i + 1]
    t = m.tension[i]  # expect: G004 a
    out[i] = (t * (left + right) + m.load) / (2.0 * t + m.stiffness[i])


@wp.kernel
def sag_error(u: wp.array(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, (u[i] - seen[i]) * (u[i] - seen[i]))


membrane = Membrane()
membrane.stiffness = wp.full(NODES, 0.7, dtype=float, requires_grad=True)
membrane.tension = wp.zeros(NODES, dtype=float)  # expect: G004 a
membrane.load = 0.4
seen = wp.array(0.5 * np.sin(np.linspace(0.3, 2.8, NODES)), dtype=float)
loss = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(set_tension, dim=NODES, inputs=[membrane])  # expect: G004 a
    u = wp.zeros(NODES, dtype=float, requires_grad=True)
    for _ in range(SWEEPS):
        out = wp.zeros(NODES, dtype=float, requires_grad=True)
        wp.launch(relax, dim=NODES, inputs=[membrane, u], outputs=[out])  # expect: G004 a
        u = out
    wp.launch(sag_error, dim=NODES, inputs=[u, seen], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy()[0], "gradient", membrane.stiffness.grad.numpy().round(4))
