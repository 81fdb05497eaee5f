"""Makes values for calls that were traced and never ran with visible values."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.draws import default_rng
from engine.foreign.jax_notes import Call, Held


def made_up(call: Call) -> list[Any]:
    """A value for each leaf: as it was where that is known, else something that most like.

    Between 0.1 and 0.9, which are good as positive numbers and as probabilities; integers are 0,
    which is an index of everything.
    """
    rng = default_rng(0x5A3)
    return [_made(leaf, rng) for leaf in call.leaves]


def _made(leaf: Any, rng: np.random.Generator) -> Any:
    import jax

    if isinstance(leaf.source, Held) and not leaf.source.lanes:
        return leaf.source.value
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        count = int(np.prod(leaf.shape))
        keys = jax.random.split(jax.random.key(0), max(count, 1))[:count]
        return keys.reshape(leaf.shape) if leaf.shape else keys[0]
    if jax.dtypes.issubdtype(leaf.dtype, np.inexact):
        return rng.uniform(0.1, 0.9, leaf.shape).astype(leaf.dtype)
    if leaf.dtype == np.bool_:
        return rng.random(leaf.shape) < 0.5
    return np.zeros(leaf.shape, leaf.dtype)
