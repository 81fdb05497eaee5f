"""Errors of launches, arrays and devices (E2xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E201": Page(
        """A kernel, or another function of the engine, got too many or too few arguments, or an
        argument with an unknown name.""",
        """
        import engine as wp

        @wp.kernel
        def scale(x: wp.array(dtype=float), factor: float):
            i = wp.tid()
            x[i] = factor * x[i]

        x = wp.zeros(3, dtype=float)
        wp.launch(scale, dim=3, inputs=[x])
        """,
        """Pass one value for each parameter, in their order: `inputs` first, then `outputs`. The
        message lists the parameters.""",
    ),
    "E202": Page(
        """An argument has the wrong type: an array of another dtype, a list instead of an array, or
        a float instead of an integer. A launch does not convert arrays.""",
        """
        import engine as wp

        @wp.kernel
        def scale(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]

        x = wp.zeros(3, dtype=wp.float64)
        wp.launch(scale, dim=3, inputs=[x])
        """,
        """Make the argument with the type that the message expects (`dtype=float` is float32), or
        annotate the kernel's parameter with the type that you have.""",
    ),
    "E203": Page(
        """The number of dimensions of an array differs from that of the parameter.""",
        """
        import engine as wp

        @wp.kernel
        def scale(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]

        x = wp.zeros((3, 3), dtype=float)
        wp.launch(scale, dim=3, inputs=[x])
        """,
        """Pass `x.flatten()` or a row of the array, or annotate the parameter with the number of
        dimensions: `wp.array2d(dtype=float)`.""",
    ),
    "E204": Page(
        """An array and the launch are on different devices, or an array of a framework is spread
        over several devices.""",
        """
        import torch
        import engine as wp

        x = wp.from_torch(torch.empty(3, device="meta"))  # it has no memory
        """,
        """Move the array: `x.to("cuda:0")`, or launch on its device: `wp.launch(...,
        device=x.device)`. `wp.set_device` sets the device of all later launches.""",
    ),
    "E205": Page(
        """The grid of a launch is invalid: a negative size, more than four dimensions, too many
        threads, or an invalid number of threads per block.""",
        """
        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        x = wp.zeros(3, dtype=float)
        wp.launch(ones, dim=-3, inputs=[x])
        """,
        """Pass `dim` as a number of threads, or as a tuple of up to four numbers, like
        `x.shape`.""",
    ),
    "E206": Page(
        """The engine cannot make or use an array in this way: the data has another shape or dtype,
        the memory is read-only or shared with another array, or a view is not contiguous.""",
        """
        import engine as wp

        x = wp.array([[1.0, 2.0], [3.0]], dtype=float)
        """,
        """Pass data with the shape and dtype that the message names. If memory cannot be shared,
        make a copy: `wp.clone(x)`, `wp.array(numpy.array(data))`.""",
    ),
    "E207": Page(
        """Two shapes must be equal but differ: of the two arrays of a copy, of an array and its
        gradient, or of the results of a function.""",
        """
        import engine as wp

        x, y = wp.zeros(3, dtype=float), wp.zeros(4, dtype=float)
        wp.copy(x, y)
        """,
        """Make both of the same shape, or copy a part: `wp.copy(x, y, count=3)`.""",
    ),
    "E208": Page(
        """A device of this name does not exist, or the engine cannot use it. The message gives the
        reason, such as a missing driver or package.""",
        """
        import engine as wp

        wp.zeros(3, dtype=float, device="cuda:99")
        """,
        """`adtool doctor` lists the devices, and what to install for a GPU. `wp.get_devices()`
        returns them in Python. If you name no device, the engine uses the current one.""",
    ),
    "E209": Page(
        """There is not enough memory for an array, or for the values that a launch saves for its
        backward pass. Or a limit of `engine.config` is reached.""",
        """
        import engine as wp

        x = wp.zeros((1 << 30, 1 << 30), dtype=float)
        """,
        """Make the problem smaller, launch fewer threads at once, or free arrays first. If a limit
        of `engine.config` is reached, the message names it: raise it.""",
    ),
    "E210": Page(
        """An `assert` in a kernel failed, or `expect_eq`, `expect_neq` or `expect_near`.""",
        """
        import engine as wp

        @wp.kernel
        def positive(x: wp.array(dtype=float)):
            i = wp.tid()
            wp.expect_eq(x[i], 1.0)

        x = wp.zeros(3, dtype=float)
        wp.launch(positive, dim=3, inputs=[x])
        """,
        """The message gives the values and the thread. Find out why the value is not the expected
        one, for instance with `print` in the kernel.""",
    ),
    "E211": Page(
        """A thread read or wrote outside of an array, view, vector or matrix, in a program with
        `engine.config.mode = "debug"`. Under `adtool check` this is the finding G008.""",
        """
        import engine as wp

        wp.config.mode = "debug"

        @wp.kernel
        def shift(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i + 1]

        x, y = wp.zeros(3, dtype=float), wp.zeros(3, dtype=float)
        wp.launch(shift, dim=3, inputs=[x, y])
        """,
        """Launch fewer threads, or guard the access: `if i + 1 < x.shape[0]:`. `adtool explain
        G008` has more.""",
    ),
    "E212": Page(
        """A kernel queries a mesh, a volume, a BVH or a hash grid whose object no longer exists:
        Python deleted it, because no variable refers to it.""",
        """
        import engine as wp

        @wp.kernel
        def nearest(mesh: wp.uint64, hit: wp.array(dtype=int)):
            q = wp.mesh_query_point(mesh, wp.vec3(0.0, 0.0, 0.0), 10.0)
            hit[0] = q.face

        def make():
            points = wp.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], dtype=wp.vec3)
            return wp.Mesh(points, wp.array([0, 1, 2], dtype=int)).id

        wp.launch(nearest, dim=1, inputs=[make(), wp.zeros(1, dtype=int)])
        """,
        """Keep the object in a variable as long as launches use its id, and on a tape as long as
        `backward()` may run.""",
    ),
    "E213": Page(
        """The program uses a captured graph, a stream or an event in an invalid way: events of two
        devices, the time between events that were not recorded, an array made during a capture, or
        the end of a capture that did not begin.""",
        """
        import engine as wp

        wp.capture_end()
        """,
        """Begin with `wp.capture_begin()`, or use `with wp.ScopedCapture() as capture:`. Make all
        arrays before the capture.""",
    ),
}
