"""Real Warp, and a loop whose number of rounds is an argument: its gradient is wrong.

Newton's method for a square root carries its estimate from round to round. Warp does not run the
rounds again on the way back: it takes the last estimate for that of each round. `adtool check` says
that the adjoint is Warp's own, and that it is this loop. `--alias warp` runs it on the engine.
"""

# needs: warp
# check: G001 error for _ in range(rounds):
import numpy as np
import warp as wp


@wp.kernel
def root(x: wp.array(dtype=float), rounds: int, y: wp.array(dtype=float)):
    i = wp.tid()
    r = 0.5 * x[i] + 0.5
    for _ in range(rounds):
        r = 0.5 * (r + x[i] / r)
    y[i] = r


x = wp.array(np.linspace(2.0, 9.0, 8), dtype=float, device="cpu", requires_grad=True)
y = wp.zeros(8, dtype=float, device="cpu", requires_grad=True)
with wp.Tape() as tape:
    wp.launch(root, dim=8, inputs=[x, 3], outputs=[y])
tape.backward(grads={y: wp.ones(8, dtype=float, device="cpu")})
print("roots   ", *np.round(y.numpy(), 3))
print("gradient", *np.round(x.grad.numpy(), 3))
print("1 / (2y)", *np.round(0.5 / y.numpy(), 3))
