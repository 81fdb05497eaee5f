"""Where NVIDIA Warp is watched: how each of these places is tested.

Before the program has started Warp, which it may first configure, only what needs no device is
tried; of the rest it is asked whether Warp's code goes by the place.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CodeType, FunctionType
from typing import Any


class Tests:
    """Tests of the seams. quiet: gives the names of what was noticed, and keeps nothing of it."""

    def __init__(self, warp: Any, quiet: Callable[[], AbstractContextManager[set[str]]]) -> None:
        self._warp, self._quiet = warp, quiet
        self._launching = getattr(warp, "launch", None)

    def tapes(self, everything: bool) -> bool:
        """Functions that are recorded, and a backward pass; whole blocks, if everything is."""
        with self._quiet() as met:
            tape = self._warp.Tape()
            if everything:
                with tape:
                    pass
            called: list[int] = []
            tape.record_func(lambda: called.append(1), [])
            tape.backward()
            tape.reset()
        blocks = {"__enter__", "__exit__"} if everything else set()
        return bool(called) and {"record_func", "backward", "reset"} | blocks <= met

    def launches(self, everything: bool) -> bool:
        """A launch on a tape, if everything is tested; else whether launches are told to tapes."""
        if not everything:
            return _goes_by(self._launching, "record_launch")
        warp = self._warp
        with self._quiet() as met:
            x = warp.zeros(2, dtype=warp.float32, device="cpu", requires_grad=True)
            with warp.Tape():
                warp.launch(_kernel(warp), dim=2, inputs=[x], device="cpu")
        return {"launch", "record_launch"} <= met

    def writes(self, everything: bool) -> bool:
        """Writes of arrays on the CPU, if everything is tested."""
        if not everything:
            return True
        warp = self._warp
        with self._quiet() as met:
            x = warp.zeros(2, dtype=warp.float32, device="cpu")
            x.fill_(1.0)
            x.zero_()
            x.assign([1.0, 2.0])
            warp.copy(warp.zeros(2, dtype=warp.float32, device="cpu"), x)
        return {"zero_", "fill_", "assign", "copy"} <= met


def _goes_by(function: Any, name: str) -> bool:
    """Whether the code of a Python function uses a name."""

    def uses(code: CodeType) -> bool:
        inner = (c for c in code.co_consts if isinstance(c, CodeType))
        return name in code.co_names or any(map(uses, inner))

    return isinstance(function, FunctionType) and uses(function.__code__)


def _kernel(wp: Any) -> Any:
    def twice(x: wp.array(dtype=wp.float32)):  # type: ignore[no-untyped-def, valid-type]
        i = wp.tid()
        x[i] = x[i] * 2.0

    twice.__annotations__["x"] = wp.array(dtype=wp.float32)
    return wp.kernel(twice)
