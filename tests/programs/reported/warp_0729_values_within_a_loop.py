"""A loop with a dynamic bound, and products of its results.

Issue: 729
There: the backward pass does not compute the values of the iterations again.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.kernel
def horner(
    coefficients: wp.array(dtype=float),
    count: int,
    x: wp.array(dtype=float),
    y: wp.array(dtype=float),
):
    i = wp.tid()
    value = float(0.0)
    power = float(1.0)
    for k in range(count):
        value += coefficients[k] * power
        power *= x[i]
    y[i] = value * value


rng = np.random.default_rng(729)
c, at = rng.normal(size=6), np.array([0.4, -1.2])
coefficients = wp.array(c, dtype=float, requires_grad=True)
x = wp.array(at, dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(horner, dim=2, inputs=[coefficients, 6, x], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
p = np.polynomial.Polynomial(c)
print("gradient", *x.grad.numpy(), *coefficients.grad.numpy())
print("exact", *(2 * p(at) * p.deriv()(at)), *(2 * p(at) @ np.vander(at, 6, increasing=True)))
