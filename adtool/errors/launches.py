"""Errors of launches, arrays and devices (E2xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E201": Page(
        """A kernel, or another function of the engine, got too many or too few arguments, or an
        argument under a name that it does not have.""",
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
        """An argument has the wrong type: an array of another dtype, a list in place of an array, a
        float where an integer is expected. Arrays are not converted at launches.""",
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
        """An array has another number of dimensions than the parameter that it is passed for.""",
        """
        import engine as wp

        @wp.kernel
        def scale(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]

        x = wp.zeros((3, 3), dtype=float)
        wp.launch(scale, dim=3, inputs=[x])
        """,
        """Pass `x.flatten()` or a row of it, or annotate the parameter with as many dimensions:
        `wp.array2d(dtype=float)`.""",
    ),
    "E204": Page(
        """An array is on another device than the launch that it is passed to, or a framework's
        array is spread over several devices.""",
        """
        import torch
        import engine as wp

        x = wp.from_torch(torch.empty(3, device="meta"))  # it has no memory
        """,
        """Move the array: `x.to("cuda:0")`, or launch where it is: `wp.launch(...,
        device=x.device)`. `wp.set_device` chooses for all that follows.""",
    ),
    "E205": Page(
        """The grid of a launch is not one: a negative size, more than four dimensions, more threads
        than can be counted, or a number of threads a block that there is not.""",
        """
        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        x = wp.zeros(3, dtype=float)
        wp.launch(ones, dim=-3, inputs=[x])
        """,
        """Let `dim` be a number of threads, or a tuple of up to four of them, as `x.shape`.""",
    ),
    "E206": Page(
        """An array cannot be made of what was given, or not be used so: data of another shape or
        dtype, memory that is read-only or shared with another array, a view that is not
        contiguous.""",
        """
        import engine as wp

        x = wp.array([[1.0, 2.0], [3.0]], dtype=float)
        """,
        """Give data of the shape and dtype that the message names. A copy helps where memory cannot
        be shared: `wp.clone(x)`, `wp.array(numpy.array(data))`.""",
    ),
    "E207": Page(
        """Two shapes that have to be equal are not: of a copy and its source, of an array and its
        gradient, of the results of a function.""",
        """
        import engine as wp

        x, y = wp.zeros(3, dtype=float), wp.zeros(4, dtype=float)
        wp.copy(x, y)
        """,
        """Make both of the same shape, or copy a part: `wp.copy(x, y, count=3)`.""",
    ),
    "E208": Page(
        """There is no device of this name, or it cannot be used: the message has the reason, as a
        missing driver or package.""",
        """
        import engine as wp

        wp.zeros(3, dtype=float, device="cuda:99")
        """,
        """`adtool doctor` lists the devices, and what to install for a GPU. `wp.get_devices()` does
        so in Python. Without a device, arrays are made on the current one.""",
    ),
    "E209": Page(
        """There is not enough memory for an array, or for what a launch has to save for its
        backward pass, or a limit of `engine.config` is reached.""",
        """
        import engine as wp

        x = wp.zeros((1 << 30, 1 << 30), dtype=float)
        """,
        """Make the problem smaller, launch fewer threads at once, or free arrays first. The message
        names the limit of `engine.config` where it is one, which can be raised.""",
    ),
    "E210": Page(
        """An `assert` in a kernel failed, or an `expect_eq`, `expect_near` or the like.""",
        """
        import engine as wp

        @wp.kernel
        def positive(x: wp.array(dtype=float)):
            i = wp.tid()
            wp.expect_eq(x[i], 1.0)

        x = wp.zeros(3, dtype=float)
        wp.launch(positive, dim=3, inputs=[x])
        """,
        """The message has the values, and the thread. Find out why the value is not the expected
        one: `print` in the kernel shows what led to it.""",
    ),
    "E211": Page(
        """A thread read or wrote outside of an array, view, vector or matrix, in a program with
        `engine.config.mode = "debug"`. Under `adtool check` the finding G008 says the same.""",
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
        """A kernel queries a mesh, a volume, a BVH or a hash grid by an id whose object is gone:
        Python has collected it, since no variable holds it.""",
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
        """A captured graph, a stream or an event is used in a way that has no meaning: events of
        two devices, a time of events that were not recorded, arrays that are made while a graph is
        captured, an end of a capture that was not begun.""",
        """
        import engine as wp

        wp.capture_end()
        """,
        """Begin with `wp.capture_begin()`, or use `with wp.ScopedCapture() as capture:`. Make all
        arrays before it.""",
    ),
}
