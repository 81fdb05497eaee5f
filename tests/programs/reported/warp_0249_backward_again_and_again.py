"""One tape, run backward several times with other seeds: a gradient for each.

Issue: 249
There: each call added to the gradients of inner arrays that the previous call had left.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def swing(
    state: wp.array(dtype=wp.vec2), length: wp.array(dtype=float), then: wp.array(dtype=wp.vec2)
):
    i = wp.tid()
    s = state[i]
    rate = s[1] - 0.1 * 9.81 / length[0] * wp.sin(s[0])
    then[i] = wp.vec2(s[0] + 0.1 * rate, rate)


STEPS = 4
length = wp.array([1.4], dtype=float, requires_grad=True)
states = [wp.array([[0.5, 0.0]], dtype=wp.vec2, requires_grad=True)]
with wp.Tape() as tape:
    for _ in range(STEPS):
        states.append(wp.zeros(1, dtype=wp.vec2, requires_grad=True))
        wp.launch(swing, dim=1, inputs=[states[-2], length], outputs=[states[-1]])
found = []
for k in range(STEPS):
    tape.backward(grads={states[k + 1]: wp.array([[1.0, 0.0]], dtype=wp.vec2)})
    found.append(length.grad.numpy()[0])
    tape.zero()
exact, q, v, dq, dv = [], 0.5, 0.0, 0.0, 0.0
for _ in range(STEPS):
    dv += 0.981 / 1.4 * (np.sin(q) / 1.4 - np.cos(q) * dq)
    v -= 0.981 / 1.4 * np.sin(q)
    q, dq = q + 0.1 * v, dq + 0.1 * dv
    exact.append(dq)
print("gradient", *found)
print("exact", *exact)
