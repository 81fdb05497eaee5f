"""A smooth random field on a line: zero at whole numbers, with exact slopes."""

import engine as wp


@wp.kernel
def field(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.noise(wp.rand_init(7), x[i])


x = wp.array([1.0, 1.25, 1.5, 2.0], dtype=float, requires_grad=True)
y = wp.zeros_like(x)
with wp.Tape() as tape:
    wp.launch(field, dim=4, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones_like(y)})
print("noise:", y.numpy().round(3) + 0.0)
print("slope:", x.grad.numpy().round(3))
