"""The kernels of a chain of springs."""

import engine as wp


@wp.func
def softened(stretch: float, width: float) -> float:
    """The energy of a spring that softens as it is stretched far."""
    ratio = stretch / width
    return width * width * (wp.sqrt(1.0 + ratio * ratio) - 1.0)


@wp.func_grad(softened)
def adj_softened(stretch: float, width: float, adj_ret: float):
    ratio = stretch / width
    root = wp.sqrt(1.0 + ratio * ratio)
    wp.adjoint[stretch] += adj_ret * stretch / root
    wp.adjoint[width] += adj_ret * (width * (root - 1.0) * 2.0 - stretch * ratio / root)


@wp.kernel
def energy(
    place: wp.array(dtype=float),
    stiffness: wp.array(dtype=float),
    width: float,
    out: wp.array(dtype=float),
):
    i = wp.tid()
    stretch = place[i + 1] - place[i]
    wp.atomic_add(out, 0, stiffness[i] * softened(stretch, width))
