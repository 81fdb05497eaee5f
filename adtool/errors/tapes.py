"""Errors of tapes, derivatives and gradient checks (E4xx)."""

from __future__ import annotations

from adtool.errors.page import Page

PAGES = {
    "E401": Page(
        """A tape is used in a way that has no meaning: a tape in the block of another one, a
        backward pass while it records, a gradient through a kernel that has none.""",
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
        """The gradient that a backward pass is to begin with does not fit its array: another shape
        or dtype, or a loss that is not an array of one element.""",
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
        """Add up the loss in an array of one element, or give the gradients of all elements:
        `tape.backward(grads={y: wp.ones_like(y)})`.""",
    ),
    "E403": Page(
        """`gradcheck`, `gradcheck_tape` or a test with `raise_exception=True` found a gradient that
        is wrong. The message has the worst entry: what the adjoint gives, and what was
        expected.""",
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
        """Correct the gradient that the message names. `adtool check` on the script says more, and
        `adtool explain G001` how to go on.""",
    ),
    "E404": Page(
        """A check was asked for, and there was nothing to check: an empty tape, or a kernel without
        a pair of a float input and a float output with gradients. Nothing checked is no
        success.""",
        """
        import engine as wp
        from engine.autograd import gradcheck_tape

        with wp.Tape() as tape:
            pass
        gradcheck_tape(tape, raise_exception=True)
        """,
        """Launch in the tape's block, and make the arrays that matter with
        `requires_grad=True`.""",
    ),
    "E405": Page(
        """A choice names a kernel, an input, an output or a stage that is not there, as in
        `gradcheck(..., input_output_mask=...)` or `adtool show --stage`.""",
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
        """The tangent that forward mode is to begin with does not fit its array: another shape or
        dtype, or two tangents for the same memory.""",
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
        """Give an array of the same shape and dtype as the input, as `wp.ones_like(x)`, and one for
        each piece of memory.""",
    ),
    "E407": Page(
        """Several threads store values of their own to one element. Which one stays depends on the
        order of the threads, and so would the gradient: none is right.""",
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
        """A later operation of the tape overwrote values that a gradient needs, and they could not
        be restored, or `engine.config.overwrites = "error"` asks for none to be.""",
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
        """Store to another array, or keep a copy of what is overwritten (`wp.clone`). `adtool
        explain G003` has more.""",
    ),
}
