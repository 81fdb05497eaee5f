"""A function of JAX as a stretch of a tape."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from engine.interop.ops.functions import as_tuple, definition, name_of
from engine.tape.records.foreign import NumpyArray, Stretch, Values


class JaxStretch(Stretch):
    """Pure, as functions of JAX are."""

    framework = "jax"

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = name_of(function)
        self.span = definition(function)

    def run(self, values: Values) -> list[NumpyArray]:
        with _wide(values):
            return [np.array(y) for y in self._call(*_given(values))]

    def remember(self) -> None:
        """Arrays of JAX stay as they are."""

    def vjp(
        self, values: Values, cotangents: Values, wanted: Sequence[bool], own: bool
    ) -> list[NumpyArray | None]:
        del own  # functions of JAX hold no gradients
        import jax

        asked = [k for k, x in enumerate(values) if wanted[k] and _moves(x)]
        with _wide(values):
            given = _given(values)

            def of(*moved: Any) -> tuple[Any, ...]:
                every = list(given)
                for k, x in zip(asked, moved, strict=True):
                    every[k] = x
                return self._call(*every)

            made, pull = jax.vjp(of, *(given[k] for k in asked))
            found = pull(tuple(_cotangent(y, c) for y, c in zip(made, cotangents, strict=True)))
            grads = dict(zip(asked, (np.array(g) for g in found), strict=True))
        return [grads.get(k) for k in range(len(values))]

    def jvp(self, values: Values, tangents: Values) -> list[NumpyArray]:
        import jax

        with _wide(values):
            given = _given(values)
            moved = tuple(_cotangent(x, t) for x, t in zip(given, tangents, strict=True))
            made, pushed = jax.jvp(self._call, tuple(given), moved)
            return [np.array(t) if _moves(np.asarray(y)) else np.zeros(y.shape)
                    for y, t in zip(made, pushed, strict=True)]  # fmt: skip

    def _call(self, *given: Any) -> tuple[Any, ...]:
        import jax

        return as_tuple(self.function, self.function(*given), jax.Array, "an array of JAX")


def _given(values: Values) -> list[Any]:
    import jax.numpy as jnp

    return [jnp.array(x) for x in values]


def _moves(x: Any) -> bool:
    import jax.numpy as jnp

    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _cotangent(y: Any, c: NumpyArray) -> Any:
    import jax
    import jax.numpy as jnp

    if not _moves(y):
        return np.zeros(y.shape, jax.dtypes.float0)
    return jnp.asarray(c, y.dtype).reshape(y.shape)


@contextmanager
def _wide(values: Values) -> Iterator[None]:
    """Has JAX keep 64 bits where there are any."""
    import jax

    if not any(x.dtype.itemsize == 8 for x in values):
        yield
        return
    with jax.enable_x64(True):
        yield
