"""A variable gets a second name, and a branch assigns another value to that name.

Issue: 202
There: `b = a` made both one variable, and the gradient was zero.
"""

# expect: exit=0
import numpy as np
import warp as wp


@wp.func
def bend(strain: float):
    stress = strain
    if stress > 0.0:
        stress = strain * strain
    else:
        stress = strain * strain * strain
    return stress


@wp.kernel
def respond(
    strain: wp.array(dtype=float), plain: wp.array(dtype=float), bent: wp.array(dtype=float)
):
    i = wp.tid()
    s = strain[i]
    same = s
    bent[i] = bend(s)
    plain[i] = same


at = np.array([-1.0, 2.0, 3.0])
strain = wp.array(at, dtype=float, requires_grad=True)
plain = wp.zeros(3, dtype=float, requires_grad=True)
bent = wp.zeros(3, dtype=float, requires_grad=True)
with wp.Tape() as tape:
    wp.launch(respond, dim=3, inputs=[strain], outputs=[plain, bent])
tape.backward(grads={plain: wp.full(3, 10.0, dtype=float), bent: wp.ones(3, dtype=float)})
print("gradient", *strain.grad.numpy())
print("exact", *(10.0 + np.where(at > 0.0, 2.0 * at, 3.0 * at**2)))
