"""Errors of compilers and of the kernel cache (E3xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E301": Page(
        """The engine found no C++ compiler, or the compiler that the variable CXX names does not
        run. For CUDA, CuPy is missing. The engine compiles a kernel at its first launch.""",
        """
        import os

        os.environ["CXX"] = "no-such-compiler"

        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        wp.launch(ones, dim=3, inputs=[wp.zeros(3, dtype=float)])
        """,
        """Install a compiler (`apt install g++`, `xcode-select --install`), or set CXX to an
        installed one. `adtool doctor` lists what it finds.""",
    ),
    "E302": Page(
        """The compiler failed on code that the engine wrote: the disk is full, headers are missing,
        or the engine has a bug. The file that the message names has the output of the compiler.""",
        """
        $ df --output=pcent /tmp     # no space is left, so that the compiler fails
        Use%
        100%
        """,
        """Read the file that the message names. `adtool doctor` compiles a small kernel: if that
        fails too, the installation of the compiler is incomplete. Otherwise please report the
        error.""",
    ),
    "E303": Page(
        """Neither the folder of compiled kernels nor the temporary folder is safe: other users
        could replace files in them, and the engine would run these files. The engine therefore
        compiles nothing.""",
        """
        import os

        os.mkdir("shared")
        os.chmod("shared", 0o777)  # everybody may exchange its files
        shared = os.path.abspath("shared")
        os.environ["ENGINE_CACHE_DIR"] = os.environ["TMPDIR"] = shared

        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        wp.launch(ones, dim=3, inputs=[wp.zeros(3, dtype=float)])
        """,
        """Set ENGINE_CACHE_DIR or TMPDIR to your own folder, or correct the permissions that the
        message names. docs/cache.md lists the requirements.""",
    ),
    "E304": Page(
        """The C++ code of a function with `@wp.func_native` does not compile.""",
        """
        import engine as wp

        @wp.func_native("return v +;")
        def more(v: float) -> float: ...

        @wp.kernel
        def add(x: wp.array(dtype=float)):
            i = wp.tid()
            x[i] = more(x[i])

        wp.launch(add, dim=3, inputs=[wp.zeros(3, dtype=float)])
        """,
        """Correct the code at the line that the message names. The message includes the error of
        the compiler.""",
    ),
    "E305": Page(
        """The derivative of a kernel is so large that compiling it would take minutes. The engine
        copies every called function into the kernel, once for each call.""",
        """
        @wp.func
        def f20(x: float) -> float:
            return f19(x) + f19(x + 1.0)  # `f19` calls `f18` twice, and so on
        """,
        """Launch several smaller kernels, or call a function in a loop instead of many times. If
        you need no gradient, write `@wp.kernel(enable_backward=False)`.""",
    ),
}
