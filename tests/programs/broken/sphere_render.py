"""Render a sphere by ray casting and move it under a reference picture."""

# expect: exit=1
import numpy as np

import engine as wp

W = 12
H = 10


@wp.func
def hit_distance(origin: wp.vec3, ray: wp.vec3, center: wp.vec3, radius: float) -> float:
    oc = origin - center
    b = wp.dot(oc, ray)
    disc = b * b - (wp.dot(oc, oc) - radius * radius)
    # Rays that miss take the root of a negative number, and `where` throws it away.
    return wp.where(disc > 0.0, -b - wp.sqrt(disc), 10.0)  # expect: G002


@wp.kernel
def render(center: wp.array(dtype=wp.vec3), depth: wp.array2d(dtype=float)):
    i, j = wp.tid()
    u = (float(j) + 0.5) / float(W) - 0.5
    v = (float(i) + 0.5) / float(H) - 0.5
    ray = wp.normalize(wp.vec3(u, v, 1.0))
    depth[i, j] = hit_distance(wp.vec3(0.0, 0.0, 0.0), ray, center[0], 1.0)


@wp.kernel
def depth_error(
    depth: wp.array2d(dtype=float), target: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = wp.min(depth[i, j], 5.0) - wp.min(target[i, j], 5.0)
    wp.atomic_add(loss, 0, d * d)


target = wp.zeros((H, W), dtype=float)
wp.launch(render, dim=(H, W), inputs=[wp.array([[0.1, 0.0, 4.0]], dtype=wp.vec3)], outputs=[target])
center = wp.array([[-0.1, 0.1, 4.2]], dtype=wp.vec3, requires_grad=True)
depth = wp.zeros((H, W), dtype=float, requires_grad=True)
loss = wp.zeros(1, dtype=float, requires_grad=True)
tape = wp.Tape()
with tape:
    wp.launch(render, dim=(H, W), inputs=[center], outputs=[depth])
    wp.launch(depth_error, dim=(H, W), inputs=[depth, target], outputs=[loss])
tape.backward(loss)
print("loss", loss.numpy(), "finite", np.isfinite(center.grad.numpy()))
