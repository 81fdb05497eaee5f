"""Numbers are packed into an array of structs, field by field, and read there again.

Issue: 1174
There: gradients stopped at the store of a field.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.struct
class Particle:
    mass: float
    velocity: wp.vec3


@wp.kernel
def pack(m: wp.array(dtype=float), v: wp.array(dtype=wp.vec3), p: wp.array(dtype=Particle)):
    i = wp.tid()
    p[i].mass = 2.0 * m[i]
    p[i].velocity = v[i]


@wp.kernel
def kinetic(p: wp.array(dtype=Particle), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, 0.5 * p[i].mass * wp.dot(p[i].velocity, p[i].velocity))


mass, speed = np.array([1.0, 3.0]), np.array([[1.0, 0.5, 0.0], [0.0, -2.0, 1.0]])
m = wp.array(mass, dtype=float, requires_grad=True)
v = wp.array(speed, dtype=wp.vec3, requires_grad=True)
p = wp.zeros(2, dtype=Particle, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(pack, dim=2, inputs=[m, v], outputs=[p])
    wp.launch(kinetic, dim=2, inputs=[p], outputs=[out])
tape.backward(out)
print("gradient", *m.grad.numpy(), *v.grad.numpy().ravel())
print("exact", *(speed**2).sum(axis=1), *(2.0 * mass[:, None] * speed).ravel())
