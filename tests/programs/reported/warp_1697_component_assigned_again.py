"""A component of a local vector and one of a local matrix get a new value from the old one.

Issue: 1697
There: the gradient doubles with each such statement.
"""

# expect: exit=0
import warp as wp


@wp.kernel
def gather(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    v = wp.vec3()
    m = wp.mat22()
    for _ in range(4):
        v[0] = v[0] + x[i]
        m[1, 0] = m[1, 0] * 2.0 + x[i] * x[i]
    v[0] *= 3.0
    y[i] = v[0] + m[1, 0]


at = [2.0, -1.0]
x = wp.array(at, dtype=float, requires_grad=True)
y = wp.zeros(2, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(gather, dim=2, inputs=[x], outputs=[y])
tape.backward(grads={y: wp.ones(2, dtype=float)})
print("gradient", *x.grad.numpy())
print("exact", *(12.0 + 15.0 * 2.0 * a for a in at))
