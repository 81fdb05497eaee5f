"""A quadratic form: matrix times vector, and the gradient of the result."""

import engine as wp


@wp.kernel
def form(a: wp.mat22, x: wp.array(dtype=wp.vec2), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.dot(x[i], a * x[i]) / 2.0


a = wp.mat22(2.0, 1.0, 1.0, 3.0)
x = wp.array([[1.0, 0.0], [1.0, 2.0]], dtype=wp.vec2, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(form, dim=2, inputs=[a, x], outputs=[y])
tape.backward(grads={y: wp.ones_like(y)})
print("x'Ax / 2:", y)
print("gradient:", x.grad.numpy().tolist())
print("7 // -2, 7 % -2:", wp.floordiv(7, -2), wp.mod(7, -2))
