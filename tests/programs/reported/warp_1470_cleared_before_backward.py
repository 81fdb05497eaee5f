"""The program clears the input of a launch for the next frame before the backward pass.

Issue: 1470
There: Warp does not notice a write after the end of a tape; the gradient is zero.
"""

# expect: exit=1
import warp as wp


@wp.kernel
def power(force: wp.array(dtype=float), speed: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = force[i] * speed[i]


force = wp.array([1.0, 2.0], dtype=float, requires_grad=True)
speed = wp.array([3.0, 4.0], dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(power, dim=2, inputs=[force, speed], outputs=[y])
speed.zero_()  # expect: G003
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *force.grad.numpy(), *speed.grad.numpy())
print("told", 3.0, 4.0, 1.0, 2.0)
