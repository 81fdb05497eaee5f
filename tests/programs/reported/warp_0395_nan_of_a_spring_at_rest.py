"""A spring whose ends meet: its length has no derivative there, and the gradient is not a number.

Issue: 395
There: no message named the kernel, thread and operation with the first NaN.
"""

# expect: exit=1
import warp as wp


@wp.kernel
def stretch(a: wp.array(dtype=wp.vec3), b: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)):
    i = wp.tid()
    d = a[i] - b[i]
    wp.atomic_add(out, 0, wp.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]))  # expect: G002


a = wp.array([[0.0, 3.0, 0.0], [1.0, 1.0, 1.0]], dtype=wp.vec3, requires_grad=True)
b = wp.array([[4.0, 0.0, 0.0], [1.0, 1.0, 1.0]], dtype=wp.vec3)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(stretch, dim=2, inputs=[a, b], outputs=[out])
tape.backward(out)
print("gradient", *a.grad.numpy()[0])
print("exact", -0.8, 0.6, 0.0)
