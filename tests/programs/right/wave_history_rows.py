"""Full waveform inversion in one dimension: every time step is a row of one array."""

# expect: exit=0
import numpy as np

import engine as wp

POINTS = 24
STEPS = 20


@wp.kernel
def propagate(
    before: wp.array(dtype=float),
    now: wp.array(dtype=float),
    speed: wp.array(dtype=float),
    source: float,
    after: wp.array(dtype=float),
):
    i = wp.tid()
    left = float(0.0)
    right = float(0.0)
    if i > 0:
        left = now[i - 1]
    if i + 1 < now.shape[0]:
        right = now[i + 1]
    c = speed[i] * speed[i]
    value = 2.0 * now[i] - before[i] + c * (left + right - 2.0 * now[i])
    if i == 3:
        value += source
    after[i] = value


@wp.kernel
def seismogram(
    field: wp.array2d(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)
):
    t = wp.tid()
    d = field[t, 20] + field[t, 8] - seen[t]
    wp.atomic_add(loss, 0, d * d)


def shoot(speed):
    field = wp.zeros((STEPS + 2, POINTS), dtype=float, requires_grad=True)
    for t in range(STEPS):
        ricker = float((1.0 - 0.5 * (t - 5.0) ** 2) * np.exp(-0.25 * (t - 5.0) ** 2))
        inputs = [field[t], field[t + 1], speed, ricker]
        wp.launch(propagate, dim=POINTS, inputs=inputs, outputs=[field[t + 2]])
    return field


def main():
    true_speed = np.where(np.arange(POINTS) < 12, 0.6, 0.8)
    truth = shoot(wp.array(true_speed, dtype=float)).numpy()
    seen = wp.array(truth[:, 20] + truth[:, 8], dtype=float)
    speed = wp.full(POINTS, 0.7, dtype=float, requires_grad=True)
    for iteration in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            field = shoot(speed)
            wp.launch(seismogram, dim=STEPS + 2, inputs=[field, seen], outputs=[loss])
        tape.backward(loss)
        speed.assign(speed.numpy() - 0.002 * speed.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
