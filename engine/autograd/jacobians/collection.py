"""The result of `jacobian`: a dictionary of matrices with named keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.autograd.variables.metadata import FunctionMetadata
from engine.autograd.variables.variable import Variable

Key = tuple[int, int]


class Jacobians(dict[Key, Any]):
    """Matrices by (input index, output index); names of arguments are taken for indices.

    metadata: names, strides and types of the inputs and outputs. variables: what they are,
    where that is known.
    """

    def __init__(
        self, matrices: Mapping[Key, Any], metadata: FunctionMetadata,
        variables: Mapping[Key, tuple[Variable, Variable]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(matrices)
        self.metadata = metadata
        self._variables = dict(variables or {})

    def entry(self, key: Key, row: int, col: int) -> tuple[str, str]:
        """The scalars of an entry, the output's first, by their arrays' own indices: `u[2, 3]`."""
        known = self._variables.get(key)
        if known is not None:
            return known[1].place(row), known[0].place(col)
        names = self.metadata
        return f"{names.label(key[1], True)}[{row}]", f"{names.label(key[0], False)}[{col}]"

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2:
            for i, o in self:
                names = self.metadata.label(i, False), self.metadata.label(o, True)
                if key[0] in (i, names[0]) and key[1] in (o, names[1]):
                    return self[i, o]
        raise KeyError(key)
