"""A smooth step and a clamp, with their slopes."""

import engine as wp


@wp.kernel
def ramp(x: wp.array(dtype=float), y: wp.array(dtype=float), z: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = wp.smoothstep(0.0, 1.0, x[i])
    z[i] = wp.clamp(wp.sqrt(wp.abs(x[i])), 0.0, 1.0)


x = wp.array([-1.0, 0.25, 0.5, 4.0], dtype=float, requires_grad=True)
y, z = wp.zeros_like(x), wp.zeros_like(x)
with wp.Tape() as tape:
    wp.launch(ramp, dim=4, inputs=[x], outputs=[y, z])
tape.backward(grads={y: wp.ones_like(y)})
print("smoothstep:", y)
print("its slope: ", x.grad)
print("clamped:   ", z)
print("on the host:", wp.sign(-2.0), wp.round(2.5), wp.rint(2.5), wp.atan2(1.0, 0.0))
