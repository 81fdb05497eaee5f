"""Errors of the kernel language (E1xx): raised when a kernel is defined or first launched."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E101": Page(
        """A kernel or function uses a construct of Python that the kernel language does not have,
        such as `try`, `yield`, a list comprehension or a class. All such places of a function are
        told at once.""",
        """
        import engine as wp

        @wp.kernel
        def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            y[0] = [v * v for v in x][0]
        """,
        """Write it with the language's statements: assignments, `if`, `for ... in range(...)`,
        `while`. Or compute it in Python before the launch and pass the result as an argument.
        docs/language lists what there is.""",
    ),
    "E102": Page(
        """A kernel names something that is not there: a variable that was never assigned, a
        misspelled builtin, a field that a struct does not have; or it reads a variable before
        its first assignment.""",
        """
        import engine as wp

        @wp.kernel
        def root(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = wp.squrt(x[i])
        """,
        """Correct the name: the message names the nearest one that exists. Assign a variable
        before the branch or loop that reads it.""",
    ),
    "E103": Page(
        """A parameter of a kernel or function has no annotation, or one that is not a type of the
        language; or a decorator was given something else than a function.""",
        """
        import engine as wp

        @wp.kernel
        def scale(x: wp.array(dtype=float), factor):
            i = wp.tid()
            x[i] = x[i] * factor
        """,
        """Annotate every parameter: `factor: float`, `x: wp.array(dtype=wp.vec3)`. `typing.Any`
        lets each launch decide on the type.""",
    ),
    "E104": Page(
        """An operator or a function is called with types that it does not take. Kernels convert no
        types by themselves: an `int` and a `float` cannot be added, nor a `vec2` and a `vec3`.""",
        """
        import engine as wp

        @wp.kernel
        def shift(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + i
        """,
        """Convert one side: `x[i] + float(i)`. For a function, the message lists the types that it
        takes.""",
    ),
    "E105": Page(
        """A variable is assigned a value of another type than it has, or a name would stand for one
        array in one branch and for another array in the other branch.""",
        """
        import engine as wp

        @wp.kernel
        def last(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            s = 0
            for k in range(3):
                s = x[k]
            y[0] = s
        """,
        """Start with a value of the final type (`s = 0.0`), or use another name for the new value.
        For arrays, write the code that reads them into both branches.""",
    ),
    "E106": Page(
        """Something is called that kernels cannot call (a Python function without `@wp.func`, a
        method of a library), or in a way that it cannot be called, as a kernel by its name in
        place of `wp.launch`.""",
        """
        import math
        import engine as wp

        def half(v):
            return 0.5 * v

        @wp.kernel
        def halves(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = half(x[i])
        """,
        """Decorate the function with `@wp.func` and annotate its parameters, or use a builtin of
        the language in its place. Launch kernels by `wp.launch(kernel, dim=..., inputs=[...])`.""",
    ),
    "E107": Page(
        """A kernel uses a Python value from outside that cannot be part of compiled code: a list, a
        NumPy array, an object. Only numbers, vectors, matrices, types, functions and
        constants are captured, by their value at the first launch.""",
        """
        import engine as wp

        table = [1.0, 2.0, 3.0]

        @wp.kernel
        def look_up(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = table[i]
        """,
        """Pass it as an argument: `wp.array(table, dtype=float)`. A number in an object is captured
        by `wp.static(config.dt)`, or by a variable of its own.""",
    ),
    "E108": Page(
        """A function calls itself, directly or by way of other functions. Kernels have no
        recursion: all functions are written into the kernel.""",
        """
        import engine as wp

        @wp.func
        def factorial(n: int) -> int:
            if n < 2:
                return 1
            return n * factorial(n - 1)

        @wp.kernel
        def fill(y: wp.array(dtype=int)):
            i = wp.tid()
            y[i] = factorial(i)
        """,
        """Write it as a loop. Where the depth is known and small, write one function for each
        level.""",
    ),
    "E109": Page(
        """The number of values is wrong: too many or too few arguments, indices, dimensions of a
        shape, names on the left of an assignment, or results of a function.""",
        """
        import engine as wp

        @wp.kernel
        def copy(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i, 0, 0]
        """,
        """Give as many as the message says are taken. An array with too few indices is a view of
        it: `row = x[i]`.""",
    ),
    "E110": Page(
        """A derivative is asked for of something that has none: a builtin without a derivative, a
        function whose handwritten gradient does not fit, an argument of `grad(f)` that is no
        float.""",
        """
        import engine as wp

        @wp.func
        def steps(n: int) -> int:
            return n * n

        @wp.kernel
        def slope(y: wp.array(dtype=int)):
            y[0] = wp.grad(steps)(3)
        """,
        """Take derivatives of functions of floats. Write a gradient with `@wp.func_grad`, or
        compute the part that has no derivative outside of the function that is differentiated.""",
    ),
    "E111": Page(
        """The text of a kernel cannot be found: it was made by `exec` or typed into a shell, or its
        file has changed since it was imported. Kernels are compiled from their text.""",
        """
        import engine as wp

        exec('''
        @wp.kernel
        def scale(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = 2.0 * x[i]
        ''')
        """,
        """Put the kernel in a `.py` file or a cell of a notebook, and run the program again after
        the file was changed. Text for `exec` has to be entered in `linecache.cache` under the name
        of the file that it was compiled with.""",
    ),
    "E112": Page(
        """The kernel uses a feature of Warp that this engine does not have: tiles, addresses of
        array elements, textures and others. docs/from-warp.md lists them.""",
        """
        import engine as wp

        @wp.kernel
        def tiles(x: wp.array(dtype=float)):
            t = wp.tile_load(x, shape=16)
            wp.tile_store(x, t)

        wp.launch(tiles, dim=1, inputs=[wp.zeros(16, dtype=float)])
        """,
        """Write it without that feature: the message names what to use in its place, where there is
        something. A loop over the elements does what a tile does.""",
    ),
}
