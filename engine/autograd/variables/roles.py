"""Arguments in their roles as inputs and outputs, and the wanted pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

from engine.autograd.variables.metadata import FunctionMetadata, describe
from engine.autograd.variables.variable import Variable
from engine.classes import dataclass
from engine.diagnostics import Diagnostic, GradcheckError, LaunchError
from engine.diagnostics.site import call_span
from engine.runtime.launch_errors import fail

Mask = Sequence[tuple[str | int, str | int]]


@dataclass(frozen=True)
class Pair:
    """An input and an output that a matrix is wanted for."""

    input: Variable
    output: Variable

    @property
    def key(self) -> tuple[int, int]:
        """The pair's key in the result."""
        return self.input.index, self.output.index


@dataclass(frozen=True)
class Roles:
    """Names of all inputs and outputs by index, and the variables among them."""

    key: str
    inputs: dict[int, tuple[str, Any, Variable | None]]
    outputs: dict[int, tuple[str, Any, Variable | None]]

    def metadata(self) -> FunctionMetadata:
        """For plots."""
        return describe(self.key, self.inputs, self.outputs)

    def pairs(self, mask: Mask | None) -> list[Pair]:
        """The pairs that a mask names; all for None and, as in Warp, for an empty one.

        Raises LaunchError (E405) for what is no input or output, or has no gradient;
        GradcheckError (E404) where nothing is left.
        """
        if mask is None or (isinstance(mask, Sized) and not len(mask)):
            sides = [
                [v for _, _, v in side.values() if v is not None]
                for side in (self.inputs, self.outputs)
            ]
            pairs = [Pair(a, b) for a in sides[0] for b in sides[1]]
        else:
            found = [Pair(self._one(i, False), self._one(o, True)) for i, o in checked_mask(mask)]
            pairs = list({p.key: p for p in found}.values())
        if not pairs:
            raise GradcheckError(
                Diagnostic("E404", f"{self.key!r} has no pair of an input and an output with "
                           "gradients", call_span(),
                           help="make the arrays that matter with requires_grad=True",
                           notes=(self._say(False), self._say(True)))
            )  # fmt: skip
        return pairs

    def chosen(self, inputs: Sequence[str], outputs: Sequence[str]) -> list[Pair]:
        """The pairs of these inputs and outputs by name; empty means all. Raises as `pairs`."""
        wanted = [self._one(x, False).index for x in inputs]
        needed = [self._one(x, True).index for x in outputs]
        return [
            p
            for p in self.pairs(None)
            if (not wanted or p.input.index in wanted) and (not needed or p.output.index in needed)
        ]

    def _one(self, which: str | int, output: bool) -> Variable:
        side = self.outputs if output else self.inputs
        for k, (label, _, v) in side.items():
            if which == label or (which == k and not isinstance(which, bool)):
                if v is not None:
                    return v
                message = f"{label!r} of {self.key!r} has no gradient"
                raise self._unknown(message, "only float arrays with requires_grad=True have one")
        role = "output" if output else "input"
        raise self._unknown(f"{self.key!r} has no {role} {which!r}", self._say(output))

    def _unknown(self, message: str, help: str) -> LaunchError:
        return LaunchError(Diagnostic("E405", message, call_span(), help=help))

    def _say(self, output: bool) -> str:
        side = self.outputs if output else self.inputs
        names = ", ".join(f"{k}: {label}" for k, (label, _, _) in side.items())
        return f"its {'outputs' if output else 'inputs'} are {names or 'none'}"


def renamed(mask: Mask | None, names: FunctionMetadata | None) -> Mask | None:
    """A mask that uses the labels of the user's own metadata, with positions for these."""
    if names is not None and not isinstance(names, FunctionMetadata):
        raise fail("E202", f"metadata is a FunctionMetadata, got {names!r:.80}")
    if names is None or mask is None:
        return mask

    def place(which: str | int, labels: list[str] | None) -> str | int:
        known = isinstance(which, str) and which in (labels or ())
        return (labels or []).index(str(which)) if known else which

    return [
        (place(i, names.input_labels), place(o, names.output_labels)) for i, o in checked_mask(mask)
    ]


def checked_mask(mask: Mask) -> Iterable[tuple[str | int, str | int]]:
    """The pairs of a mask. Raises LaunchError (E405) for what is no mask."""
    if not hasattr(mask, "__iter__") or hasattr(mask, "encode"):  # a number, or a string
        raise LaunchError(
            Diagnostic("E405", f"input_output_mask is a list of pairs, got {mask!r}", call_span(),
                       help="write [('x', 'y'), (0, 1)]")
        )  # fmt: skip
    for entry in mask:
        if isinstance(entry, str) or not isinstance(entry, Sequence) or len(entry) != 2:
            raise LaunchError(
                Diagnostic("E405", f"input_output_mask takes pairs of an input and an output, got "
                           f"{entry!r}", call_span(), help="write [('x', 'y'), (0, 1)]")
            )  # fmt: skip
        yield entry[0], entry[1]
