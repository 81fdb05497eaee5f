"""Chemical kinetics in double precision, with implicit steps solved by Newton in the kernel."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 15


@wp.kernel
def implicit_step(
    c: wp.array(dtype=wp.vec2d), k: wp.array(dtype=wp.float64), out: wp.array(dtype=wp.vec2d)
):
    i = wp.tid()
    h = wp.float64(0.2)
    one = wp.float64(1.0)
    a0 = c[i][0]
    b0 = c[i][1]
    a = a0
    b = b0
    for _ in range(6):
        r1 = a - a0 + h * k[0] * a * b
        r2 = b - b0 + h * (k[1] * b - k[0] * a * b)
        j11 = one + h * k[0] * b
        j12 = h * k[0] * a
        j21 = -h * k[0] * b
        j22 = one + h * (k[1] - k[0] * a)
        det = j11 * j22 - j12 * j21
        a -= (j22 * r1 - j12 * r2) / det
        b -= (j11 * r2 - j21 * r1) / det
    out[i] = wp.vec2d(a, b)


@wp.kernel
def yield_error(c: wp.array(dtype=wp.vec2d), wanted: wp.float64, loss: wp.array(dtype=wp.float64)):
    i = wp.tid()
    d = c[i][1] - wanted
    wp.atomic_add(loss, 0, d * d)


start = np.array([[1.0, 0.1], [0.8, 0.2], [0.9, 0.05]])
k = wp.array([2.0, 0.5], dtype=wp.float64, requires_grad=True)
for iteration in range(4):
    loss = wp.zeros(1, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        c = wp.array(start, dtype=wp.vec2d)
        for _ in range(STEPS):
            out = wp.zeros(3, dtype=wp.vec2d, requires_grad=True)
            wp.launch(implicit_step, dim=3, inputs=[c, k], outputs=[out])
            c = out
        wp.launch(yield_error, dim=3, inputs=[c, wp.float64(0.4)], outputs=[loss])
    tape.backward(loss)
    k.assign(k.numpy() - 2.0 * k.grad.numpy())
    tape.zero()
    print(iteration, loss.numpy()[0], k.numpy())
