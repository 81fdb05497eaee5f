"""A Jacobian of a kernel in a module without backward passes.

Issue: 1718
There: it was a matrix of zeros. The engine refuses it; finite differences need no backward pass.
"""

# expect: exit=0
import numpy as np
import warp as wp
import warp.autograd

wp.set_module_options({"enable_backward": False})


@wp.kernel
def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i]


@wp.kernel(enable_backward=True)
def cube(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * x[i] * x[i]


def jacobian_of(f, kernel):
    x = wp.array([1.0, 2.0, 3.0], dtype=float, requires_grad=True)
    y = wp.zeros(3, dtype=float, requires_grad=True)
    found = f(kernel, dim=3, inputs=[x], outputs=[y])
    return np.diag(found[0, 0].numpy())


try:
    refused = float(np.all(jacobian_of(wp.autograd.jacobian, square) != 0.0))
except Exception:
    refused = 1.0
rough = np.round(jacobian_of(wp.autograd.jacobian_fd, square), 2)
x = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(cube, dim=2, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", refused, *rough, *x.grad.numpy())
print("exact", 1.0, 2.0, 4.0, 6.0, 3.0, 12.0)
