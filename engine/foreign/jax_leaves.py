"""Converts leaves of JAX arguments and results, and errors, to NumPy and to text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from engine.foreign.operation import Array


def as_jax(x: Any) -> Any:
    """An argument as JAX has it."""
    import jax

    return jax.numpy.asarray(x) if isinstance(x, np.ndarray | np.generic) else x


def first_line(error: BaseException) -> str:
    """What an error says, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def is_float(dtype: Any) -> bool:
    """Whether a type is one of real floats."""
    import jax

    return bool(jax.dtypes.issubdtype(dtype, np.floating))


def is_complex(dtype: Any) -> bool:
    """Whether a type is one of complex numbers."""
    import jax

    return bool(jax.dtypes.issubdtype(dtype, np.complexfloating))


def floats(tree: Any) -> list[Any]:
    """The leaves that are real floats."""
    import jax

    leaves = jax.tree_util.tree_leaves(tree)
    out = [jax.numpy.asarray(x) if isinstance(x, float | np.generic) else x for x in leaves]
    return [x for x in out if hasattr(x, "dtype") and is_float(x.dtype)]


def arrays(found: Sequence[Any]) -> list[Array]:
    """Results as NumPy arrays of float64."""
    return [np.asarray(x).astype(np.float64) for x in found]


def nones(treedef: Any, out: Any) -> Iterator[int]:
    """The numbers of the leaves for which a backward rule gives nothing."""
    import jax

    tree = jax.tree_util
    flags: list[bool] = []

    def append(x: Any, part: Any) -> Any:
        count = len(tree.tree_leaves(part))
        if x is not None or part is not None:
            flags.extend([x is None or type(x).__name__ == "SymbolicZero"] * count)
        return x

    entries = tuple(out) if isinstance(out, list) else out
    dummy = tree.tree_unflatten(treedef, [object()] * treedef.num_leaves)
    tree.tree_map(append, entries, dummy, is_leaf=lambda x: x is None)
    yield from (i for i, none in enumerate(flags) if none)
