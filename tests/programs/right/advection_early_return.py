"""Semi-Lagrangian advection on a grid with walls, where threads return early."""

# expect: exit=0
import numpy as np

import engine as wp

SIDE = 10


@wp.func
def sample(field: wp.array2d(dtype=float), x: float, y: float) -> float:
    i = int(wp.floor(x))
    j = int(wp.floor(y))
    a = x - float(i)
    b = y - float(j)
    low = wp.lerp(field[i, j], field[i, j + 1], b)
    high = wp.lerp(field[i + 1, j], field[i + 1, j + 1], b)
    return wp.lerp(low, high, a)


@wp.kernel
def advect(
    smoke: wp.array2d(dtype=float), wind: wp.array(dtype=wp.vec2), out: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    if i == 0 or j == 0 or i == smoke.shape[0] - 1 or j == smoke.shape[1] - 1:
        out[i, j] = smoke[i, j]
        return
    x = wp.clamp(float(i) - wind[0][0], 0.01, float(smoke.shape[0]) - 1.01)
    y = wp.clamp(float(j) - wind[0][1], 0.01, float(smoke.shape[1]) - 1.01)
    out[i, j] = sample(smoke, x, y)


@wp.kernel
def smoke_error(
    smoke: wp.array2d(dtype=float), seen: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = smoke[i, j] - seen[i, j]
    wp.atomic_add(loss, 0, d * d)


def main():
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    puff = np.exp(-((x - 4.0) ** 2 + (y - 4.0) ** 2) / 4.0)
    seen = wp.array(np.roll(puff, 1, axis=1), dtype=float)
    wind = wp.array([[0.13, 0.21]], dtype=wp.vec2, requires_grad=True)
    for iteration in range(4):
        frames = [wp.zeros((SIDE, SIDE), dtype=float, requires_grad=True) for _ in range(4)]
        frames[0].assign(puff)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            for k in range(3):
                wp.launch(advect, (SIDE, SIDE), inputs=[frames[k], wind], outputs=[frames[k + 1]])
            wp.launch(smoke_error, dim=(SIDE, SIDE), inputs=[frames[3], seen], outputs=[loss])
        tape.backward(loss)
        wind.assign(wind.numpy() - 0.01 * wind.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0], wind.numpy())


if __name__ == "__main__":
    main()
