"""`taylor_test`: the remainder test of the launches of a tape, and of the tape as a whole."""

from __future__ import annotations

from engine.autograd.launch.experience import Experience
from engine.autograd.results import Remainders
from engine.autograd.tape.check import check_order, taylor_of
from engine.autograd.tape.options import Options
from engine.tape.capture import CapturedTape
from engine.tape.tape import Tape


def taylor_test(
    tape: Tape | CapturedTape, *, order: int = 1, directions: int = 2, seed: int = 0
) -> tuple[Remainders, ...]:
    """How fast Taylor remainders shrink along random directions, where gradients are right.

    With J a random weighted sum of the outputs, |J(x + h v) - J(x)| shrinks as h, and
    |J(x + h v) - J(x) - h J'(x) v| as h^2 if the adjoint gives J'(x) v, else as h. order=2 takes
    the second derivative away as well (central differences of the adjoint's own), and the rest
    shrinks as h^3: the test of a gradient of gradients, and of Newton's method. All is computed in
    float64, where a launch has such a form. Steps are halved; the smallest are taken whose
    remainder stands clear of rounding.

    Gives the results of the first launch of each kernel with its shapes, in recorded order, then
    of the tape as a whole (launch -1), `directions` of each. User arrays are only read.
    Raises LaunchError (E405) for another order.
    """
    check_order(order)
    options = Options(seed=seed, order=order, experience=Experience())
    return taylor_of(tape, options, directions)
