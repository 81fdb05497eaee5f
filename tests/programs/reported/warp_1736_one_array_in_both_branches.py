"""A conditional expression whose two values read the same element.

Issue: 1736
There: the gradient was zero.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def corrected(
    x: wp.array(dtype=wp.float64),
    term: wp.array(dtype=wp.float64),
    flag: bool,
    y: wp.array(dtype=wp.float64),
):
    i = wp.tid()
    y[i] = x[i] / term[i] if flag else x[i] * x[i]


at, by = np.array([1.0, 2.0, 3.0]), np.array([4.0, -5.0, 0.5])
found = []
for flag in (True, False):
    x = wp.array(at, dtype=wp.float64, requires_grad=True)
    term = wp.array(by, dtype=wp.float64, requires_grad=True)
    y = wp.zeros(3, dtype=wp.float64, requires_grad=True)
    with wp.Tape() as tape:
        wp.launch(corrected, dim=3, inputs=[x, term, flag], outputs=[y])
    tape.backward(grads={y: wp.ones(3, dtype=wp.float64)})
    found += [*x.grad.numpy(), *term.grad.numpy()]
print("gradient", *found)
print("exact", *(1.0 / by), *(-at / by**2), *(2.0 * at), 0.0, 0.0, 0.0)
