"""Python functions that launch several kernels, called from compiled JAX programs.

`jax_callable` takes a function that is annotated like a kernel, `register_ffi_callback` any
function of lists of buffers, which `jax.ffi.ffi_call` then calls by its name.
"""

# needs: jax
# check: no tape

import jax
import jax.numpy as jnp
import numpy as np

import engine as wp
from engine.jax_experimental.ffi import jax_callable, register_ffi_callback


@wp.kernel
def scale(a: wp.array(dtype=float), s: float, out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = a[i] * s


@wp.kernel
def scale_vectors(a: wp.array(dtype=wp.vec2), s: float, out: wp.array(dtype=wp.vec2)):
    i = wp.tid()
    out[i] = a[i] * s


def scale_both(
    a: wp.array(dtype=float),
    b: wp.array(dtype=wp.vec2),
    s: float,
    # outputs
    c: wp.array(dtype=float),
    d: wp.array(dtype=wp.vec2),
):
    wp.launch(scale, dim=a.shape, inputs=[a, s], outputs=[c])
    wp.launch(scale_vectors, dim=b.shape, inputs=[b, s], outputs=[d])


def by_callable(a, b) -> None:
    jax_both = jax_callable(scale_both, num_outputs=2)

    @jax.jit
    def program(a, b):
        return jax_both(a, b, 2.0, output_dims={"c": a.shape, "d": b.shape})

    c, d = program(a, b)
    np.testing.assert_allclose(c, 2.0 * a)
    np.testing.assert_allclose(d, 2.0 * b)
    # How graphs are captured matters on GPUs alone.
    plain = jax_callable(scale_both, num_outputs=2, graph_mode=wp.JaxCallableGraphMode.NONE)
    c, d = plain(a, b, 3.0, output_dims={"c": a.shape, "d": b.shape})
    np.testing.assert_allclose(d, 3.0 * b)


def function(inputs, outputs, attrs, ctx) -> None:
    """NumPy arrays over the memory of JAX: components are their last dimensions."""
    a, b = inputs
    c, d = outputs
    s = attrs["scale"]
    wp.launch(scale, dim=a.shape, inputs=[a, s], outputs=[c])
    wp.launch(scale_vectors, dim=b.shape[0], inputs=[b, s], outputs=[d])
    assert ctx.stream == 0  # a GPU's stream


def by_callback(a, b) -> None:
    register_ffi_callback("scale_by_function", function)
    types = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (a, b)]
    call = jax.ffi.ffi_call("scale_by_function", types)
    c, d = jax.jit(lambda a, b: call(a, b, scale=2.0))(a, b)
    np.testing.assert_allclose(c, 2.0 * a)
    np.testing.assert_allclose(d, 2.0 * b)


def main() -> None:
    a = jnp.arange(10, dtype=jnp.float32)
    b = jnp.arange(10, dtype=jnp.float32).reshape(5, 2)
    by_callable(a, b)
    by_callback(a, b)
    print("functions of Python in JAX: two launches each, as expected")


if __name__ == "__main__":
    main()
