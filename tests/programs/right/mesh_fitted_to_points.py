"""Blow up a mesh until measured points lie on it: the mesh is written by a kernel, and refitted."""

# expect: exit=0
import numpy as np

import engine as wp

CORNERS = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float)
FACES = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
FAR = wp.constant(1.0e6)


@wp.kernel
def blow_up(
    rest: wp.array(dtype=wp.vec3), size: wp.array(dtype=float), points: wp.array(dtype=wp.vec3)
):
    i = wp.tid()
    points[i] = rest[i] * (size[0] + size[1] * rest[i][2])


@wp.kernel
def misfit(mesh: wp.uint64, measured: wp.array(dtype=wp.vec3), loss: wp.array(dtype=float)):
    i = wp.tid()
    nearest = wp.mesh_query_point_no_sign(mesh, measured[i], FAR)
    if nearest.result:
        p = wp.mesh_eval_position(mesh, nearest.face, nearest.u, nearest.v)
        wp.atomic_add(loss, 0, wp.length_sq(p - measured[i]))


rest = wp.array(CORNERS, dtype=wp.vec3)
directions = np.random.default_rng(0).normal(size=(30, 3))
on_it = 1.5 * directions / np.abs(directions).sum(axis=1)[:, None]
measured = wp.array(on_it, dtype=wp.vec3)
size = wp.array([1.0, 0.1], dtype=float, requires_grad=True)
points = wp.zeros(6, dtype=wp.vec3, requires_grad=True)
mesh = wp.Mesh(wp.array(CORNERS, dtype=wp.vec3), wp.array(np.ravel(FACES), dtype=int))
loss = wp.zeros(1, dtype=float, requires_grad=True)
for _ in range(20):
    loss.zero_()
    with wp.Tape() as tape:
        wp.launch(blow_up, dim=6, inputs=[rest, size], outputs=[points])
        mesh.points = points
        wp.launch(misfit, dim=30, inputs=[mesh.id, measured], outputs=[loss])
    tape.backward(loss)
    size.assign(size.numpy() - 0.06 * size.grad.numpy())
    tape.zero()
print("size", size.numpy(), "misfit", loss.numpy())
assert abs(size.numpy()[0] - 1.5) < 0.01 and abs(size.numpy()[1]) < 0.02
