"""A bar under load, solved on the host, with the right backward function: the transpose of K."""

# expect: exit=0
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
        wp.atomic_add(k, e, e - 1, -s)
        wp.atomic_add(k, e - 1, e, -0.5 * s)


@wp.kernel
def tip_error(u: wp.array(dtype=float), wanted: float, loss: wp.array(dtype=float)):
    d = u[u.shape[0] - 1] - wanted
    loss[0] = d * d


class HostSolver:
    """u = K^-1 load, and its adjoint."""

    def __init__(self, k, load, u):
        self.k, self.load, self.u = k, load, u

    def forward(self):
        self.u.assign(np.linalg.solve(self.k.numpy().astype(float), self.load))

    def backward(self):
        g = np.linalg.solve(self.k.numpy().astype(float).T, self.u.grad.numpy().astype(float))
        self.k.grad.assign(self.k.grad.numpy() - np.outer(g, self.u.numpy()))
        self.u.grad.zero_()


load = np.zeros(NODES)
load[-1] = 1.0
stiffness = wp.array(np.linspace(3.0, 2.0, NODES), dtype=float, requires_grad=True)
for iteration in range(3):
    k = wp.zeros((NODES, NODES), dtype=float, requires_grad=True)
    u = wp.zeros(NODES, dtype=float, requires_grad=True)
    loss = wp.zeros(1, dtype=float, requires_grad=True)
    solver = HostSolver(k, load, u)
    tape = wp.Tape()
    with tape:
        wp.launch(assemble, dim=NODES, inputs=[stiffness], outputs=[k])
    solver.forward()
    tape.record_func(solver.backward, [k, u])
    with tape:
        wp.launch(tip_error, dim=1, inputs=[u, 3.0], outputs=[loss])
    tape.backward(loss)
    print(f"{iteration}: tip {u.numpy()[-1]:.4f} loss {loss.numpy()[0]:.5f}")
    stiffness.assign(stiffness.numpy() - 0.05 * stiffness.grad.numpy())
    tape.zero()
