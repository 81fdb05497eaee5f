"""A tridiagonal system is solved in its own right-hand side, with `/=` on elements of arrays.

Issue: 342
There: `x[i] /= a[i]` was translated wrongly, and gradients of such updates still are.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def solve(
    lower: wp.array(dtype=float), diag: wp.array(dtype=float), x: wp.array(dtype=float), n: int
):
    for i in range(1, n):
        factor = lower[i] / diag[i - 1]
        x[i] -= factor * x[i - 1]
    for k in range(n):
        i = n - 1 - k
        x[i] /= diag[i]


@wp.kernel
def load(b: wp.array(dtype=float), x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = b[i]


N = 5
rng = np.random.default_rng(342)
low, mid, right = rng.normal(size=N), 3.0 + rng.random(N), rng.normal(size=N)
lower = wp.array(low, dtype=float, requires_grad=True)
diag = wp.array(mid, dtype=float, requires_grad=True)
b = wp.array(right, dtype=float, requires_grad=True)
x = wp.zeros(N, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(load, dim=N, inputs=[b], outputs=[x])
    wp.launch(solve, dim=1, inputs=[lower, diag, x, N])  # expect: warning[G003]
tape.backward(grads={x: wp.ones(N, dtype=float)})
matrix = np.diag(mid) + np.diag(low[1:], -1)
y, dual = np.linalg.solve(matrix, right), np.linalg.solve(matrix.T, np.ones(N))
exact = [*dual, *(-dual * y), 0.0, *(-dual[1:] * y[:-1])]
print("gradient", *b.grad.numpy(), *diag.grad.numpy(), *lower.grad.numpy())
print("exact", *exact)
