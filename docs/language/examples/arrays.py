"""Many threads add to few elements; each value has the gradient of the element it went to."""

import engine as wp


@wp.kernel
def histogram(x: wp.array(dtype=float), edges: wp.array(dtype=float),
              total: wp.array(dtype=float)):  # fmt: skip
    i = wp.tid()
    wp.atomic_add(total, wp.lower_bound(edges, x[i]), x[i] * x[i])


x = wp.array([0.5, 1.5, 2.5, 0.25], dtype=float, requires_grad=True)
edges = wp.array([1.0, 2.0, 3.0], dtype=float)
total = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(histogram, dim=4, inputs=[x, edges], outputs=[total])
tape.backward(grads={total: wp.array([1.0, 10.0, 100.0], dtype=float)})
print("sums of squares:", total)
print("gradient:", x.grad)
