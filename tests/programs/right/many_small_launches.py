"""A double pendulum, one launch a step, some hundred launches; the start is fitted to its end."""

# expect: exit=0
import numpy as np

import engine as wp

STEPS = 300
DT = wp.constant(0.005)


@wp.kernel
def double_pendulum(s: wp.array(dtype=wp.vec4), out: wp.array(dtype=wp.vec4)):
    a = s[0][0]
    b = s[0][1]
    u = s[0][2]
    v = s[0][3]
    delta = a - b
    den = 2.0 - wp.cos(delta) * wp.cos(delta)
    up = (
        -19.62 * wp.sin(a)
        + 9.81 * wp.sin(b) * wp.cos(delta)
        - wp.sin(delta) * (v * v + u * u * wp.cos(delta))
    ) / den
    vp = (
        19.62 * wp.sin(a) * wp.cos(delta)
        - 19.62 * wp.sin(b)
        + wp.sin(delta) * (2.0 * u * u + v * v * wp.cos(delta))
    ) / den
    nu = u + DT * up
    nv = v + DT * vp
    out[0] = wp.vec4(a + DT * nu, b + DT * nv, nu, nv)


@wp.kernel
def end_error(s: wp.array(dtype=wp.vec4), goal: wp.vec4, loss: wp.array(dtype=float)):
    d = s[0] - goal
    loss[0] = wp.dot(d, d)


def main():
    start = wp.array([[0.4, 0.3, 0.0, 0.0]], dtype=wp.vec4, requires_grad=True)
    states = [start] + [wp.zeros(1, dtype=wp.vec4, requires_grad=True) for _ in range(STEPS)]
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    with wp.Tape() as tape:
        for k in range(STEPS):
            wp.launch(double_pendulum, dim=1, inputs=[states[k]], outputs=[states[k + 1]])
        goal = wp.vec4(0.1, -0.2, 0.0, 0.0)
        wp.launch(end_error, dim=1, inputs=[states[STEPS], goal], outputs=[loss])
    tape.backward(loss)
    print("loss", loss.numpy()[0], "gradient", np.round(start.grad.numpy()[0], 4))


if __name__ == "__main__":
    main()
