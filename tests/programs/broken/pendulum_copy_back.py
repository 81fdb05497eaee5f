"""Optimal control of a pendulum; the new state is copied back over the old one."""

# expect: exit=1
import numpy as np

import engine as wp

wp.config.overwrites = "present"

STEPS = 20
DT = 0.05


@wp.kernel
def pendulum(
    state: wp.array(dtype=float), torque: wp.array(dtype=float), k: int, out: wp.array(dtype=float)
):
    angle = state[0]  # expect: G003 a
    omega = state[1] + DT * (torque[k] - 9.81 * wp.sin(angle))
    out[0] = angle + DT * omega
    out[1] = omega


@wp.kernel
def swing_cost(
    state: wp.array(dtype=float), torque: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    cost = (state[0] - 1.0) * (state[0] - 1.0) + 0.1 * state[1] * state[1]
    for k in range(torque.shape[0]):
        cost += 0.001 * torque[k] * torque[k]
    loss[0] = cost


class Swing:
    def __init__(self):
        self.torque = wp.full(STEPS, 2.0, dtype=float, requires_grad=True)

    def rollout(self, loss):
        state = wp.array([1.5, 0.0], dtype=float, requires_grad=True)
        out = wp.zeros(2, dtype=float, requires_grad=True)
        for k in range(STEPS):
            wp.launch(pendulum, dim=1, inputs=[state, self.torque, k, out])  # expect: G003 a
            wp.copy(state, out)  # expect: G003 a
        wp.launch(swing_cost, dim=1, inputs=[state, self.torque], outputs=[loss])

    def improve(self, rate):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            self.rollout(loss)
        tape.backward(loss)
        self.torque.assign(self.torque.numpy() - rate * self.torque.grad.numpy())
        tape.zero()
        return float(loss.numpy()[0])


swing = Swing()
costs = [swing.improve(5.0) for _ in range(4)]
print("costs", np.round(costs, 4))
