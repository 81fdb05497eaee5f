"""`FunctionMetadata`: names, strides and types of a Jacobian's variables, for plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.autograd.variables.variable import Variable
from engine.classes import dataclass


@dataclass
class FunctionMetadata:
    """What a plot says about a function. Lists are by position; None fills unused places.

    key: the function's name. input_labels, output_labels: names of arguments.
    input_strides, output_strides: scalars of one element, as a tuple of one int.
    input_dtypes, output_dtypes: element types. An empty one that is handed to `jacobian`
    or `jacobian_fd` is filled in there.
    """

    key: str | None = None
    input_labels: list[str] | None = None
    output_labels: list[str] | None = None
    input_strides: list[Any] | None = None
    output_strides: list[Any] | None = None
    input_dtypes: list[Any] | None = None
    output_dtypes: list[Any] | None = None

    @property
    def is_empty(self) -> bool:
        """True before anything is known."""
        return self.key is None and not self.input_labels and not self.output_labels

    def fill(self, other: FunctionMetadata) -> None:
        """Takes over what is not given yet."""
        for name, value in vars(other).items():
            if getattr(self, name) is None:
                setattr(self, name, value)

    def label(self, index: int, output: bool) -> str:
        """The name of an input or output."""
        labels = (self.output_labels if output else self.input_labels) or []
        found = labels[index] if 0 <= index < len(labels) else ""
        return found or f"{'output' if output else 'input'}_{index}"

    def width(self, index: int, output: bool) -> int:
        """Scalars of one element of an input or output, at least 1."""
        strides = (self.output_strides if output else self.input_strides) or []
        found = strides[index] if 0 <= index < len(strides) else None
        if isinstance(found, Sequence):
            found = found[-1] if len(found) else None
        return max(1, int(found or 1))


def describe(
    key: str,
    inputs: Mapping[int, tuple[str, Any, Variable | None]],
    outputs: Mapping[int, tuple[str, Any, Variable | None]],
) -> FunctionMetadata:
    """Metadata from labels, element types and variables, by index."""

    def rows(side: Mapping[int, tuple[str, Any, Variable | None]]) -> tuple[list[Any], ...]:
        count = max(side, default=-1) + 1
        labels: list[Any] = [None] * count
        strides: list[Any] = [None] * count
        dtypes: list[Any] = [None] * count
        for k, (label, dtype, v) in side.items():
            labels[k], dtypes[k] = label, dtype
            strides[k] = None if v is None else (v.width,)
        return labels, strides, dtypes

    a, b = rows(inputs), rows(outputs)
    return FunctionMetadata(key, a[0], b[0], a[1], b[1], a[2], b[2])
