"""A damped wave on a string with a nonlinear spring; three rows of one array as a ring."""

# expect: exit=1
import numpy as np

import engine as wp

wp.config.overwrites = "present"

POINTS = 20
STEPS = 9


@wp.kernel
def wave_step(
    before: wp.array(dtype=float),
    now: wp.array(dtype=float),
    after: wp.array(dtype=float),
    speed: wp.array(dtype=float),
):
    i = wp.tid()
    left = now[wp.max(i - 1, 0)]
    right = now[wp.min(i + 1, now.shape[0] - 1)]
    c = now[i]  # expect: G003 a
    pull = speed[i] * (left + right - 2.0 * c) - 2.0 * c * c * c  # expect: G003 a
    after[i] = 1.98 * c - 0.98 * before[i] + 0.1 * pull  # expect: G003 a


@wp.kernel
def microphone(string: wp.array(dtype=float), heard: float, loss: wp.array(dtype=float)):
    d = string[4] - heard
    loss[0] = d * d


def main():
    bump = np.exp(-0.5 * (np.arange(POINTS) - 9.0) ** 2 / 4.0)
    ring = wp.array(np.stack([bump, 1.1 * bump, 0.0 * bump]), dtype=float, requires_grad=True)
    speed = wp.full(POINTS, 0.8, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        for k in range(STEPS):
            rows = [ring[(k + s) % 3] for s in range(3)]
            wp.launch(wave_step, dim=POINTS, inputs=[*rows, speed])  # expect: G003 a
        last = ring[(STEPS + 1) % 3]
        wp.launch(microphone, dim=1, inputs=[last, 0.3], outputs=[loss])
    tape.backward(loss)
    print("loss", loss.numpy()[0])
    print("sensitivity of the speed", speed.grad.numpy().round(4))


if __name__ == "__main__":
    main()
