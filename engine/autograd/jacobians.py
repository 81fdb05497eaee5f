"""What `jacobian` returns: a dictionary of matrices that knows the names of its keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.autograd.metadata import FunctionMetadata

Key = tuple[int, int]


class Jacobians(dict[Key, Any]):
    """Matrices by (input index, output index); names of arguments are taken for indices.

    metadata: names, strides and types of the inputs and outputs.
    """

    def __init__(self, matrices: Mapping[Key, Any], metadata: FunctionMetadata) -> None:
        super().__init__(matrices)
        self.metadata = metadata

    def __missing__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2:
            for i, o in self:
                names = self.metadata.label(i, False), self.metadata.label(o, True)
                if key[0] in (i, names[0]) and key[1] in (o, names[1]):
                    return self[i, o]
        raise KeyError(key)
