"""An operation of a framework with a handwritten gradient.

A framework's file gives subclasses of `Operation`. Arrays are NumPy's, of float64, on both sides;
what the operation makes of them is its own affair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.autograd.facts import Change
from engine.autograd.results import LaunchResult
from engine.autograd.tape.options import Options
from engine.autograd.variables.element_names import element_name
from engine.classes import dataclass
from engine.diagnostics import Span

Array = NDArray[Any]
# One for each output; None where nothing flows back from it.
Cotangents = Sequence["Array | None"]
# One for each input; None where the gradient written by hand gives none.
Gradients = Sequence["Array | None"]
# Inputs, cotangents, and whether to compute in float64: see `Operation.vjp`.
Vjp = Callable[[Sequence[Array], Cotangents, bool], Gradients]

_BFLOAT16 = 2.0**-7
MOST = 4  # inputs that are asked for by themselves
OTHER = -2.5  # the size of a cotangent beside that of the first


class OperationFailed(Exception):
    """Why an operation could not be run again."""


class GradientRaised(OperationFailed):
    """What the handwritten gradient raised."""


@dataclass(frozen=True)
class Value:
    """An input or an output, copied when the operation ran.

    name: as its user calls it. value: in float64. dtype: its own type, by name.
    """

    name: str
    value: Array
    dtype: str = "float64"

    @property
    def epsilon(self) -> float:
        """The relative rounding of its own type."""
        return _BFLOAT16 if self.dtype == "bfloat16" else float(np.finfo(self.dtype).eps)

    def rounded(self, value: Array) -> Array:
        """Numbers as its own type has them, in float64."""
        if self.dtype == "float64":
            return value
        with np.errstate(all="ignore"):
            if self.dtype == "bfloat16":
                bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
                nearest = bits + 0x7FFF + ((bits >> 16) & 1)
                out = (nearest & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32)
                return np.asarray(out.reshape(np.shape(value)), np.float64)
            return np.asarray(value.astype(self.dtype), np.float64)


@dataclass(frozen=True)
class Passed:
    """A backward pass of the program: cotangents of all outputs, and gradients of all inputs."""

    cotangents: Cotangents
    gradients: Gradients


def scalar_name(v: Value, scalar: int) -> str:
    """A scalar of it, as its user would write it: one number without axes has no index."""
    return element_name(v.name, scalar, v.value.shape) if v.value.shape else v.name


@dataclass(frozen=True)
class Variation:
    """Another way to ask for the same gradient, which must give the same numbers.

    words: as in "for a cotangent that is not contiguous". vjp: as `Operation.vjp`; None for an
    input that was not asked for. cotangent: makes a cotangent of an output, by its number, fit.
    change: what is to be told, in place of a wrong gradient, where the numbers are others.
    """

    words: str
    vjp: Vjp
    cotangent: Callable[[int, Array], Array] = lambda k, w: w
    change: Change | None = None

    @classmethod
    def of_size(cls, vjp: Vjp) -> Variation:
        """A cotangent of another size and sign. Entries of the derivative are those for a
        cotangent of one: for that, a gradient that ignores what it is given looks right.
        """

        def resized(inputs: Sequence[Array], w: Cotangents, lifted: bool) -> Gradients:
            found = vjp(inputs, [None if x is None else OTHER * x for x in w], lifted)
            return [None if g is None else g / OTHER for g in found]

        return cls("for a cotangent of another magnitude: it is not linear in it", resized)

    @classmethod
    def of_each(cls, names: Sequence[str], vjps: Sequence[Vjp]) -> list[Variation]:
        """Each of a few inputs alone. A single one is no variation; many would take too long."""
        if not 1 < len(names) <= MOST:
            return []
        words = "where only `{}` needs a gradient"
        return [cls(words.format(n), vjp) for n, vjp in zip(names, vjps, strict=True)]

    @classmethod
    def of_one_result(cls, vjp: Vjp) -> Variation:
        """A loss of one result, so that there are no cotangents of the others."""
        return cls("where the loss depends on one of its results alone", vjp)


class Operation(ABC):
    """One call of a function whose gradient was written by hand, and how to run it again.

    framework: its name. name: of the function; what: what it is in its framework, as `function`;
    gradient: the name of what was written by hand. span: its place; site: that of the call.
    inputs: those by which there is a derivative; outputs: those that have one.

    Whatever runs here leaves the program's state as it is. It raises OperationFailed, with a reason
    in the user's terms, where it cannot be done.
    """

    framework: str
    name: str
    what: str = "function"
    gradient: str
    span: Span
    site: Span | None
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    # The relative error that iterations until a tolerance leave in it and in its gradient.
    iterated: float = 0.0
    # What was seen of it while the program ran, and what it is called in reports.
    changes: Sequence[Change] = ()
    # Names of inputs by which the gradient is zeros, which `vjp` gives as None.
    zeros: Sequence[str] = ()
    # The name and the place of tangents that are written by hand, too.
    tangent: tuple[str, Span] | None = None

    @abstractmethod
    def primal(self, inputs: Sequence[Array], lifted: bool) -> Sequence[Array]:
        """The outputs at other inputs. lifted: in float64, else in the precision that it had."""

    @abstractmethod
    def vjp(self, inputs: Sequence[Array], cotangents: Cotangents, lifted: bool) -> Gradients:
        """The gradient, by what was written by hand."""

    def own_check(self, options: Options) -> LaunchResult | None:
        """The check of an operation that has one of its own, in place of differences."""
        return None

    @property
    def wrong(self) -> str:
        """What is wrong with its gradient before any numbers are compared; empty if nothing is."""
        return ""

    def jvp(
        self, inputs: Sequence[Array], moves: Mapping[int, Array], lifted: bool
    ) -> Sequence[Array | None]:
        """The tangents of all outputs, by what was written by hand, where there is a `tangent`."""
        raise OperationFailed("it has none")

    def variations(self) -> Sequence[Variation]:
        """Other ways to ask for the gradient that must not matter."""
        return ()

    def verify(self) -> str:
        """Why it is not what ran when the program ran, empty where it is.

        What was changed in place between is added to `changes`.
        """
        return ""

    def passes(self) -> Sequence[Passed]:
        """Backward passes of the program through it."""
        return ()

    @property
    def twice(self) -> bool:
        """Whether the program differentiates its gradient, too."""
        return False

    def second(self) -> Operation | None:
        """Its gradient as an operation: inputs and cotangents to gradients. None if it has none."""
        return None

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for calls that one look in detail is enough for."""
        sides = (self.inputs, self.outputs)
        shapes = tuple((v.name, v.value.shape, v.dtype) for side in sides for v in side)
        return self.framework, self.name, self.span, shapes
