"""An inverse heat problem: find the conductivity of a plate from one look at its temperatures.

The plate is a 2-D grid with insulated edges, heated unevenly at the start. After
a while its temperatures are measured. The unknown is the logarithm of the
conductivity of every cell, so that the conductivity stays positive.
"""

import numpy as np

import engine as wp

SIDE = 10
STEPS = 12
ITERATIONS = 40
DT = 0.15


@wp.kernel
def conduct(
    u: wp.array2d(dtype=float),
    log_k: wp.array2d(dtype=float),
    dt: float,
    u_next: wp.array2d(dtype=float),
):
    i, j = wp.tid()
    rows = u.shape[0]
    cols = u.shape[1]
    k = wp.exp(log_k[i, j])
    flow = float(0.0)
    for side in range(4):
        p = i
        q = j
        if side == 0:
            p = wp.max(i - 1, 0)
        elif side == 1:
            p = wp.min(i + 1, rows - 1)
        elif side == 2:
            q = wp.max(j - 1, 0)
        else:
            q = wp.min(j + 1, cols - 1)
        # Conductivity of a face: the harmonic mean of its two cells.
        other = wp.exp(log_k[p, q])
        flow += (u[p, q] - u[i, j]) * (2.0 * k * other / (k + other))
    u_next[i, j] = u[i, j] + flow * dt


@wp.kernel
def misfit(
    u: wp.array2d(dtype=float), measured: wp.array2d(dtype=float), loss: wp.array(dtype=float)
):
    i, j = wp.tid()
    d = u[i, j] - measured[i, j]
    wp.atomic_add(loss, 0, d * d)


@wp.kernel
def descend(
    p: wp.array2d(dtype=float),
    velocity: wp.array2d(dtype=float),
    gradient: wp.array2d(dtype=float),
    rate: float,
):
    i, j = wp.tid()
    velocity[i, j] = 0.8 * velocity[i, j] - rate * gradient[i, j]
    p[i, j] = p[i, j] + velocity[i, j]


def diffuse(u: wp.array, log_k: wp.array) -> wp.array:
    """Temperatures after STEPS explicit steps."""
    for _ in range(STEPS):
        u_next = wp.zeros_like(u)
        wp.launch(conduct, dim=u.shape, inputs=[u, log_k, DT], outputs=[u_next])
        u = u_next
    return u


def main() -> None:
    rng = np.random.default_rng(5)
    row, col = np.mgrid[0:SIDE, 0:SIDE] / SIDE
    inclusion = np.exp(-(((row - 0.4) ** 2 + (col - 0.6) ** 2) / 0.05))
    true_log_k = wp.array(np.log(0.3 + 0.7 * inclusion), dtype=float)
    heated = wp.array(rng.uniform(0.0, 1.0, size=(SIDE, SIDE)), dtype=float, requires_grad=True)
    measured = diffuse(heated, true_log_k)

    log_k = wp.full((SIDE, SIDE), float(np.log(0.5)), dtype=float, requires_grad=True)
    velocity = wp.zeros_like(log_k)
    losses = []
    for iteration in range(ITERATIONS):
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            u = diffuse(heated, log_k)
            wp.launch(misfit, dim=u.shape, inputs=[u, measured], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(descend, dim=log_k.shape, inputs=[log_k, velocity, log_k.grad, 3.0])
        tape.zero()
        if iteration % 10 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.6f}")

    error = np.abs(np.exp(log_k.numpy()) - np.exp(true_log_k.numpy())).mean()
    print(f"misfit {losses[0]:.4f} -> {losses[-1]:.6f}, mean error of the conductivity {error:.3f}")
    if not losses[-1] < 0.05 * losses[0]:
        raise SystemExit("the conductivity was not found")


if __name__ == "__main__":
    main()
