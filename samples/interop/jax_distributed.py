"""Kernels on the shards of an array, over several JAX devices and processes.

Alone it starts two processes on this machine, with two devices each, that find each other by the
loopback address:

    python samples/interop/jax_distributed.py

Each of them is `jax_distributed.py NUMBER COUNT PORT`. `shard_map` gives every device its part of
the array, and a kernel doubles it there; a loss over all parts has a gradient in every process.
"""

# needs: jax
# check: no tape

import os
import socket
import subprocess
import sys

DEVICES = 2  # of each process


def start(count: int) -> None:
    """Starts the processes, and waits for all of them."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    running = [
        subprocess.Popen([sys.executable, __file__, str(k), str(count), str(port)])
        for k in range(count)
    ]
    try:
        codes = [p.wait(timeout=240) for p in running]
    finally:
        for p in running:
            p.kill()
    sys.exit(max(codes))


def work(number: int, count: int, port: int) -> None:
    """What one of them does."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", count, number)
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.multihost_utils import process_allgather
    from jax.sharding import NamedSharding
    from jax.sharding import PartitionSpec as P

    import engine as wp

    @wp.kernel
    def multiply_by_two(a: wp.array(dtype=wp.float32), out: wp.array(dtype=wp.float32)):
        i = wp.tid()
        out[i] = a[i] * 2.0

    multiply = wp.jax_kernel(multiply_by_two, enable_backward=True)
    total = jax.device_count()
    if number == 0:
        print(f"{total} devices in {jax.process_count()} processes")
    assert total == DEVICES * count

    mesh = jax.make_mesh((total,), ("x",))
    sharded = jax.shard_map(lambda a: multiply(a)[0], mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    whole = np.arange(5 * total, dtype=np.float32)
    sharding = NamedSharding(mesh, P("x"))
    a = jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])

    doubled = process_allgather(jax.jit(sharded)(a), tiled=True)
    np.testing.assert_array_equal(doubled, 2.0 * whole)

    loss = jax.jit(jax.value_and_grad(lambda a: jnp.sum(sharded(a) ** 2)))
    value, gradient = loss(a)
    np.testing.assert_allclose(float(value), np.sum((2.0 * whole) ** 2))
    np.testing.assert_allclose(process_allgather(gradient, tiled=True), 8.0 * whole)
    if number == 0:
        print("result:", doubled)
    jax.distributed.shutdown()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        work(*map(int, sys.argv[1:]))
    else:
        start(2)
