"""A motor's torque curve as a table of four values in a local array, and a gain to fit."""

# expect: exit=1
import numpy as np

import engine as wp

SAMPLES = 20


@wp.kernel
def torque(speed: wp.array(dtype=float), gain: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    curve = wp.zeros(shape=4, dtype=float)
    for k in range(4):
        curve[k] = gain[0] / (1.0 + float(k) * gain[1])
    s = speed[i]
    cell = int(s)
    weight = s - float(cell)
    # At speeds from 3 on, the upper end of the interval is curve[4].
    upper = curve[cell + 1]  # expect: G008
    if weight == 0.0:
        upper = 0.0
    out[i] = (1.0 - weight) * curve[cell] + weight * upper


@wp.kernel
def torque_error(
    out: wp.array(dtype=float), bench: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    i = wp.tid()
    wp.atomic_add(loss, 0, (out[i] - bench[i]) * (out[i] - bench[i]))


def main():
    speeds = np.linspace(0.0, 3.0, SAMPLES)  # the last speed is 3 exactly
    speed = wp.array(speeds, dtype=float)
    bench = wp.array(2.0 / (1.0 + 0.4 * speeds), dtype=float)
    gain = wp.array([1.0, 1.0], dtype=float, requires_grad=True)
    for iteration in range(5):
        out = wp.zeros(SAMPLES, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(torque, dim=SAMPLES, inputs=[speed, gain], outputs=[out])
            wp.launch(torque_error, dim=SAMPLES, inputs=[out, bench], outputs=[loss])
        tape.backward(loss)
        gain.assign(gain.numpy() - 0.02 * gain.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], gain.numpy())


if __name__ == "__main__":
    main()
