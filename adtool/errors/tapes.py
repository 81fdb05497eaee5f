"""Errors of tapes, derivatives and gradient checks (E4xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E401": Page(
        """The program uses a tape in an invalid way: a tape in the block of another tape, a
        backward pass during recording, or a gradient through a kernel without a backward pass.""",
        """
        import engine as wp

        with wp.Tape() as tape:
            with wp.Tape():
                pass
        """,
        """Let each tape end before the next one begins, and call `backward()` after the block. For
        a kernel without gradients, set `enable_backward=True`.""",
    ),
    "E402": Page(
        """The gradient that starts a backward pass does not fit its array: it has another shape or
        dtype, or the loss is not an array of one element.""",
        """
        import engine as wp

        @wp.kernel
        def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = 2.0 * x[i]

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(double, dim=3, inputs=[x], outputs=[y])
        tape.backward(loss=y)
        """,
        """Add up the loss in an array of one element, or pass the gradients of all elements:
        `tape.backward(grads={y: wp.ones_like(y)})`.""",
    ),
    "E403": Page(
        """`gradcheck`, `gradcheck_tape` or a test with `raise_exception=True` found a wrong
        gradient. The message gives the worst entry: the value of the adjoint, and the expected
        value.""",
        """
        import engine as wp
        from engine.autograd import gradcheck

        @wp.func
        def square(v: float):
            return v * v

        @wp.func_grad(square)
        def adj_square(v: float, adj_ret: float):
            wp.adjoint[v] += v * adj_ret

        @wp.kernel
        def squares(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = square(x[i])

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        gradcheck(squares, dim=3, inputs=[x], outputs=[y], raise_exception=True)
        """,
        """Correct the gradient that the message names. Run `adtool check` on the script for
        details, and `adtool explain G001` for the next steps.""",
    ),
    "E404": Page(
        """A check found nothing to check: the tape is empty, or a kernel has no pair of a float
        input and a float output with gradients. A check of nothing is not a success.""",
        """
        import engine as wp
        from engine.autograd import gradcheck_tape

        with wp.Tape() as tape:
            pass
        gradcheck_tape(tape, raise_exception=True)
        """,
        """Launch inside the block of the tape, and create the inputs and outputs with
        `requires_grad=True`.""",
    ),
    "E405": Page(
        """An argument names a kernel, an input, an output or a stage that does not exist, for
        instance in `gradcheck(..., input_output_mask=...)` or `adtool show --stage`.""",
        """
        import engine as wp
        from engine.autograd import jacobian

        @wp.kernel
        def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = 2.0 * x[i]

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        mask = [("x", "z")]
        jacobian(double, dim=3, inputs=[x], outputs=[y], input_output_mask=mask)
        """,
        """Use a name that the message lists.""",
    ),
    "E406": Page(
        """The tangent that starts forward mode does not fit its array: it has another shape or
        dtype, or there are two tangents for the same memory.""",
        """
        import engine as wp
        from engine.autograd import jvp

        @wp.kernel
        def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = 2.0 * x[i]

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(double, dim=3, inputs=[x], outputs=[y])
        jvp(tape, tangents={x: wp.ones(4, dtype=float)})
        """,
        """Pass an array with the shape and dtype of the input, like `wp.ones_like(x)`, and only one
        for each piece of memory.""",
    ),
    "E407": Page(
        """Several threads store different values to one element. The order of the threads decides
        which value stays, so no gradient is right.""",
        """
        import engine as wp

        @wp.kernel
        def last(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[0] = x[i]

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(1, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(last, dim=3, inputs=[x], outputs=[y])
        tape.backward(loss=y)
        """,
        """Let one thread store it (`if i == 0:`), store to an element for each thread (`y[i]`), or
        combine the values: `wp.atomic_add(y, 0, x[i])`.""",
    ),
    "E408": Page(
        """A later operation of the tape overwrote values that a gradient needs. The engine could
        not restore them, or `engine.config.overwrites = "error"` forbids it.""",
        """
        import engine as wp

        wp.config.overwrites = "error"

        @wp.kernel
        def square(x: wp.array(dtype=float), y: wp.array(dtype=float)):
            i = wp.tid()
            y[i] = x[i] * x[i]

        x = wp.ones(3, dtype=float, requires_grad=True)
        y = wp.zeros(3, dtype=float, requires_grad=True)
        with wp.Tape() as tape:
            wp.launch(square, dim=3, inputs=[x], outputs=[y])
            wp.launch(square, dim=3, inputs=[y], outputs=[x])
        tape.backward(grads={x: wp.ones_like(x)})
        """,
        """Store to another array, or keep a copy of the overwritten array (`wp.clone`). `adtool
        explain G003` has more.""",
    ),
}
