"""A tape of kernels and PyTorch: a small network of PyTorch drives a pendulum of the engine.

`record_torch` records the network as a stretch of the tape. One backward pass gives the gradients
of the network's weights, which are PyTorch's, through all steps of the engine.
"""

# needs: torch
# check: passes
import numpy as np
import torch

import engine as wp

PENDULUMS = 16
STEPS = 12
DT = 0.1


@wp.kernel
def swing(
    before: wp.array(dtype=wp.vec2),
    torque: wp.array(dtype=float, ndim=2),
    after: wp.array(dtype=wp.vec2),
):
    i = wp.tid()
    angle, speed = before[i][0], before[i][1]
    speed += DT * (torque[i, 0] - wp.sin(angle))
    after[i] = wp.vec2(angle + DT * speed, speed)


@wp.kernel
def miss(state: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)):
    s = state[wp.tid()]
    wp.atomic_add(loss, 0, (s[0] - 1.0) * (s[0] - 1.0) + 0.1 * s[1] * s[1])


def roll_out(start, drive):
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        state = start
        for _ in range(STEPS):
            torque = wp.record_torch(drive, [state])
            after = wp.zeros(PENDULUMS, dtype=wp.vec2, requires_grad=True)
            wp.launch(swing, dim=PENDULUMS, inputs=[state, torque], outputs=[after])
            state = after
        wp.launch(miss, dim=PENDULUMS, inputs=[state], outputs=[loss])
    return tape, loss


def main():
    torch.manual_seed(7)
    drive = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    adam = torch.optim.Adam(drive.parameters(), lr=0.05)
    angles = np.random.default_rng(7).normal(size=(PENDULUMS, 2)) * 0.5
    start = wp.array(angles, dtype=wp.vec2, requires_grad=True)
    losses = []
    for _ in range(40):
        adam.zero_grad()
        start.grad.zero_()
        tape, loss = roll_out(start, drive)
        tape.backward(loss)
        adam.step()
        losses.append(float(loss.numpy()[0]))
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.3f}")
    assert losses[-1] < 0.1 * losses[0]


if __name__ == "__main__":
    main()
