"""A bar under load: stiffnesses are sized so that the tip moves by a given amount.

The linear system is solved by NumPy, with a backward function of our own.
"""

# expect: exit=1
import numpy as np

import engine as wp

NODES = 6


@wp.kernel
def assemble(stiffness: wp.array(dtype=float), k: wp.array2d(dtype=float)):
    e = wp.tid()
    s = stiffness[e]
    wp.atomic_add(k, e, e, s)
    if e > 0:
        wp.atomic_add(k, e - 1, e - 1, s)
        # An upwinded bar: the coupling is stronger in one direction.
        wp.atomic_add(k, e, e - 1, -s)
        wp.atomic_add(k, e - 1, e, -0.5 * s)


@wp.kernel
def tip_error(u: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    d = u[u.shape[0] - 1] - wanted
    loss[0] = d * d


def solve(tape, k, load, u):
    """u = K^-1 load on the host."""
    u.assign(np.linalg.solve(k.numpy().astype(np.float64), load).astype(np.float32))

    def backward():  # expect: G001 a
        # K is not symmetric: this needs the transpose of K.
        g = np.linalg.solve(k.numpy().astype(np.float64), u.grad.numpy())
        k.grad.assign(k.grad.numpy() - np.outer(g, u.numpy()))

    tape.record_func(backward, [k, u])  # expect: G001 a


load = np.zeros(NODES)
load[-1] = 1.0
stiffness = wp.array(np.linspace(3.0, 2.0, NODES), dtype=float, requires_grad=True)
for iteration in range(3):
    k = wp.zeros((NODES, NODES), dtype=float, requires_grad=True)
    u = wp.zeros(NODES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    tape = wp.Tape()
    with tape:
        wp.launch(assemble, dim=NODES, inputs=[stiffness], outputs=[k])
    solve(tape, k, load, u)
    with tape:
        wp.launch(tip_error, dim=1, inputs=[u, 3.0], outputs=[loss])
    tape.backward(loss)
    print(f"{iteration}: tip {u.numpy()[-1]:.4f} loss {loss.numpy()[0]:.5f}")
    stiffness.assign(stiffness.numpy() - 0.05 * stiffness.grad.numpy())
    tape.zero()
