"""Whether an array was moved by its gradient: what steps of the host look like from outside.

Host code that reads a gradient and then writes the array may do so for another reason: a difference
quotient, another start, points on a line. So the change itself is compared with the gradient, and
counts only if two steps, one after the other, look like steps along their gradients, and not like
steps on a line that was chosen before. One step alone counts if no backward pass follows it, since
a program that chooses a point asks for the gradient there. A change of one number, or by a gradient
whose numbers are all of one size, is never evidence.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from engine.classes import dataclass
from engine.tape.restoration import NumpyArray

ALONG = 0.9999  # cosine from which on one direction is a multiple of another
DIFFERENT = 3  # sizes of a gradient's numbers that must differ; two, for equal factors
SIGNS = 8  # numbers whose signs all agree, or all disagree, with those of the gradient
ALIKE = 2.0  # the largest change beside the smallest, in a step that normalizes its gradient
_EQUAL = 1.05  # the same of a step by signs alone
_SAME = 1e-4  # relative difference of two equal factors
_EXACT = 1e-6  # one minus the cosine of one step alone and its gradient
_LINE = 1e-6  # one minus the cosine of two changes along one line


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A change of an array that a step along its gradient would make.

    kind: `multiple`: the change is `factor` times the gradient. `signs`: each number moved by the
    sign of its gradient, and further the larger that is, or all about as far. change, gradient:
    where the gradient is not zero, for the numbers at `places`.
    """

    kind: Literal["multiple", "signs"]
    change: NumpyArray
    gradient: NumpyArray
    places: NumpyArray
    factor: float

    def confirms(self, before: Step) -> bool:
        """Whether two steps are steps along gradients, and not just steps along one line."""
        here = np.isin(self.places, before.places)
        there = np.isin(before.places, self.places)
        if not here.any():
            return False
        if self.kind == before.kind == "multiple":
            # Downhill: on a line on which distances multiply, factors come to be equal, uphill.
            equal = abs(self.factor - before.factor) <= _SAME * abs(before.factor)
            if equal and self.factor < 0.0:
                return True
            if min(_sizes(self.gradient), _sizes(before.gradient)) < DIFFERENT:
                return False
            cosine = _cosine(self.gradient[here], before.gradient[there])
            return abs(cosine) < ALONG
        if _spread(self.change) <= _EQUAL and _spread(before.change) <= _EQUAL:
            return True
        return abs(_cosine(self.change[here], before.change[there])) < 1.0 - _LINE

    def stands_alone(self, start: NumpyArray) -> bool:
        """Whether one step is downhill and no chance. start: the whole array before it.

        Points on a line through zero are no steps.
        """
        return (
            self.kind == "multiple"
            and self.factor < 0.0
            and _sizes(self.gradient) >= DIFFERENT
            and _cosine(self.change, self.gradient) <= _EXACT - 1.0
            and abs(_cosine(self.change, start.reshape(-1)[self.places])) < ALONG
        )


def step_of(change: NumpyArray, gradient: NumpyArray) -> Step | None:
    """A change as a step along a gradient, up or down; None if it does not look like one.

    change, gradient: of any shape, the same for both. Numbers whose gradient is zero tell nothing.
    """
    change, gradient = change.reshape(-1), gradient.reshape(-1)
    some = (gradient != 0.0) & np.isfinite(gradient) & np.isfinite(change)
    places = np.flatnonzero(some)
    change, gradient = change[some], gradient[some]
    if not change.any():
        return None
    sizes, moves = np.abs(gradient) / np.abs(gradient).max(), np.abs(change) / np.abs(change).max()
    if _sizes(gradient) < 2:
        return None
    if abs(_cosine(change, gradient)) >= ALONG:
        largest = int(sizes.argmax())
        unit = gradient / gradient[largest]
        factor = float((change / gradient[largest]) @ unit) / float(unit @ unit)
        return Step("multiple", change, gradient, places, factor)
    signs = np.sign(change) * np.sign(gradient)
    both = bool((gradient > 0.0).any() and (gradient < 0.0).any())
    if change.size < SIGNS or _sizes(gradient) < DIFFERENT or not both:
        return None
    if signs[0] == 0.0 or (signs != signs[0]).any():
        return None
    farther = moves[np.argsort(sizes)]
    rises = bool((farther[1:] >= farther[:-1] * 0.999).all())
    if rises or _spread(change) <= ALIKE:
        return Step("signs", change, gradient, places, 0.0)
    return None


def _sizes(gradient: NumpyArray) -> int:
    """How many sizes its numbers have."""
    return int(np.unique(np.round(np.abs(gradient) / np.abs(gradient).max(), 3)).size)


def _spread(change: NumpyArray) -> float:
    """The largest of all sizes beside the smallest, which is not zero."""
    sizes = np.abs(change)
    return float(sizes.max() / sizes.min()) if sizes.min() > 0.0 else float("inf")


def _cosine(a: NumpyArray, b: NumpyArray) -> float:
    if not (a.any() and b.any()):
        return 1.0
    a, b = (x / np.abs(x).max() for x in (a, b))  # neither may overflow
    return float(a @ b) / float(np.linalg.norm(a) * np.linalg.norm(b))
