"""CuPy arrays as arguments of a launch, which needs a GPU: without one it says so, and ends.

Arrays of a GPU have `__cuda_array_interface__`, by which CuPy, Numba and the engine share memory
there. Arrays on the CPU have none.
"""

# needs: cupy
# check: no tape
import sys

import cupy as cp

import engine as wp


@wp.kernel
def saxpy(x: wp.array(dtype=float), y: wp.array(dtype=float), a: float):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


def run() -> None:
    n = 1000
    with cp.cuda.Device(0):
        x, y = cp.arange(n, dtype=cp.float32), cp.ones(n, dtype=cp.float32)
        wp.launch(saxpy, dim=n, inputs=[x, y, 2.0], device="cuda:0")
        assert (cp.asnumpy(y) == 2.0 * cp.asnumpy(x) + 1.0).all()
        # and the other way: CuPy sees an array of the engine
        w = wp.ones(n, dtype=float, device="cuda:0")
        assert float(cp.asarray(w).sum()) == n
    print("saxpy on the GPU, in CuPy's memory")


assert not hasattr(wp.zeros(3), "__cuda_array_interface__")
if not wp.is_cuda_available():
    print("this sample needs a GPU, and an engine that runs kernels there: nothing is done")
    sys.exit(0)
run()
