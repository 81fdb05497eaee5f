"""Lengths and directions; the gradient of a length is a direction."""

import engine as wp


@wp.kernel
def measure(x: wp.array(dtype=wp.vec3), size: wp.array(dtype=float), area: wp.array(dtype=float)):
    i = wp.tid()
    size[i] = wp.length(x[i])
    area[i] = wp.length(wp.cross(x[i], wp.vec3(0.0, 0.0, 1.0))) / 2.0


x = wp.array([[3.0, 0.0, 4.0], [0.0, 0.0, 0.0]], dtype=wp.vec3, requires_grad=True)
size, area = (wp.zeros(2, dtype=float, requires_grad=True) for _ in range(2))
with wp.Tape() as tape:
    wp.launch(measure, dim=2, inputs=[x], outputs=[size, area])
tape.backward(grads={size: wp.ones_like(size)})
print("length:", size)
print("area:  ", area)
print("gradient of the length:", x.grad.numpy().round(6).tolist())
print("largest component:", wp.argmax(wp.vec3(1.0, 5.0, 2.0)))
