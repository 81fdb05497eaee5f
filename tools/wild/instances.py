"""Types to try for generic kernels, where their callers do not tell."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import engine

# For what takes anything; the first that lowers is taken.
_ANY = (engine.float32, engine.vec3, engine.int32, engine.mat33, engine.quat, engine.transform,
        engine.spatial_vector, engine.vec2, engine.vec4)  # fmt: skip
_KINDS = {"i": engine.int32, "f": engine.float32, "u": engine.uint32}


def candidates(kernel: Any) -> Iterator[Any]:
    """Types of the open parameters: those of its overloads, then uniform ones, then mixed ones."""
    for types in kernel.overloads:
        yield list(types)
    patterns = kernel.signature.patterns
    plain = {name: p.ndim for name, p in patterns.items()}
    # What takes anything may be an array: it is one where the text has indices for it.
    indexed = plain | {n: k for n, k in _indices(kernel.func).items() if not plain.get(n, 1)}
    for dims in [indexed, plain] if indexed != plain else [plain]:
        for element in _ANY:
            yield {n: _typed(p, dims[n], element) for n, p in patterns.items()}
        for element in _ANY[1:]:  # arrays of one type, and plain numbers; or the other way round
            for arrays in (True, False):
                yield {
                    n: _typed(p, dims[n], element if (dims[n] > 0) == arrays else engine.float32)
                    for n, p in patterns.items()
                }


def _typed(pattern: Any, ndim: int, element: Any) -> Any:
    if pattern.kinds:
        element = _KINDS["f" if "f" in pattern.kinds else pattern.kinds[0]]
    return engine.array(dtype=element, ndim=ndim) if ndim else element


def _indices(function: Any) -> dict[str, int]:
    """How many indices a function's text gives to each name."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):
        return {}
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            index = node.slice
            count = len(index.elts) if isinstance(index, ast.Tuple) else 1
            found[node.value.id] = max(count, found.get(node.value.id, 0))
    return found
