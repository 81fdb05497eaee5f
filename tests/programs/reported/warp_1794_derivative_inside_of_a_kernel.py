"""`wp.grad` of a function whose gradient is written by hand, in a kernel.

Issue: 1794
There: the code did not compile unless something else used that gradient.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.func
def well(x: float) -> float:
    return x * x * x * x - x * x


@wp.func_grad(well)
def adj_well(x: float, adj_ret: float):
    wp.adjoint[x] += (4.0 * x * x * x - 2.0 * x) * adj_ret


@wp.kernel(enable_backward=False)
def force(x: wp.array(dtype=float), f: wp.array(dtype=float)):
    i = wp.tid()
    f[i] = wp.grad(well)(x[i])


@wp.kernel
def energy(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = well(x[i])


at = np.array([0.5, -1.0, 1.5])
x = wp.array(at, dtype=float, requires_grad=True)
f = wp.zeros(3, dtype=float)
y = wp.zeros(3, dtype=float, requires_grad=True)
wp.launch(force, dim=3, inputs=[x], outputs=[f])
with wp.Tape() as tape:
    wp.launch(energy, dim=3, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones(3, dtype=float)})
exact = 4.0 * at**3 - 2.0 * at
print("gradient", *f.numpy(), *x.grad.numpy())
print("exact", *exact, *exact)
