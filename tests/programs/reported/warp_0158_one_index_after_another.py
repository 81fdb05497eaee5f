"""Elements of arrays of two dimensions, taken with one index after the other.

Issue: 158
There: `a[i][0]` gave a view that passed no gradient back.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def midpoint(
    a: wp.array2d(dtype=wp.vec3), b: wp.array2d(dtype=wp.vec3), mid: wp.array2d(dtype=wp.vec3)
):
    i = wp.tid()
    mid[i][1] = 0.5 * (a[i][1] + b[i][0])


rng = np.random.default_rng(158)
a = wp.array(rng.normal(size=(3, 2, 3)), dtype=wp.vec3, requires_grad=True)
b = wp.array(rng.normal(size=(3, 2, 3)), dtype=wp.vec3, requires_grad=True)
mid = wp.zeros((3, 2), dtype=wp.vec3, requires_grad=True)
seed = rng.normal(size=(3, 2, 3)).astype(np.float32)
with wp.Tape() as tape:
    wp.launch(midpoint, dim=3, inputs=[a, b], outputs=[mid])
tape.backward(grads={mid: wp.array(seed, dtype=wp.vec3)})
exact_a, exact_b = np.zeros((3, 2, 3)), np.zeros((3, 2, 3))
exact_a[:, 1] = 0.5 * seed[:, 1]
exact_b[:, 0] = 0.5 * seed[:, 1]
print("gradient", *a.grad.numpy().ravel(), *b.grad.numpy().ravel())
print("exact", *exact_a.ravel(), *exact_b.ravel())
