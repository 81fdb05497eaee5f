"""Broken on purpose: a robust line fit whose hand-written gradient is wrong.

The pseudo-Huber loss d^2 (sqrt(1 + (r/d)^2) - 1) has the derivative
r / sqrt(1 + (r/d)^2). The gradient written below forgot the square root. It
still points downhill, so the fit improves and nothing looks wrong: only a
gradient check sees it (finding G001).
"""

import numpy as np

import engine as wp

POINTS = 40
ITERATIONS = 40


@wp.func
def pseudo_huber(r: float, width: float) -> float:
    """Quadratic near zero, linear far out."""
    ratio = r / width
    return width * width * (wp.sqrt(1.0 + ratio * ratio) - 1.0)


@wp.func_grad(pseudo_huber)
def adj_pseudo_huber(r: float, width: float, adj_ret: float):
    ratio = r / width
    # The mistake: this should divide by sqrt(1 + ratio^2).
    wp.adjoint[r] += adj_ret * r / (1.0 + ratio * ratio)


@wp.kernel
def residuals(
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
    line: wp.array(dtype=float),
    out: wp.array(dtype=float),
):
    i = wp.tid()
    out[i] = line[0] * x[i] + line[1] - y[i]


@wp.kernel
def robust_loss(residual: wp.array(dtype=float), width: float, loss: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(loss, 0, pseudo_huber(residual[i], width) / float(residual.shape[0]))


@wp.kernel
def descend(p: wp.array(dtype=float), gradient: wp.array(dtype=float), rate: float):
    i = wp.tid()
    p[i] = p[i] - rate * gradient[i]


def main() -> None:
    rng = np.random.default_rng(6)
    xs = np.linspace(-1.0, 1.0, POINTS)
    ys = 1.5 * xs - 0.5 + rng.normal(scale=0.05, size=POINTS)
    ys[::8] += 4.0  # outliers
    x, y = wp.array(xs, dtype=float), wp.array(ys, dtype=float)
    line = wp.zeros(2, dtype=float, requires_grad=True)

    losses = []
    for iteration in range(ITERATIONS):
        residual = wp.zeros(POINTS, dtype=float, requires_grad=True)
        loss = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(residuals, dim=POINTS, inputs=[x, y, line], outputs=[residual])
            wp.launch(robust_loss, dim=POINTS, inputs=[residual, 0.5], outputs=[loss])
        tape.backward(loss)
        losses.append(float(loss.numpy()[0]))
        wp.launch(descend, dim=2, inputs=[line, line.grad, 1.0])
        tape.zero()
        if iteration % 10 == 0:
            print(f"iteration {iteration:3d}  loss {losses[-1]:.5f}")

    slope, offset = line.numpy()
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, line y = {slope:.3f} x + {offset:.3f}")


if __name__ == "__main__":
    main()
