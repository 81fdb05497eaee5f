"""A choice of values, and a message from each thread."""

import engine as wp


@wp.kernel
def relu(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.where(x[i] > 0.0, x[i], 0.0)
    wp.printf("thread %d: %g becomes %g\n", i, x[i], y[i])
    wp.expect_near(y[i], wp.max(x[i], 0.0))


x = wp.array([-1.0, 2.0], dtype=float, requires_grad=True)
y = wp.zeros_like(x)
with wp.Tape() as tape:
    wp.launch(relu, dim=2, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones_like(y)})
print("gradient:", x.grad)
