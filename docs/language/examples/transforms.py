"""Points in a moving frame, and the gradient by the seven numbers of the frame."""

import engine as wp


@wp.kernel
def place(t: wp.array(dtype=wp.transformd), x: wp.array(dtype=wp.vec3d),
          y: wp.array(dtype=wp.vec3d)):  # fmt: skip
    i = wp.tid()
    y[i] = wp.transform_point(t[i], x[i])


t = wp.array([[1.0, 2.0, 3.0, 0.0, 0.0, 1.0, 0.0]], dtype=wp.transformd, requires_grad=True)
x = wp.array([[1.0, 0.0, 0.0]], dtype=wp.vec3d)
y = wp.zeros(1, dtype=wp.vec3d, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(place, dim=1, inputs=[t, x], outputs=[y])
tape.backward(grads={y: wp.ones_like(y)})
print("moved:", y.numpy()[0].tolist())
print("gradient:", t.grad.numpy()[0].tolist())
moved = wp.transformd(wp.vec3d(1.0, 2.0, 3.0), wp.quatd(0.0, 0.0, 1.0, 0.0))
print("back:", wp.transform_point(wp.transform_inverse(moved), wp.vec3d(0.0, 2.0, 3.0)))
