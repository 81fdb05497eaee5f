"""Sees steps of `torch.optim`: of optimizers of PyTorch, and of all that derive from them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from engine.foreign.torch_running import quiet
from engine.runtime import events


class Steps:
    """Tells the observers of the engine (`events.optimized`) of each step that was made."""

    def __init__(self) -> None:
        self.seen = False  # whether the program has made a step
        self._hook: Any = None

    def begin(self) -> None:
        """Begins to look. Raises where PyTorch has no hooks of all optimizers."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._hook = register_optimizer_step_post_hook(self._after)

    def end(self) -> None:
        """Ends it."""
        if self._hook is not None:
            self._hook.remove()
            self._hook = None

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """After a step, with its gradients still there."""
        probe = getattr(quiet, "probe", None)
        if probe is not None:
            probe.append((type(optimizer), ()))
            return
        self.seen = True
        if events.everywhere and not getattr(quiet, "on", False):
            events.optimized([*_moved(optimizer)])


def _moved(optimizer: Any) -> Iterator[events.Optimized]:
    import torch

    for group in optimizer.param_groups:
        for p in group["params"]:
            plain = isinstance(p.grad, torch.Tensor) and not p.grad.is_sparse
            if plain and p.layout == torch.strided and p.dtype != torch.bfloat16:
                yield events.Optimized(p.numel(), partial(_numbers, p), partial(_numbers, p.grad))


def _numbers(t: Any) -> np.ndarray[Any, Any]:
    return np.array(t.detach().cpu().numpy())
