"""A kernel enables its backward pass in a module without one, and calls a function.

Issue: 1861
There: the function had no adjoint, and the gradient was zero.
"""

# expect: exit=0
import numpy as np
import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.func
def drag(speed: float) -> float:
    return 0.5 * speed * wp.abs(speed)


@wp.kernel(enable_backward=True)
def slow_down(v: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = v[i] - 0.1 * drag(v[i])


at = np.array([3.0, -2.0])
v = wp.array(at, dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(slow_down, dim=2, inputs=[v], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *v.grad.numpy())
print("exact", *(1.0 - 0.1 * np.abs(at)))
