"""A support vector machine: all points are beyond the margin; the bias has no gradient there."""

# expect: exit=0
import numpy as np

import engine as wp

POINTS = 20


@wp.kernel
def hinge(
    x: wp.array(dtype=wp.vec2),
    label: wp.array(dtype=float),
    w: wp.array(dtype=wp.vec2),
    bias: wp.array(dtype=float),
    offset: wp.array(dtype=float),
    slack: wp.array(dtype=float),
):
    i = wp.tid()
    margin = label[i] * (wp.dot(w[0], x[i]) + bias[0])
    if margin < 1.0:
        slack[i] = 1.0 - margin
    else:
        slack[i] = 0.0 * offset[0]  # the offset is for another kind of loss


@wp.kernel
def objective(
    slack: wp.array(dtype=float), w: wp.array(dtype=wp.vec2), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, slack[i] + 0.01 * wp.dot(w[0], w[0]))


rng = np.random.default_rng(66)
side = np.where(np.arange(POINTS) % 2 == 0, 1.0, -1.0)
x = wp.array(side[:, None] * [2.0, 1.0] + rng.normal(scale=0.3, size=(POINTS, 2)), dtype=wp.vec2)
label = wp.array(side, dtype=float)
w = wp.array([[0.9, 0.7]], dtype=wp.vec2, requires_grad=True)
bias = wp.array([0.2], dtype=float, requires_grad=True)
offset = wp.array([0.5], dtype=float, requires_grad=True)
for iteration in range(4):
    slack = wp.zeros(POINTS, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(hinge, dim=POINTS, inputs=[x, label, w, bias, offset], outputs=[slack])
        wp.launch(objective, dim=POINTS, inputs=[slack, w], outputs=[loss])
    tape.backward(loss)
    print(iteration, loss.numpy()[0], "bias", bias.grad.numpy(), "offset", offset.grad.numpy())
    w.assign(w.numpy() - 0.05 * w.grad.numpy())
    tape.zero()
