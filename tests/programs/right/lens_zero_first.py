"""Design a two-lens system; gradients are zeroed before each backward pass, not after it."""

# expect: exit=0
import numpy as np

import engine as wp

RAYS = 11


@wp.kernel
def trace(height: wp.array(dtype=float), design: wp.array(dtype=float), hit: wp.array(dtype=float)):
    r = wp.tid()
    ray = wp.vec2(height[r], 0.0)
    lens1 = wp.mat22(1.0, 0.0, -1.0 / design[0], 1.0)
    gap = wp.mat22(1.0, design[1], 0.0, 1.0)
    lens2 = wp.mat22(1.0, 0.0, -1.0 / design[2], 1.0)
    screen = wp.mat22(1.0, 2.0, 0.0, 1.0)
    out = screen @ (lens2 @ (gap @ (lens1 @ ray)))
    aberration = 0.05 * height[r] * height[r] * height[r] / design[0]
    hit[r] = out[0] - aberration


@wp.kernel
def spot_size(hit: wp.array(dtype=float), loss: wp.array(dtype=float)):
    r = wp.tid()
    wp.atomic_add(loss, 0, hit[r] * hit[r])


def evaluate(design, height, tape):
    hit = wp.zeros(RAYS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with tape:
        wp.launch(trace, dim=RAYS, inputs=[height, design], outputs=[hit])
        wp.launch(spot_size, dim=RAYS, inputs=[hit], outputs=[loss])
    return loss


height = wp.array(np.linspace(-0.5, 0.5, RAYS), dtype=float)
design = wp.array([3.0, 0.5, 5.0], dtype=float, requires_grad=True)
for iteration in range(6):
    tape = wp.Tape()
    loss = evaluate(design, height, tape)
    tape.zero()
    tape.backward(loss)
    design.assign(design.numpy() - 0.5 * design.grad.numpy())
    print(iteration, loss.numpy()[0], design.numpy())
