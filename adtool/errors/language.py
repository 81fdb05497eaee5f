"""Errors of the kernel language (E1xx): raised when a kernel is defined or first launched."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E101": Page(
        """A kernel or function uses a construct of Python that the kernel language does not have,
        such as `try`, `yield`, a list comprehension or a class. The error lists all such places of
        a function.""",
        """
        import engine as wp

        @wp.kernel
        def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            y[0] = [v * v for v in x][0]
        """,
        """Write it with the language's statements: assignments, `if`, `for ... in range(...)`,
        `while`. Or compute it in Python before the launch and pass the result as an argument.
        docs/language describes the language.""",
    ),
    "E102": Page(
        """A kernel uses a name that does not exist: a variable without an assignment, a misspelled
        builtin, or a field that a struct does not have. Or it reads a variable before its first
        assignment.""",
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
        """A parameter of a kernel or function has no annotation, or its annotation is not a type of
        the language. Or a decorator got an object that is not a function.""",
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
        """An operator or a function is called with types that it does not take. Kernels do not
        convert types: you cannot add an `int` and a `float`, or a `vec2` and a `vec3`.""",
        """
        import engine as wp

        @wp.kernel
        def shift(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = x[i] + i
        """,
        """Convert one side: `x[i] + float(i)`. The message lists the types that a function
        takes.""",
    ),
    "E105": Page(
        """A variable gets a value of another type, or a name refers to different arrays in two
        branches.""",
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
        For arrays, move the code that reads them into both branches.""",
    ),
    "E106": Page(
        """A kernel calls something that kernels cannot call: a Python function without `@wp.func`,
        or a method of a library. Or a kernel is called by its name instead of by `wp.launch`.""",
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
        the language instead. Launch kernels by `wp.launch(kernel, dim=..., inputs=[...])`.""",
    ),
    "E107": Page(
        """A kernel uses a Python value from outside that cannot be part of compiled code: a list, a
        NumPy array, an object. Kernels capture only numbers, vectors, matrices, types, functions
        and constants, with their values at the first launch.""",
        """
        import engine as wp

        table = [1.0, 2.0, 3.0]

        @wp.kernel
        def look_up(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = table[i]
        """,
        """Pass it as an argument: `wp.array(table, dtype=float)`. For a number in an object, write
        `wp.static(config.dt)`, or assign it to a variable outside of the kernel.""",
    ),
    "E108": Page(
        """A function calls itself, directly or through other functions. Kernels have no recursion:
        the engine copies all functions into the kernel.""",
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
        """Write a loop. If the depth is known and small, write one function for each level.""",
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
        """Pass the number that the message gives. An array with fewer indices gives a view: `row =
        x[i]`.""",
    ),
    "E110": Page(
        """The program asks for a derivative that does not exist: of a builtin without a derivative,
        of a function whose handwritten gradient does not fit, or with respect to an argument of
        `grad(f)` that is not a float.""",
        """
        import engine as wp

        @wp.func
        def steps(n: int) -> int:
            return n * n

        @wp.kernel
        def slope(y: wp.array(dtype=int)):
            y[0] = wp.grad(steps)(3)
        """,
        """Differentiate functions of floats. Write a gradient with `@wp.func_grad`, or move the
        part without a derivative out of the differentiated function.""",
    ),
    "E111": Page(
        """The engine cannot find the source of a kernel: the program made it with `exec`, you typed
        it into a shell, or its file has changed since the import. The engine compiles kernels from
        their source.""",
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
        the file was changed. For `exec`, enter the source in `linecache.cache` under the file name
        that you passed to `compile`.""",
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
        """Write the kernel without that feature. The message names a replacement, if there is one.
        A loop over the elements replaces a tile.""",
    ),
}
