"""Types to try for generic kernels, where their callers do not tell."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from typing import Any

import engine

# For what takes anything; the first that lowers is taken.
_ANY = (engine.float32, engine.vec3, engine.int32, engine.mat33, engine.quat, engine.transform,
        engine.spatial_vector, engine.vec2, engine.vec4,
        engine.types.vector(length=9, dtype=engine.float32))  # fmt: skip
_KINDS = {"i": engine.int32, "f": engine.float32, "u": engine.uint32}


def candidates(kernel: Any) -> Iterator[Any]:
    """Types of the open parameters: those of its overloads, uniform ones, searched ones."""
    for types in kernel.overloads:
        yield list(types)
    patterns = kernel.signature.patterns
    plain = {name: p.ndim for name, p in patterns.items()}
    # What takes anything may be an array: it is one where the text has indices for it.
    indexed = plain | {n: k for n, k in _indices(kernel.func).items() if not plain.get(n, 1)}
    shapes = [indexed, plain] if indexed != plain else [plain]
    for dims in shapes:
        for element in _ANY:
            yield {n: _typed(p, dims[n], element) for n, p in patterns.items()}
        for element in _ANY[1:]:  # arrays of one type, and plain numbers; or the other way round
            for arrays in (True, False):
                yield {
                    n: _typed(p, dims[n], element if (dims[n] > 0) == arrays else engine.float32)
                    for n, p in patterns.items()
                }
    for dims in shapes:
        yield from _search(kernel, dims)


def _search(kernel: Any, dims: dict[str, int]) -> Iterator[Any]:
    """One parameter after the other gets the type with which the first error comes latest."""
    patterns = kernel.signature.patterns

    def types(chosen: dict[str, tuple[Any, int]]) -> dict[str, Any]:
        return {n: _typed(p, chosen[n][1], chosen[n][0]) for n, p in patterns.items()}

    best = {n: (engine.float32, dims[n]) for n in patterns}
    reached = _reached(kernel, types(best))
    for _ in range(2):
        for name in patterns:
            # What takes anything, and is passed on as it is, may be an array too.
            for choice in itertools.product(_ANY, {dims[name], dims[name] or 1}):
                if choice == best[name]:
                    continue
                now = _reached(kernel, types(best | {name: choice}))
                if now > reached:
                    best, reached = best | {name: choice}, now
                if reached == _END:
                    yield types(best)
                    return


_END = (1 << 30, 0)


def _reached(kernel: Any, types: Any) -> tuple[int, int]:
    """The line of the first error, the more the better; _END where there is none."""
    from engine.diagnostics import EngineError
    from engine.runtime.kernel import lower

    try:
        lower(kernel.add_overload(types))
    except EngineError as error:
        inside = kernel.func.__code__.co_filename
        lines = [d.span.line for d in error.diagnostics if d.span and d.span.file == inside]
        return (min(lines, default=0), -len(error.diagnostics))
    return _END


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
