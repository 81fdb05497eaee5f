"""Joints of the bodies of a chain: two nested loops with bounds from arrays.

Issue: 1293
There: the gradient was twice the right one.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def chain(
    first: wp.array(dtype=int),
    angle: wp.array(dtype=float),
    offset: wp.array(dtype=wp.vec2),
    bodies: int,
    tip: wp.array(dtype=wp.vec2),
):
    at = wp.vec2(0.0, 0.0)
    turned = float(0.0)
    for body in range(bodies):
        for joint in range(first[body], first[body + 1]):
            turned = turned + angle[joint]
            c = wp.cos(turned)
            s = wp.sin(turned)
            o = offset[body]
            at = at + wp.vec2(c * o[0] - s * o[1], s * o[0] + c * o[1])
    tip[0] = at


angles, offsets, starts = [0.3, -0.2, 0.5, 0.1], [[1.0, 0.2], [0.5, 0.0], [0.8, -0.1]], [0, 1, 3, 4]
angle = wp.array(angles, dtype=float, requires_grad=True)
tip = wp.zeros(1, dtype=wp.vec2, requires_grad=True)
with wp.Tape() as tape:
    given = [wp.array(starts, dtype=int), angle, wp.array(offsets, dtype=wp.vec2), 3]
    wp.launch(chain, dim=1, inputs=given, outputs=[tip])
tape.backward(grads={tip: wp.array([[1.0, 2.0]], dtype=wp.vec2)})
exact = np.zeros(4)
turn = np.cumsum(angles)
for j, body in enumerate([0, 1, 1, 2]):
    arm = np.exp(1j * turn[j]) * complex(*offsets[body]) * 1j
    exact[: j + 1] += arm.real + 2.0 * arm.imag
print("gradient", *angle.grad.numpy())
print("exact", *exact)
