"""Errors of compilers and of the kernel cache (E3xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E301": Page(
        """No C++ compiler was found, or the one that the variable CXX names does not run; for CUDA,
        CuPy is missing. Kernels are compiled when they are first launched.""",
        """
        import os

        os.environ["CXX"] = "no-such-compiler"

        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        wp.launch(ones, dim=3, inputs=[wp.zeros(3, dtype=float)])
        """,
        """Install one (`apt install g++`, `xcode-select --install`), or set CXX to one that is
        there. `adtool doctor` says what it finds.""",
    ),
    "E302": Page(
        """The compiler was found, and failed on text that the engine wrote: it has no space left,
        it lacks headers, or the engine has a bug. The file that the message names has its own
        words.""",
        """
        $ df --output=pcent /tmp     # no space is left, so that the compiler fails
        Use%
        100%
        """,
        """Read the file that the message names. `adtool doctor` compiles a small kernel: where that
        fails, too, the compiler is not complete. Else please report it.""",
    ),
    "E303": Page(
        """Neither the folder of compiled kernels nor the temporary folder is safe: other users
        could exchange files in them, and so what is loaded and run. Nothing is compiled then.""",
        """
        import os

        os.mkdir("shared")
        os.chmod("shared", 0o777)  # everybody may exchange its files
        folder = os.path.abspath("shared")
        os.environ["ENGINE_CACHE_DIR"] = os.environ["TMPDIR"] = folder

        import engine as wp

        @wp.kernel
        def ones(x: wp.array(dtype=float)):
            x[wp.tid()] = 1.0

        wp.launch(ones, dim=3, inputs=[wp.zeros(3, dtype=float)])
        """,
        """Set ENGINE_CACHE_DIR or TMPDIR to a folder of your own, or correct the permissions that
        the message names. docs/cache.md says what is required of it.""",
    ),
    "E304": Page(
        """The C++ text of a function that was made by `@wp.func_native` does not compile.""",
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
        """Correct the text at the line that the message names: it has the compiler's words.""",
    ),
    "E305": Page(
        """The derivative of a kernel would be so large that compiling it takes minutes: functions
        that call functions are all written into it, each as often as it is called.""",
        """
        @wp.func
        def f20(x: float) -> float:
            return f19(x) + f19(x + 1.0)  # `f19` calls `f18` twice, and so on
        """,
        """Launch several smaller kernels, or call a function in a loop in place of many times.
        Where no gradient is needed: `@wp.kernel(enable_backward=False)`.""",
    ),
}
