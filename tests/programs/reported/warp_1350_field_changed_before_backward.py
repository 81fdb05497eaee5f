"""After the tape is recorded, a solver writes a field into an array that the tape has read.

Issue: 1350
There: the backward pass uses the solved field, at which no launch ran, without a message.
"""

# expect: exit=1
import warp as wp


@wp.kernel
def coupled(x: wp.array(dtype=float), field: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] * field[i] * field[i]


@wp.kernel
def relax(field: wp.array(dtype=float)):
    i = wp.tid()
    field[i] = 5.0


x = wp.array([3.0, 4.0], dtype=float, requires_grad=True)
field = wp.array([2.0, 0.5], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(coupled, dim=2, inputs=[x, field], outputs=[y])
wp.launch(relax, dim=2, inputs=[field])  # expect: G003
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *x.grad.numpy(), *field.grad.numpy())
print("told", 4.0, 0.25, 12.0, 4.0)
