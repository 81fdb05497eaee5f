"""A ball that falls on a floor of springs: the derivative of its last position by its first push.

Issue: 349
There: gradients through contacts were erratic although the loss is smooth.
"""

# expect: exit=0
import numpy as np
import warp as wp

STEPS, DT = 60, 0.01


@wp.kernel
def step(state: wp.array2d(dtype=float), k: int):
    y = state[k, 0]
    v = state[k, 1]
    depth = wp.max(-y, 0.0)
    v = v + 0.01 * (400.0 * depth * depth - 9.81)
    state[k + 1, 0] = y + 0.01 * v
    state[k + 1, 1] = v


@wp.kernel
def launch_ball(push: wp.array(dtype=float), state: wp.array2d(dtype=float)):
    state[0, 0] = 0.3
    state[0, 1] = push[0]


push = wp.array([-2.0], dtype=float, requires_grad=True)
state = wp.zeros((STEPS + 1, 2), dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(launch_ball, dim=1, inputs=[push], outputs=[state])
    for k in range(STEPS):
        wp.launch(step, dim=1, inputs=[state, k])
seed = np.zeros((STEPS + 1, 2))
seed[STEPS, 0] = 1.0
tape.backward(grads={state: wp.array(seed, dtype=float)})
y, v, dy, dv = 0.3, -2.0, 0.0, 1.0
for _ in range(STEPS):
    depth, slope = max(-y, 0.0), -dy if y < 0.0 else 0.0
    v, dv = v + DT * (400.0 * depth**2 - 9.81), dv + DT * 800.0 * depth * slope
    y, dy = y + DT * v, dy + DT * dv
print("gradient", *push.grad.numpy())
print("exact", dy)
