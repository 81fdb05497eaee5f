"""A kernel chooses a grid cell by rounding, which passes no gradient.

Issue: 640
There: gradients were zero at times, without a message.
"""

# expect: exit=1
import warp as wp


@wp.kernel
def cell_of(x: wp.array(dtype=float), cell: wp.array(dtype=int)):
    i = wp.tid()
    cell[i] = int(x[i] * 4.0)  # expect: G004


@wp.kernel
def height_at(cell: wp.array(dtype=int), out: wp.array(dtype=float)):
    i = wp.tid()
    wp.atomic_add(out, 0, 0.25 * float(cell[i] * cell[i]))


x = wp.array([0.3, 0.8], dtype=float, requires_grad=True)
cell = wp.zeros(2, dtype=int)
out = wp.zeros(1, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(cell_of, dim=2, inputs=[x], outputs=[cell])
    wp.launch(height_at, dim=2, inputs=[cell], outputs=[out])
tape.backward(out)
print("gradient", *x.grad.numpy())
print("exact", 0.0, 0.0)
