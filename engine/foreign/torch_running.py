"""Reruns user code of PyTorch without side effects: state is restored, output is dropped."""

from __future__ import annotations

import contextlib
import io
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from engine.classes import dataclass

# Set while the check runs code of the user's, which is not to be watched then.
quiet = threading.local()


@dataclass(frozen=True)
class RandomState:
    """What random numbers come next: PyTorch's, NumPy's, Python's."""

    torch: Any
    numpy: Any
    python: Any

    def same(self) -> bool:
        """Whether no random number was drawn since."""
        import torch

        now = RandomState.now()
        numpy = all(np.array_equal(a, b) for a, b in zip(now.numpy, self.numpy, strict=True))
        return torch.equal(now.torch, self.torch) and numpy and now.python == self.python

    @staticmethod
    def now() -> RandomState:
        """As it is."""
        import torch

        return RandomState(torch.get_rng_state(), np.random.get_state(), random.getstate())

    def restore(self) -> None:
        """Makes it so again."""
        import torch

        torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)
        random.setstate(self.python)


@contextlib.contextmanager
def undisturbed(state: RandomState | None, lifted: bool, small: bool = False) -> Iterator[None]:
    """Runs the user's code with these random numbers, and leaves all as it was.

    state: None for what draws no numbers.

    lifted: new tensors are float64 unless their code says something else. small: one thread does,
    and waits for no other.
    """
    import torch

    before = None if state is None else RandomState.now()
    dtype = torch.get_default_dtype()
    threads = torch.get_num_threads()
    silence = io.StringIO()
    quiet.on = True
    try:
        with (
            contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence),
            torch.inference_mode(False), torch.enable_grad(),
            torch.autograd.set_detect_anomaly(False),
        ):  # fmt: skip
            if small and threads > 1:
                torch.set_num_threads(1)
            if state is not None:
                state.restore()
            if lifted:
                torch.set_default_dtype(torch.float64)
            yield
    finally:
        quiet.on = False
        torch.set_default_dtype(dtype)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        if before is not None:
            before.restore()
