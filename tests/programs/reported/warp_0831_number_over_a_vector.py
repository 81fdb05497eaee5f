"""A number divided by a vector and by a matrix, component by component.

Issue: 831
There: the adjoint divided by the wrong operand.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def invert(
    s: wp.array(dtype=float),
    v: wp.array(dtype=wp.vec3),
    m: wp.array(dtype=wp.mat22),
    y: wp.array(dtype=float),
):
    i = wp.tid()
    r = s[i] / v[i]
    q = s[i] / m[i]
    y[i] = r[0] + 2.0 * r[1] + 3.0 * r[2] + q[0, 0] - q[0, 1] + 4.0 * q[1, 1]


sv, vv, mv = 1.7, np.array([0.5, -2.0, 4.0]), np.array([[1.5, -0.5], [3.0, 2.0]])
s = wp.array([sv], dtype=float, requires_grad=True)
v = wp.array([vv], dtype=wp.vec3, requires_grad=True)
m = wp.array([mv], dtype=wp.mat22, requires_grad=True)
y = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(invert, dim=1, inputs=[s, v, m], outputs=[y])
tape.backward(y)
wv, wm = np.array([1.0, 2.0, 3.0]), np.array([[1.0, -1.0], [0.0, 4.0]])
exact = [(wv / vv).sum() + (wm / mv).sum(), *(-sv * wv / vv**2), *(-sv * wm / mv**2).ravel()]
print("gradient", *s.grad.numpy(), *v.grad.numpy().ravel(), *m.grad.numpy().ravel())
print("exact", *exact)
