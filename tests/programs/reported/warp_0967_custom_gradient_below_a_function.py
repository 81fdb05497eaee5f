"""A function with a gradient of its own, called by another function.

Issue: 967
There: the code did not compile.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.func
def soft_length(v: wp.vec3) -> float:
    return wp.length(v)


@wp.func_grad(soft_length)
def adj_soft_length(v: wp.vec3, adj_ret: float):
    wp.adjoint[v] += adj_ret * wp.normalize(v)


@wp.func
def tension(a: wp.vec3, b: wp.vec3) -> float:
    stretch = soft_length(a - b) - 1.0
    return stretch * stretch


@wp.kernel
def springs(p: wp.array(dtype=wp.vec3), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = tension(p[i], p[i + 1])


at = np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
p = wp.array(at, dtype=wp.vec3, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(springs, dim=2, inputs=[p], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
d = at[:2] - at[1:]
n = np.linalg.norm(d, axis=1, keepdims=True)
pull = 2.0 * (n - 1.0) * d / n
print("gradient", *p.grad.numpy().ravel())
print("exact", *np.array([pull[0], pull[1] - pull[0], -pull[1]]).ravel())
