"""One launch on a tape: its gradients, and what a check says of it."""

import numpy as np

import engine as wp
from engine.autograd import check_tape


def floats(data, grad=True):
    return wp.array(np.asarray(data, np.float32), dtype=float, requires_grad=grad)


def recorded(kernel, dim, inputs, outputs):
    with wp.Tape() as tape:
        wp.launch(kernel, dim, inputs=inputs, outputs=outputs)
    return tape


def gradients(kernel, dim, inputs, outputs):
    tape = recorded(kernel, dim, inputs, outputs)
    tape.backward(grads={o: wp.ones_like(o) for o in outputs})
    return tape


def verdicts(tape):
    (launch,) = check_tape(tape).launches
    return {(p.input, p.output): p.verdict for p in launch.pairs}
