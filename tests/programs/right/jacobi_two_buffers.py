"""A Poisson solver by Jacobi sweeps: neighbours are read from one buffer and written to another."""

# expect: exit=0
import numpy as np

import engine as wp

SIDE = 8
SWEEPS = 12


@wp.kernel
def jacobi(
    u: wp.array2d(dtype=float), source: wp.array2d(dtype=float), out: wp.array2d(dtype=float)
):
    i, j = wp.tid()
    a = i + 1
    b = j + 1
    around = u[a - 1, b] + u[a + 1, b] + u[a, b - 1] + u[a, b + 1]
    out[a, b] = 0.25 * (around + source[i, j])


@wp.kernel
def sensors(u: wp.array2d(dtype=float), seen: wp.array(dtype=float), loss: wp.array(dtype=float)):
    k = wp.tid()
    d = u[k + 1, 3] - seen[k]
    wp.atomic_add(loss, 0, d * d)


def solve(source):
    """The two buffers swap roles; every sweep is linear, so that no old value is needed."""
    u = wp.zeros((SIDE + 2, SIDE + 2), dtype=float, requires_grad=True)
    out = wp.zeros_like(u)
    for _ in range(SWEEPS):
        wp.launch(jacobi, dim=(SIDE, SIDE), inputs=[u, source], outputs=[out])
        u, out = out, u
    return u


def main():
    rng = np.random.default_rng(95)
    seen = wp.array(rng.uniform(0.0, 0.3, SIDE), dtype=float)
    source = wp.full((SIDE, SIDE), 0.1, dtype=float, requires_grad=True)
    for iteration in range(4):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        tape = wp.Tape()
        with tape:
            u = solve(source)
            wp.launch(sensors, dim=SIDE, inputs=[u, seen], outputs=[loss])
        tape.backward(loss)
        source.assign(source.numpy() - 0.1 * source.grad.numpy())
        tape.zero()
        print(iteration, loss.numpy()[0])


if __name__ == "__main__":
    main()
