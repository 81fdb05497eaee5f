"""A determinant and an inverse with derivatives, and a decomposition."""

import engine as wp


@wp.kernel
def volumes(a: wp.array(dtype=wp.mat22d), det: wp.array(dtype=wp.float64)):
    i = wp.tid()
    det[i] = wp.determinant(a[i])


a = wp.array([[[2.0, 1.0], [0.0, 3.0]]], dtype=wp.mat22d, requires_grad=True)
det = wp.zeros(1, dtype=wp.float64, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(volumes, dim=1, inputs=[a], outputs=[det])
tape.backward(grads={det: wp.ones_like(det)})
print("determinant:", det)
print("gradient, the cofactors:", a.grad.numpy()[0].tolist())
m = wp.mat22d(2.0, 0.0, 0.0, 4.0)
print("inverse:", wp.inverse(m))
u, sigma, v = wp.svd2(m)
print("singular values:", sigma)
