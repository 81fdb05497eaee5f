"""JAX's arrays and the engine's by DLPack: objects, and capsules."""

# needs: jax
# check: no tape
import jax
import jax.numpy as jnp

import engine as wp


@wp.kernel
def add(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = x[i] + 1.0


x = jnp.arange(6, dtype=jnp.float32)
a = wp.from_dlpack(x)
assert a.ptr == x.unsafe_buffer_pointer()
y = wp.zeros(6, dtype=float)
wp.launch(add, dim=6, inputs=[a], outputs=[y])
capsule = x.__dlpack__()
assert wp.from_dlpack(capsule).ptr == a.ptr

j = jax.dlpack.from_dlpack(y)
assert j.unsafe_buffer_pointer() == y.ptr
assert j.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
try:
    wp.launch(add, dim=6, inputs=[y], outputs=[a])  # JAX's arrays are immutable
except wp.LaunchError as error:
    assert "immutable" in str(error)
else:
    raise SystemExit("memory of a JAX array was written")

m = wp.from_dlpack(jnp.ones((5, 2, 2)), dtype=wp.mat22)
assert (m.shape, m.dtype) == ((5,), wp.mat22)
print("JAX's arrays and the engine's share memory by DLPack")
