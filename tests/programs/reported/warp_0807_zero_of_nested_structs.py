"""Gradients of arrays in a struct within a struct are cleared between two passes.

Issue: 807
There: `tape.zero()` did not clear the inner ones, and the second pass added to them.
"""

# expect: exit=0
import warp as wp


@wp.struct
class Wheel:
    radius: wp.array(dtype=float)


@wp.struct
class Cart:
    wheel: Wheel
    load: wp.array(dtype=float)


@wp.kernel
def cost(cart: Cart, out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, cart.load[i] * cart.wheel.radius[i] * cart.wheel.radius[i])


cart = Cart()
cart.wheel.radius = wp.array([0.5, 2.0], dtype=float, requires_grad=True)
cart.load = wp.array([3.0, 4.0], dtype=float, requires_grad=True)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(cost, dim=2, inputs=[cart], outputs=[out])
tape.backward(out)
tape.zero()
cleared = [*cart.load.grad.numpy(), *cart.wheel.radius.grad.numpy()]
tape.backward(out)
print("gradient", *cleared, *cart.load.grad.numpy(), *cart.wheel.radius.grad.numpy())
print("exact", 0.0, 0.0, 0.0, 0.0, 0.25, 4.0, 3.0, 16.0)
