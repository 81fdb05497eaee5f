"""The signs of a vector's components: their derivative is zero.

Issue: 1466
There: it was the derivative of `abs`.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def friction(v: wp.array(dtype=wp.vec3), mu: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    s = wp.sign(v[i])
    y[i] = mu[0] * (s[0] + 2.0 * s[1] + 3.0 * s[2]) + wp.dot(v[i], v[i])


at = np.array([[0.5, -1.0, 2.0], [-0.1, 0.2, -0.3]])
v = wp.array(at, dtype=wp.vec3, requires_grad=True)
mu = wp.array([0.4], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(friction, dim=2, inputs=[v, mu], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *v.grad.numpy().ravel(), *mu.grad.numpy())
print("exact", *(2.0 * at).ravel(), (np.sign(at) @ [1.0, 2.0, 3.0]).sum())
